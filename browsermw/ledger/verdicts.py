"""How a doubt is settled: by the first verdict, which stands.

Called by the store for people and for reconcilers alike, inside one transaction that holds the run's row, so that
of two reviewers one settles it and the other is told what stands.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlalchemy import insert, select

from browsermw.errors import IllegalTransition
from browsermw.ledger import reading, schema
from browsermw.ledger.actions import action_with_effects, follow, settle_action
from browsermw.ledger.standing import doubt_count, lock_run, update_run
from browsermw.ledger.steps import Steps
from browsermw.protocol.outcome import Outcome
from browsermw.protocol.phases import Phase, RunPhase

if TYPE_CHECKING:
    from datetime import datetime

    from sqlalchemy import Connection

    from browsermw.ledger.schema import AnyRow
    from browsermw.models import Quarantine, Verdict

_INSERT = insert(schema.verdicts)
_PHASE_OF_VERDICT = {"committed": Phase.ACKNOWLEDGED, "not_committed": Phase.ABANDONED}


def resolve(conn: Connection, quarantine_id: str, verdict: Verdict, at: datetime) -> Quarantine:
    """Settle a doubt, or add evidence to it; see the contract."""
    run_id = reading.quarantine(conn, quarantine_id).run_id
    run = lock_run(conn, run_id)
    if run is None:
        raise KeyError(run_id)
    doubt = reading.quarantine(conn, quarantine_id)  # again, now that nobody else can settle it
    phase = doubt.action.phase if doubt.effect is None else doubt.effect.phase
    if phase is not Phase.NEEDS_REVIEW:
        raise _settled_already(conn, quarantine_id)
    new = _PHASE_OF_VERDICT.get(verdict.verdict)
    _store(conn, doubt, verdict, at, settles=new is not None)
    if new is None:
        return doubt
    steps = Steps(conn, at, run_id)
    reason = f"verdict of {verdict.source}: {verdict.verdict}"
    if doubt.effect is None:
        steps.move(
            "action", doubt.action.action_id, phase, new, reason, changed={"reason": f"{reason}; {verdict.note}"}
        )
    else:
        _settle_effect(steps, doubt, new, verdict, reason)
    _run_follows(steps, run, verdict)
    steps.write_log()
    return reading.quarantine(conn, quarantine_id)


def _settle_effect(steps: Steps, doubt: Quarantine, new: Phase, verdict: Verdict, reason: str) -> None:
    fields: dict[str, Any] = {"reason": f"{reason}; {verdict.note}"}
    if new is Phase.ACKNOWLEDGED:
        fields |= {"outcome": str(Outcome.ACCEPTED), "acknowledged_at": steps.at, "acknowledged_fence": 0}
        if verdict.external_request_id is not None:
            fields["external_request_id"] = verdict.external_request_id
    steps.move("effect", doubt.quarantine_id, Phase.NEEDS_REVIEW, new, reason, changed=fields)
    action, effects = action_with_effects(steps.conn, doubt.run_id, doubt.action.action_id)
    phases = [effect.phase for effect in effects]
    settle_action(steps, action, follow(action, phases, closed=action.closed_at is not None), reason)


def _run_follows(steps: Steps, run: AnyRow, verdict: Verdict) -> None:
    changed: dict[str, object] = {"changed_at": steps.at}
    if verdict.external_request_id is not None and verdict.verdict == "committed":
        changed["external_request_id"] = verdict.external_request_id
    if run.boot_id is None and run.phase == RunPhase.NEEDS_REVIEW and not doubt_count(steps.conn, run.run_id):
        steps.move("run", run.run_id, RunPhase.NEEDS_REVIEW, RunPhase.SUSPENDED, changed=changed)
    else:
        update_run(steps.conn, run.run_id, changed)


def _store(conn: Connection, doubt: Quarantine, verdict: Verdict, at: datetime, *, settles: bool) -> None:
    row = {"quarantine_id": doubt.quarantine_id, "run_id": doubt.run_id, "settles": settles, "at": at}
    conn.execute(_INSERT, {**row, **verdict.model_dump()})


def _settled_already(conn: Connection, quarantine_id: str) -> IllegalTransition:
    table = schema.verdicts
    wanted = select(table).where(table.c.quarantine_id == quarantine_id, table.c.settles)
    stands = conn.execute(wanted).first()
    if stands is None:
        raise reading.corrupt("verdicts", f"quarantine_id {quarantine_id}", "the doubt is settled without a verdict")
    return IllegalTransition(
        f"Nothing was changed: {quarantine_id} is settled already: {stands.verdict}, by {stands.source} at "
        f"{schema.iso(stands.at)} ({stands.note}). The first verdict stands.",
        facts={
            "quarantine_id": quarantine_id,
            "verdict": stands.verdict,
            "source": stands.source,
            "at": schema.iso(stands.at),
        },
    )
