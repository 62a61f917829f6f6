"""Rows to records: what the ledger holds, as the models that users see, and the calls that only read.

Called by the store inside one read transaction. A row that does not make a record is damage on disk, and says so
with its table and key; it never counts as absent.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import ValidationError
from sqlalchemy import and_, bindparam, func, select

from browsermw.errors import LedgerCorrupt
from browsermw.ledger import schema
from browsermw.ledger.prepared import Prepared
from browsermw.models import Action, Checkpoint, Effect, Quarantine, RunSummary, RuntimeStatus, Transition, Verdict
from browsermw.protocol.admission import refuse_claim
from browsermw.protocol.phases import Phase, RuntimeState

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from sqlalchemy import Connection, RowMapping, Table

    from browsermw.ledger.dialects import Dialect
    from browsermw.ledger.schema import AnyRow
    from browsermw.models import Record

    Fields = Mapping[str, Any] | RowMapping

R = TypeVar("R", bound="Record")

A, E, C = schema.actions, schema.effects, schema.checkpoints
B, R_, T, V = schema.boots, schema.runs, schema.transitions, schema.verdicts

_NEEDS_REVIEW = str(Phase.NEEDS_REVIEW)
_IN_DOUBT_EFFECT = E.c.phase == _NEEDS_REVIEW
_IN_DOUBT_ACTION = and_(A.c.phase == _NEEDS_REVIEW, A.c.doubt_at.is_not(None))

_EFFECT_COLUMNS = [E.c[name] for name in Effect.model_fields]
_ACTION_COLUMNS = [A.c[name] for name in Action.model_fields if name != "effects"]
_CHECKPOINT_COLUMNS = [C.c[name] for name in Checkpoint.model_fields]

EFFECTS_OF_RUN = select(*_EFFECT_COLUMNS, E.c.action_id).where(E.c.run_id == bindparam("run_id"))
ONE_EFFECT = Prepared(select(E).where(E.c.effect_id == bindparam("effect_id")))
ONE_ACTION = Prepared(select(A).where(A.c.action_id == bindparam("action_id")))
EFFECTS_OF_ACTION = Prepared(select(E).where(E.c.action_id == bindparam("action_id")).order_by(E.c.ordinal))
_FIRST_DOUBT = (
    select(E).where(_IN_DOUBT_EFFECT, E.c.run_id == bindparam("run_id")).order_by(E.c.action_seq, E.c.ordinal).limit(1)
)


def record(model: type[R], fields: Fields, table: Table, **more: object) -> R:
    """Make a record of a row.

    Args:
        model: The record's class.
        fields: The row.
        table: Where it is from, for the message.
        more: Fields that are not columns.

    Raises:
        LedgerCorrupt: The row holds what the record cannot.
    """
    names = model.model_fields
    try:
        return model(**{name: fields[name] for name in names if name not in more}, **more)
    except ValueError as error:
        key = ", ".join(f"{column.name} {fields[column.name]}" for column in table.primary_key)
        raise corrupt(table.name, key, f"unreadable field: {_why(error)}", run_id=fields.get("run_id")) from error


def _why(error: ValueError) -> str:
    """Which field, and what it holds, on one line."""
    if isinstance(error, ValidationError):
        return "; ".join(f"{it['loc'][0]} is {it['input']!r}" for it in error.errors(include_url=False))
    return str(error)


def corrupt(table: str, key: str, why: str, **facts: object) -> LedgerCorrupt:
    """The error for a damaged record, with the way out."""
    run = f" of run {facts['run_id']}" if facts.get("run_id") else ""
    return LedgerCorrupt(
        f"Nothing left the browser: the ledger's record {table} {key}{run} is damaged ({why}). "
        "Restore the ledger from a backup; do not let the agent go on.",
        facts={"table": table, "key": key, "why": why, **facts},
    )


def effect_of(row: AnyRow) -> Effect:
    """A row of ``effects`` as a record."""
    return record(Effect, row._mapping, E)  # noqa: SLF001 - the documented way to a row's columns


def action_of(row: AnyRow, effects: Sequence[Effect] = ()) -> Action:
    """A row of ``actions`` as a record, with its effects."""
    return record(Action, row._mapping, A, effects=tuple(effects))  # noqa: SLF001


def first_doubt(conn: Connection, run_id: str) -> Effect | None:
    """The oldest effect of the run that is in doubt."""
    row = conn.execute(_FIRST_DOUBT, {"run_id": run_id}).one_or_none()
    return None if row is None else effect_of(row)


def actions(conn: Connection, run_id: str, phases: Sequence[Phase] | None = None) -> tuple[Action, ...]:
    """The run's actions with their effects, in order."""
    wanted = select(*_ACTION_COLUMNS).where(A.c.run_id == run_id).order_by(A.c.seq)
    if phases is not None:
        wanted = wanted.where(A.c.phase.in_([str(phase) for phase in phases]))
    effects: dict[str, list[Effect]] = {}
    for row in conn.execute(EFFECTS_OF_RUN.order_by(E.c.action_seq, E.c.ordinal), {"run_id": run_id}):
        effects.setdefault(row.action_id, []).append(effect_of(row))
    return tuple(action_of(row, effects.get(row.action_id, ())) for row in conn.execute(wanted))


def quarantined(conn: Connection, run_id: str | None = None) -> tuple[Quarantine, ...]:
    """What is in doubt, oldest action first; of one run or of all."""
    doubtful_effects = select(E).where(_IN_DOUBT_EFFECT)
    doubtful_actions = select(A).where(_IN_DOUBT_ACTION)
    if run_id is not None:
        doubtful_effects = doubtful_effects.where(E.c.run_id == run_id)
        doubtful_actions = doubtful_actions.where(A.c.run_id == run_id)
    found = [quarantine_of_effect(conn, row) for row in conn.execute(doubtful_effects).all()]
    found += [quarantine_of_action(row) for row in conn.execute(doubtful_actions).all()]
    found.sort(key=lambda it: (it.run_id, it.action_seq, it.effect.ordinal if it.effect else 0))
    return tuple(found)


def quarantine(conn: Connection, quarantine_id: str) -> Quarantine:
    """One doubt, settled or not.

    Raises:
        KeyError: Nothing of that id ever was in doubt.
    """
    effect = ONE_EFFECT.first(conn, {"effect_id": quarantine_id})
    if effect is not None and effect.doubt_at is not None:
        return quarantine_of_effect(conn, effect)
    action = ONE_ACTION.first(conn, {"action_id": quarantine_id})
    if action is not None and action.doubt_at is not None:
        return quarantine_of_action(action)
    raise KeyError(quarantine_id)


def quarantine_of_effect(conn: Connection, row: AnyRow) -> Quarantine:
    """An effect in doubt, with its action."""
    action = ONE_ACTION.first(conn, {"action_id": row.action_id})
    assert action is not None
    return Quarantine(
        quarantine_id=row.effect_id,
        run_id=row.run_id,
        action_seq=row.action_seq,
        effect=effect_of(row),
        action=action_of(action),
        since=row.doubt_at,
        reason=row.doubt_reason or "",
    )


def quarantine_of_action(row: AnyRow) -> Quarantine:
    """An action in doubt on its own account: nobody saw what it sent."""
    return Quarantine(
        quarantine_id=row.action_id,
        run_id=row.run_id,
        action_seq=row.seq,
        effect=None,
        action=action_of(row),
        since=row.doubt_at,
        reason=row.doubt_reason or "",
    )


def verdicts(conn: Connection, quarantine_id: str) -> tuple[tuple[Verdict, datetime], ...]:
    """The evidence about one doubt, oldest first."""
    rows = conn.execute(select(V).where(V.c.quarantine_id == quarantine_id).order_by(V.c.verdict_id))
    return tuple((record(Verdict, row._mapping, V), row.at) for row in rows)  # noqa: SLF001


def checkpoints(conn: Connection, run_id: str) -> tuple[Checkpoint, ...]:
    """The run's chain of checkpoints."""
    rows = conn.execute(select(*_CHECKPOINT_COLUMNS).where(C.c.run_id == run_id).order_by(C.c.seq))
    return tuple(record(Checkpoint, row._mapping, C) for row in rows)  # noqa: SLF001


def transitions(conn: Connection, run_id: str) -> tuple[Transition, ...]:
    """The run's lines of the log, oldest first."""
    rows = conn.execute(select(T).where(T.c.run_id == run_id).order_by(T.c.transition_id))
    return tuple(record(Transition, row._mapping, T) for row in rows)  # noqa: SLF001


def runs(conn: Connection, dialect: Dialect, run_id: str | None = None) -> tuple[RunSummary, ...]:
    """Runs at a glance, in the order of their first claim; or the one that is named."""
    effect_doubts = select(func.count()).where(_IN_DOUBT_EFFECT, E.c.run_id == R_.c.run_id).scalar_subquery()
    action_doubts = select(func.count()).where(_IN_DOUBT_ACTION, A.c.run_id == R_.c.run_id).scalar_subquery()
    wanted = (
        select(R_, B.c.host, B.c.pid, B.c.closed_at, (effect_doubts + action_doubts).label("in_doubt_count"))
        .outerjoin(B, B.c.boot_id == R_.c.boot_id)
        .order_by(R_.c.created_at, R_.c.run_id)
    )
    if run_id is not None:
        wanted = wanted.where(R_.c.run_id == run_id)
    return tuple(_run_of(conn, dialect, row) for row in conn.execute(wanted).all())


def _run_of(conn: Connection, dialect: Dialect, row: AnyRow) -> RunSummary:
    return record(RunSummary, row._mapping, R_, owner=_owner(row), owner_alive=_is_alive(conn, dialect, row))  # noqa: SLF001


def runtimes(conn: Connection, dialect: Dialect, runtime: str | None = None) -> tuple[RuntimeStatus, ...]:
    """Runtimes at a glance; ``owner`` only while its process lives."""
    wanted = (
        select(schema.runtimes, B.c.host, B.c.pid, B.c.started_at, B.c.closed_at)
        .outerjoin(B, B.c.boot_id == schema.runtimes.c.boot_id)
        .order_by(schema.runtimes.c.runtime)
    )
    if runtime is not None:
        wanted = wanted.where(schema.runtimes.c.runtime == runtime)
    return tuple(_runtime_of(conn, dialect, row) for row in conn.execute(wanted).all())


def _runtime_of(conn: Connection, dialect: Dialect, row: AnyRow) -> RuntimeStatus:
    of_runtime = R_.c.runtime == row.runtime
    active = select(R_.c.run_id).where(of_runtime, R_.c.boot_id.is_not(None)).order_by(R_.c.run_id)
    doubtful = (
        select(func.count()).select_from(E.join(R_, E.c.run_id == R_.c.run_id)).where(of_runtime, _IN_DOUBT_EFFECT)
    )
    own_doubt = (
        select(func.count()).select_from(A.join(R_, A.c.run_id == R_.c.run_id)).where(of_runtime, _IN_DOUBT_ACTION)
    )
    return record(
        RuntimeStatus,
        row._mapping,  # noqa: SLF001
        schema.runtimes,
        owner=_owner(row) if _is_alive(conn, dialect, row) else None,
        accepting_work=row.state in set(RuntimeState) and refuse_claim(RuntimeState(row.state)) is None,
        active_runs=tuple(conn.scalars(active)),
        in_doubt_count=conn.scalar(doubtful) + conn.scalar(own_doubt),  # type: ignore[operator]
    )


def _is_alive(conn: Connection, dialect: Dialect, row: AnyRow) -> bool:
    return row.boot_id is not None and row.closed_at is None and dialect.is_alive(conn, row.boot_id)


def _owner(row: AnyRow) -> str | None:
    return None if row.boot_id is None or row.pid is None else f"pid {row.pid} on {row.host}"
