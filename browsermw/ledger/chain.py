"""The chain of checkpoints of a run: how a link is added, and how the whole is checked at recovery.

Called inside the transaction that holds the run's row. It never repairs: a link that does not match stops recovery
(DESIGN section 7).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from sqlalchemy import bindparam, insert, select

from browsermw.ledger import schema
from browsermw.ledger.prepared import Prepared
from browsermw.ledger.reading import corrupt, record
from browsermw.ledger.schema import iso, storable
from browsermw.models import Checkpoint
from browsermw.protocol.digests import GENESIS, digest
from browsermw.protocol.phases import STEPS_OF

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from sqlalchemy import Connection, RowMapping

    from browsermw.ledger.contract import Sighting
    from browsermw.ledger.schema import AnyRow

_INSERT = Prepared(insert(schema.checkpoints))
_CHAIN = (
    select(schema.checkpoints)
    .where(schema.checkpoints.c.run_id == bindparam("run_id"))
    .order_by(schema.checkpoints.c.seq)
)
_LINES = (
    select(*(schema.transitions.c[name] for name in ("transition_id", "entity", "entity_id", "old", "new")))
    .where(schema.transitions.c.run_id == bindparam("run_id"))
    .order_by(schema.transitions.c.transition_id)
)
_PHASES = {
    "action": select(schema.actions.c.action_id, schema.actions.c.phase, schema.actions.c.seq).where(
        schema.actions.c.run_id == bindparam("run_id"),
    ),
    "effect": select(schema.effects.c.effect_id, schema.effects.c.phase, schema.effects.c.action_seq).where(
        schema.effects.c.run_id == bindparam("run_id"),
    ),
}


def add_checkpoint(
    conn: Connection, run: AnyRow, action_seq: int, moment: Literal["before", "after"], seen: Sighting, *, at: datetime
) -> dict[str, object]:
    """Add a link to the chain.

    Args:
        conn: The open transaction.
        run: The run's row, locked.
        action_seq: The action that the checkpoint stands beside.
        moment: Before or after it.
        seen: What was seen.
        at: When.

    Returns:
        The columns of the run's row that must change with it.
    """
    link: dict[str, Any] = {
        "run_id": run.run_id,
        "seq": run.checkpoint_count + 1,
        "action_seq": action_seq,
        "moment": moment,
        "url": storable(seen.url),
        "dom_hash": _words(seen.dom_hash),
        "dom_note": _words(seen.dom_note),
        "identity_state": seen.identity_state,
        "identity_hash": _words(seen.identity_hash),
        "identity_hint": _words(seen.identity_hint),
        "last_action_seq": run.last_action_seq,
        "external_request_id": run.external_request_id,
        "at": at,
    }
    link["previous"] = run.head_digest
    link["digest"] = _digest_of(run.head_digest, link)
    _INSERT.run(conn, link)
    return {"checkpoint_count": link["seq"], "head_digest": link["digest"]}


def check_chain(conn: Connection, run: AnyRow) -> Checkpoint | None:
    """Check every digest of the run, and that the last one is the run's head.

    Returns:
        The last checkpoint.

    Raises:
        LedgerCorrupt: A link is changed, missing or left over; names it.
    """
    previous, last, seq = GENESIS, None, 0
    for row in _links(conn, run.run_id):
        seq += 1
        if row.seq != seq:
            raise corrupt("checkpoints", f"seq {seq}", "it is missing", run_id=run.run_id, seq=seq)
        if row.previous != previous or row.digest != _digest_of(previous, row._mapping):  # noqa: SLF001
            raise corrupt("checkpoints", f"seq {seq}", "its digest does not match", run_id=run.run_id, seq=seq)
        previous, last = row.digest, row
    if seq != run.checkpoint_count or previous != run.head_digest:
        why = f"the run says {run.checkpoint_count} checkpoints, {seq} are there, or the last is not its head"
        raise corrupt("checkpoints", f"seq {seq}", why, run_id=run.run_id, seq=seq)
    if last is None:
        return None
    return record(Checkpoint, last._mapping, schema.checkpoints)  # noqa: SLF001


def _links(conn: Connection, run_id: str) -> Sequence[AnyRow]:
    try:
        return conn.execute(_CHAIN, {"run_id": run_id}).all()
    except ValueError as error:
        raise corrupt("checkpoints", "of the run", f"unreadable field: {error}", run_id=run_id) from error


def check_phases(conn: Connection, run: AnyRow) -> None:
    """Check that the phase of the run, and of each action and effect of it, is what the transitions log says.

    Raises:
        LedgerCorrupt: A phase and its last line differ, or a line does not follow the one before it.
    """
    logged: dict[tuple[str, str], str] = {}
    for line in conn.execute(_LINES, {"run_id": run.run_id}):
        before = logged.get((line.entity, line.entity_id))
        if line.old != before or (line.old, line.new) not in STEPS_OF.get(line.entity, {}):
            why = f"{line.entity} {line.entity_id}: the step {line.old} -> {line.new} does not follow {before}"
            raise corrupt("transitions", f"transition_id {line.transition_id}", why, run_id=run.run_id)
        logged[line.entity, line.entity_id] = line.new
    _compare(logged.pop(("run", run.run_id), None), run.phase, "runs", f"run_id {run.run_id}")
    for entity, statement in _PHASES.items():
        for key, phase, seq in conn.execute(statement, {"run_id": run.run_id}):
            where = f"{entity}_id {key}, seq {seq}"
            _compare(logged.pop((entity, key), None), phase, f"{entity}s", where, run_id=run.run_id, seq=seq)
    for entity, key in logged:
        raise corrupt(f"{entity}s", f"{entity}_id {key}", "only the transitions log has it", run_id=run.run_id)


def _compare(logged: str | None, phase: str, table: str, key: str, **facts: object) -> None:
    if logged != phase:
        raise corrupt(table, key, f"its phase is {phase}, the transitions log says {logged}", phase=phase, **facts)


def _digest_of(previous: str, link: Mapping[str, Any] | RowMapping) -> str:
    facts = {name: link[name] for name in Checkpoint.model_fields if name not in {"at", "digest"}}
    return digest(previous, {**facts, "at": iso(link["at"])})


def _words(text: str | None) -> str | None:
    return None if text is None else storable(text)
