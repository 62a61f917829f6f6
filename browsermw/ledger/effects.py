"""The life of an effect: DISPATCHED before it leaves, answered before the page knows, observed when it was used.

Called by the store, each function inside one transaction of its own. Whether a request may leave is
``protocol.admission``'s word; here the facts are gathered for it and the decision is written down.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlalchemy import bindparam, insert, select

from browsermw.errors import IllegalTransition
from browsermw.ledger import reading, schema
from browsermw.ledger.actions import action_with_effects, follow, settle_action
from browsermw.ledger.answers import record_answer
from browsermw.ledger.contract import Dispatch
from browsermw.ledger.prepared import Prepared
from browsermw.ledger.standing import demand_run, owned_run, standing_for_effect, update_run
from browsermw.ledger.steps import Steps
from browsermw.models import Effect
from browsermw.protocol.admission import Refusal, refuse_effect
from browsermw.protocol.phases import OPEN_PHASES, Phase

if TYPE_CHECKING:
    from datetime import datetime

    from sqlalchemy import Connection

    from browsermw.ledger.contract import Answer, EffectPlan, Grant
    from browsermw.ledger.schema import AnyRow

_INSERT = Prepared(insert(schema.effects))
_ADD_EVIDENCE = insert(schema.verdicts)
_CHAIN_OF = select(schema.effects.c.chain).where(schema.effects.c.effect_id == bindparam("effect_id"))
_SETTLED_BY = select(schema.verdicts.c.verdict_id).where(
    schema.verdicts.c.quarantine_id == bindparam("quarantine_id"),
    schema.verdicts.c.settles,
)


def dispatch_effect(conn: Connection, grant: Grant, plan: EffectPlan, at: datetime) -> Dispatch:
    """DISPATCHED, or REFUSED with the reason; see the contract."""
    run = owned_run(conn, grant)
    if run is None:
        return Dispatch(refusal=Refusal.SUPERSEDED)
    chain = plan.effect_id
    if plan.continues is not None:
        chain = conn.scalar(_CHAIN_OF, {"effect_id": plan.continues}) or plan.continues
    standing = standing_for_effect(conn, grant, plan.fingerprint, chain)
    refusal = plan.refusal or refuse_effect(standing)
    if refusal is Refusal.SUPERSEDED:
        return Dispatch(refusal=refusal)
    action, others = action_with_effects(conn, grant.run_id, plan.action_id)
    steps = Steps(conn, at, grant.run_id, grant.boot_id, grant.fence)
    effect = _insert(steps, plan, action, ordinal=len(others) + 1, chain=chain, refusal=refusal)
    if refusal is None:
        _action_dispatched(steps, run, action, [*(other.phase for other in others), effect.phase])
    steps.write_log()
    if refusal is None:
        return Dispatch(effect=effect)
    rival = standing.same_in_flight or standing.same_answered
    if refusal is Refusal.QUARANTINED:
        return Dispatch(refusal=refusal, rival=reading.first_doubt(conn, grant.run_id))
    return Dispatch(refusal=refusal, rival=None if rival is None else _effect(conn, rival))


def answer_effect(conn: Connection, grant: Grant, effect_id: str, answer: Answer, at: datetime) -> Effect:
    """What became of an effect; see the contract."""
    demand_run(conn, grant)
    row = _row(conn, grant.run_id, effect_id)
    if row.phase == Phase.NEEDS_REVIEW or (row.phase != Phase.DISPATCHED and _is_settled(conn, effect_id)):
        _note_late_answer(conn, row, answer, at)
        return reading.effect_of(row)
    steps = Steps(conn, at, grant.run_id, grant.boot_id, grant.fence)
    record_answer(steps, effect_id, Phase(row.phase), answer)
    action, effects = action_with_effects(conn, grant.run_id, row.action_id)
    settle_action(steps, action, follow(action, [it.phase for it in effects], closed=action.closed_at is not None))
    seen = {"external_request_id": answer.external_request_id} if answer.external_request_id else {}
    update_run(conn, grant.run_id, {"changed_at": at, **seen})
    steps.write_log()
    return next(it for it in effects if it.effect_id == effect_id)


def mark_observed(conn: Connection, grant: Grant, effect_id: str, at: datetime) -> Effect:
    """ACKNOWLEDGED → OBSERVED; see the contract."""
    demand_run(conn, grant)
    row = _row(conn, grant.run_id, effect_id)
    steps = Steps(conn, at, grant.run_id, grant.boot_id, grant.fence)
    steps.move("effect", effect_id, Phase(row.phase), Phase.OBSERVED)
    action, effects = action_with_effects(conn, grant.run_id, row.action_id)
    # The reading stands for the after-checkpoint that an action cut by a crash never got.
    settle_action(steps, action, follow(action, [it.phase for it in effects], closed=True))
    steps.write_log()
    return reading.effect_of(row).model_copy(update={"phase": Phase.OBSERVED})


def _insert(
    steps: Steps, plan: EffectPlan, action: AnyRow, *, ordinal: int, chain: str, refusal: Refusal | None
) -> Effect:
    phase = Phase.DISPATCHED if refusal is None else Phase.REFUSED
    fields: dict[str, Any] = {
        "effect_id": plan.effect_id,
        "run_id": action.run_id,
        "action_id": plan.action_id,
        "action_seq": action.seq,
        "ordinal": ordinal,
        "phase": str(phase),
        "method": schema.storable(plan.method),
        "url": schema.storable(plan.url),
        "fingerprint": plan.fingerprint,
        "channel": plan.channel,
        "chain": chain,
        "outcome": None,
        "status": None,
        "external_request_id": None,
        "location": None,
        "dispatched_at": steps.at,
        "acknowledged_at": None,
        "reason": None if refusal is None else str(refusal),
        "idempotency_key": None if refusal is not None or plan.key_header is None else _key(plan, chain),
    }
    _INSERT.run(steps.conn, fields)
    steps.enter("effect", plan.effect_id, phase, None if refusal is None else f"refused: {refusal}")
    return reading.record(Effect, fields, schema.effects)


def _key(plan: EffectPlan, chain: str) -> str:
    return chain if plan.own_key is None else schema.storable(plan.own_key)


def _action_dispatched(steps: Steps, run: AnyRow, action: AnyRow, phases: list[Phase]) -> None:
    """Move the action with its new effect; one that has ended takes none (the gate makes a ``page`` action)."""
    if action.closed_at is not None and action.phase not in OPEN_PHASES:
        raise IllegalTransition(
            f"Nothing left the browser: action {action.action_id} has ended as {action.phase} and takes no effect.",
            facts={"action_id": action.action_id, "phase": action.phase},
        )
    settle_action(steps, action, follow(action, phases, closed=action.closed_at is not None))
    last = max(run.last_action_seq or 0, action.seq)
    update_run(steps.conn, run.run_id, {"last_action_seq": last, "changed_at": steps.at})


def _row(conn: Connection, run_id: str, effect_id: str) -> AnyRow:
    row = reading.ONE_EFFECT.first(conn, {"effect_id": effect_id})
    if row is None or row.run_id != run_id:
        raise KeyError(effect_id)
    return row


def _effect(conn: Connection, effect_id: str) -> Effect:
    row = reading.ONE_EFFECT.first(conn, {"effect_id": effect_id})
    assert row is not None
    return reading.effect_of(row)


def _is_settled(conn: Connection, effect_id: str) -> bool:
    return conn.execute(_SETTLED_BY, {"quarantine_id": effect_id}).first() is not None


def _note_late_answer(conn: Connection, row: AnyRow, answer: Answer, at: datetime) -> None:
    """Keep an answer that came too late as evidence; it decides nothing."""
    facts = [f"{answer.outcome}", f"status {answer.status}" if answer.status else "", answer.reason or ""]
    conn.execute(
        _ADD_EVIDENCE,
        {
            "quarantine_id": row.effect_id,
            "run_id": row.run_id,
            "verdict": "unknown",
            "source": "late answer",
            "note": "an answer came after the doubt: " + ", ".join(fact for fact in facts if fact),
            "external_request_id": answer.external_request_id,
            "settles": False,
            "at": at,
        },
    )
