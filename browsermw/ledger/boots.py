"""The life of a boot: one start of a runtime's process, alive as long as its lock is held.

Called by the store. Its lock is taken before its row is visible and dropped after the row is closed, so that whoever
reads the row can tell the living from the dead. A boot that is found dead is closed here; a stopped process that
wakes up later finds that out by its fence.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import bindparam, insert, select, update

from browsermw.errors import LedgerUnavailable, RuntimeOwned, Superseded
from browsermw.ledger import reading, schema
from browsermw.ledger.standing import runtime_state
from browsermw.ledger.steps import Steps
from browsermw.protocol.phases import RuntimeState

if TYPE_CHECKING:
    from datetime import datetime

    from sqlalchemy import Connection

    from browsermw.ledger.contract import Boot
    from browsermw.ledger.dialects import Dialect
    from browsermw.ledger.schema import AnyRow
    from browsermw.models import RuntimeStatus

B, RT = schema.boots, schema.runtimes

_LOCK_RUNTIME = select(RT).where(RT.c.runtime == bindparam("runtime")).with_for_update(key_share=True)
_OPEN_BOOTS = select(B).where(B.c.runtime == bindparam("runtime"), B.c.closed_at.is_(None)).order_by(B.c.started_at)
_UPDATE_RUNTIME = update(RT).where(RT.c.runtime == bindparam("key_"))
_CLOSE = update(B).where(B.c.boot_id == bindparam("key_"))
ONE_BOOT = select(B).where(B.c.boot_id == bindparam("boot_id"))


def open_boot(conn: Connection, dialect: Dialect, boot: Boot, at: datetime) -> RuntimeStatus:
    """Register a boot whose lock is held already; see the contract."""
    new = {"runtime": boot.runtime, "state": str(RuntimeState.RUNNING), "generation": 0, "changed_at": at}
    is_first = conn.execute(dialect.insert_once(RT), new).rowcount == 1
    runtime = conn.execute(_LOCK_RUNTIME, {"runtime": boot.runtime}).one()
    for other in conn.execute(_OPEN_BOOTS, {"runtime": boot.runtime}).all():
        if dialect.is_alive(conn, other.boot_id):
            raise _owned(other)
        conn.execute(_CLOSE, {"key_": other.boot_id, "closed_at": at})
        dialect.clear_lock(other.boot_id)
    _insert_boot(conn, dialect, boot, at)
    steps = Steps(conn, at, boot_id=boot.boot_id)
    state = runtime_state(runtime.state)
    if is_first:
        steps.enter("runtime", boot.runtime, state)
    if not is_first and state is RuntimeState.RUNNING:
        steps.move("runtime", boot.runtime, state, state)
    conn.execute(_UPDATE_RUNTIME, {"key_": boot.runtime, "boot_id": boot.boot_id, "changed_at": at})
    steps.write_log()
    return reading.runtimes(conn, dialect, boot.runtime)[0]


def renew(conn: Connection, dialect: Dialect, boot_id: str) -> None:
    """Keep the boot alive.

    Raises:
        Superseded: It was taken for dead, and another boot of its runtime was opened.
    """
    if not dialect.renew(conn, boot_id):
        raise closed(boot_id)


def close_boot(conn: Connection, boot_id: str, at: datetime) -> None:
    """Mark the boot closed; the caller drops its lock after the commit."""
    conn.execute(_CLOSE, {"key_": boot_id, "closed_at": at})


def one_boot(conn: Connection, boot_id: str) -> AnyRow:
    """The row of a boot that is open.

    Raises:
        LedgerUnavailable: It was never opened here.
        Superseded: It was closed.
    """
    row = conn.execute(ONE_BOOT, {"boot_id": boot_id}).one_or_none()
    if row is None:
        raise LedgerUnavailable(f"Nothing left the browser: boot {boot_id} is not open on this ledger.")
    if row.closed_at is not None:
        raise closed(boot_id)
    return row


def closed(boot_id: str) -> Superseded:
    """The error for a boot that was closed or taken for dead."""
    return Superseded(
        f"Nothing left the browser: boot {boot_id} was closed, or taken for dead while it could not renew its lease. "
        "Start this agent again; another process may have its runs.",
        facts={"boot_id": boot_id},
    )


def _insert_boot(conn: Connection, dialect: Dialect, boot: Boot, at: datetime) -> None:
    fields = {"boot_id": boot.boot_id, "runtime": boot.runtime, "host": boot.host, "pid": boot.pid}
    labels = dict(boot.labels)
    conn.execute(insert(B).values(**fields, labels=labels, started_at=at, lease_until=dialect.lease_until()))


def _owned(other: AnyRow) -> RuntimeOwned:
    since = schema.iso(other.started_at)
    return RuntimeOwned(
        f"Nothing left the browser: runtime {other.runtime} is in use by a live process: pid {other.pid} on "
        f"{other.host}, since {since}. Give each process its own runtime name, or end the other process first.",
        facts={
            "runtime": other.runtime,
            "boot_id": other.boot_id,
            "host": other.host,
            "pid": other.pid,
            "since": since,
        },
    )
