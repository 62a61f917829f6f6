"""The tables of the ledger, as every other file here names them.

``migrations/versions`` builds them; a test compares the two. Text from outside is stored through ``Words`` and
moments through ``Moment``, so that SQLite and PostgreSQL give back exactly what was written, which the digests of
the checkpoints depend on. Nothing here reads or writes.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from sqlalchemy import (
    JSON,
    TIMESTAMP,
    BigInteger,
    Boolean,
    Column,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
)
from sqlalchemy.types import TypeDecorator

if TYPE_CHECKING:
    from sqlalchemy import Row
    from sqlalchemy.engine import Dialect
    from sqlalchemy.types import TypeEngine

    AnyRow = Row[*tuple[Any, ...]]
    """A row of any columns."""

HEAD = "0002"
"""The revision that this code reads and writes."""

VERSION_TABLE = "browsermw_version"
"""Where the revision of a ledger is stored."""


def storable(text: str) -> str:
    """The text as both databases can hold it: no NUL, no half of a surrogate pair."""
    if text.isascii() and "\0" not in text:
        return text
    return text.replace("\0", "\ufffd").encode("utf-16", "surrogatepass").decode("utf-16", "replace")


class Words(TypeDecorator[str]):
    """Text from outside (URLs, selectors, reasons, notes)."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:  # noqa: ARG002, D102
        return None if value is None else storable(value)


class Moment(TypeDecorator[datetime]):
    """An aware UTC datetime with microseconds: ``TIMESTAMPTZ``, or fixed ISO text on SQLite, which sorts by time."""

    impl = String(32)
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:  # noqa: D102
        if dialect.name == "postgresql":
            return dialect.type_descriptor(TIMESTAMP(timezone=True))
        return dialect.type_descriptor(String(32))

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | str | None:  # noqa: D102
        if value is None or dialect.name == "postgresql":
            return value
        return iso(value)

    def process_result_value(self, value: Any, dialect: Dialect) -> datetime | None:  # noqa: ARG002, D102
        if value is None:
            return None
        moment = datetime.fromisoformat(value) if isinstance(value, str) else value
        return moment.astimezone(UTC)


def iso(moment: datetime) -> str:
    """The moment as fixed text: UTC, always with six digits of microseconds."""
    return moment.astimezone(UTC).isoformat(timespec="microseconds")


SerialId = BigInteger().with_variant(Integer, "sqlite")

metadata = MetaData(
    naming_convention={
        "pk": "pk_%(table_name)s",
        "fk": "fk_%(table_name)s_%(column_0_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    },
)

runtimes = Table(
    "runtimes",
    metadata,
    Column("runtime", Text, primary_key=True),
    Column("state", Text, nullable=False),
    Column("generation", Integer, nullable=False),
    Column("boot_id", Text),
    Column("changed_at", Moment, nullable=False),
)

boots = Table(
    "boots",
    metadata,
    Column("boot_id", Text, primary_key=True),
    Column("runtime", Text, ForeignKey("runtimes.runtime"), nullable=False, index=True),
    Column("host", Words, nullable=False),
    Column("pid", BigInteger, nullable=False),
    Column("labels", JSON, nullable=False),
    Column("started_at", Moment, nullable=False),
    Column("lease_until", Moment),
    Column("closed_at", Moment),
)

runs = Table(
    "runs",
    metadata,
    Column("run_id", Text, primary_key=True),
    Column("phase", Text, nullable=False),
    Column("runtime", Text, ForeignKey("runtimes.runtime"), nullable=False, index=True),
    Column("boot_id", Text, ForeignKey("boots.boot_id")),
    Column("fence", BigInteger, nullable=False),
    Column("wire", Text),
    Column("labels", JSON, nullable=False),
    Column("action_count", Integer, nullable=False),
    Column("checkpoint_count", Integer, nullable=False),
    Column("head_digest", Text, nullable=False),
    Column("last_action_seq", Integer),
    Column("external_request_id", Words),
    Column("claimed_at", Moment, nullable=False),
    Column("created_at", Moment, nullable=False),
    Column("changed_at", Moment, nullable=False),
)

actions = Table(
    "actions",
    metadata,
    Column("action_id", Text, primary_key=True),
    Column("run_id", Text, ForeignKey("runs.run_id"), nullable=False),
    Column("seq", Integer, nullable=False),
    Column("kind", Text, nullable=False),
    Column("method", Text, nullable=False),
    Column("target", Words, nullable=False),
    Column("url", Words, nullable=False),
    Column("phase", Text, nullable=False),
    Column("wire", Text, nullable=False),
    Column("reads_only", Boolean, nullable=False),
    Column("fence", BigInteger, nullable=False, comment="the fence under which it was planned"),
    Column("planned_at", Moment, nullable=False),
    Column("closed_at", Moment),
    Column("reason", Words),
    Column("doubt_at", Moment, comment="set when the action itself, not one of its effects, came into doubt"),
    Column("doubt_reason", Words),
    UniqueConstraint("run_id", "seq"),
    Index(None, "phase", "run_id"),
)

effects = Table(
    "effects",
    metadata,
    Column("effect_id", Text, primary_key=True),
    Column("run_id", Text, ForeignKey("runs.run_id"), nullable=False),
    Column("action_id", Text, ForeignKey("actions.action_id"), nullable=False),
    Column("action_seq", Integer, nullable=False),
    Column("ordinal", Integer, nullable=False),
    Column("phase", Text, nullable=False),
    Column("method", Words, nullable=False),
    Column("url", Words, nullable=False),
    Column("fingerprint", Words, nullable=False),
    Column("channel", Text, nullable=False),
    Column("chain", Text, nullable=False, comment="first effect of its chain of redirect hops"),
    Column("outcome", Text),
    Column("status", Integer),
    Column("external_request_id", Words),
    Column("location", Words),
    Column("dispatched_at", Moment, nullable=False),
    Column("acknowledged_at", Moment),
    Column("acknowledged_fence", BigInteger, comment="the fence that saw the answer; 0 where a verdict said it"),
    Column("reason", Words),
    Column("doubt_at", Moment),
    Column("doubt_reason", Words),
    Column("idempotency_key", Words),
    UniqueConstraint("action_id", "ordinal"),
    Index(None, "run_id", "fingerprint"),
    Index(None, "phase", "run_id"),
)

checkpoints = Table(
    "checkpoints",
    metadata,
    Column("run_id", Text, ForeignKey("runs.run_id"), primary_key=True),
    Column("seq", Integer, primary_key=True),
    Column("action_seq", Integer, nullable=False),
    Column("moment", Text, nullable=False),
    Column("url", Words, nullable=False),
    Column("dom_hash", Words),
    Column("dom_note", Words),
    Column("identity_state", Text, nullable=False),
    Column("identity_hash", Words),
    Column("identity_hint", Words),
    Column("last_action_seq", Integer),
    Column("external_request_id", Words),
    Column("at", Moment, nullable=False),
    Column("previous", Text, nullable=False),
    Column("digest", Text, nullable=False),
)

transitions = Table(
    "transitions",
    metadata,
    Column("transition_id", SerialId, primary_key=True, autoincrement=True),
    Column("entity", Text, nullable=False),
    Column("entity_id", Text, nullable=False),
    Column("run_id", Text, index=True),
    Column("old", Text),
    Column("new", Text, nullable=False),
    Column("at", Moment, nullable=False),
    Column("boot_id", Text),
    Column("fence", BigInteger),
    Column("reason", Words),
)

verdicts = Table(
    "verdicts",
    metadata,
    Column("verdict_id", SerialId, primary_key=True, autoincrement=True),
    Column("quarantine_id", Text, nullable=False, index=True),
    Column("run_id", Text, ForeignKey("runs.run_id"), nullable=False),
    Column("verdict", Text, nullable=False),
    Column("source", Words, nullable=False),
    Column("note", Words, nullable=False),
    Column("external_request_id", Words),
    Column("settles", Boolean, nullable=False),
    Column("at", Moment, nullable=False),
)
