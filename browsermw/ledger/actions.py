"""The life of an action: planned before it is performed, closed after it.

Called by the store, each function inside one transaction of its own. Whether an action may start is
``protocol.admission``'s word, which phase follows from its effects is ``protocol.phases``'; here it is written down.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlalchemy import bindparam, insert, select, update

from browsermw.errors import IllegalTransition, Quarantined
from browsermw.ledger import reading, schema
from browsermw.ledger.answers import record_answer
from browsermw.ledger.chain import add_checkpoint
from browsermw.ledger.prepared import Prepared
from browsermw.ledger.standing import demand_run, held, standing_for_action, superseded, update_run
from browsermw.ledger.steps import Steps
from browsermw.models import Action, Effect
from browsermw.protocol.admission import Refusal, refuse_action
from browsermw.protocol.effect_rules import SOCKET
from browsermw.protocol.phases import Phase, action_phase

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from datetime import datetime

    from sqlalchemy import Connection

    from browsermw.errors import BrowsermwError
    from browsermw.ledger.contract import ActionPlan, Answer, Grant, Sighting
    from browsermw.ledger.schema import AnyRow

_INSERT = Prepared(insert(schema.actions))
_ANSWERED_LATE = Prepared(
    select(schema.actions).where(
        schema.actions.c.run_id == bindparam("run_id"),
        schema.actions.c.phase == str(Phase.ACKNOWLEDGED),
        schema.actions.c.fence == bindparam("fence"),
        schema.actions.c.closed_at.is_not(None),
    )
)
_UPDATE = Prepared(update(schema.actions).where(schema.actions.c.action_id == bindparam("key_")))


def plan_action(conn: Connection, grant: Grant, plan: ActionPlan, before: Sighting, at: datetime) -> Action:
    """Admission, before-checkpoint and PLANNED; see the contract."""
    run = demand_run(conn, grant)
    standing = standing_for_action(conn, grant)
    refusal = refuse_action(standing, reads_only=plan.reads_only or plan.passes_quarantine)
    if refusal is not None:
        raise _refused(conn, refusal, grant, standing.runtime)
    steps = Steps(conn, at, grant.run_id, grant.boot_id, grant.fence)
    seq = run.action_count + 1
    fields: dict[str, Any] = {
        "action_id": plan.action_id,
        "run_id": grant.run_id,
        "seq": seq,
        "kind": plan.kind,
        "method": plan.method,
        "target": schema.storable(plan.target),
        "url": schema.storable(before.url),
        "phase": str(Phase.PLANNED),
        "wire": str(plan.wire),
        "reads_only": plan.reads_only,
        "fence": grant.fence,
        "planned_at": at,
        "closed_at": None,
        "reason": None,
    }
    if plan.kind != "page":
        observe_answered(steps)
    _INSERT.run(conn, fields)
    steps.enter("action", plan.action_id, Phase.PLANNED)
    moved = add_checkpoint(conn, run, seq, "before", before, at=at)
    update_run(conn, grant.run_id, {"action_count": seq, "changed_at": at, **moved})
    steps.write_log()
    return reading.record(Action, fields, schema.actions, effects=())


def close_action(
    conn: Connection,
    grant: Grant,
    action_id: str,
    after: Sighting,
    *,
    failed: str | None,
    frames: Mapping[str, Answer],
    at: datetime,
) -> Action:
    """After-checkpoint and the phase that follows; see the contract."""
    run = demand_run(conn, grant)
    action, effects = action_with_effects(conn, grant.run_id, action_id)
    if action.closed_at is not None:
        raise IllegalTransition(
            f"Nothing was changed: action {action_id} was closed at {schema.iso(action.closed_at)} already.",
            facts={"action_id": action_id},
        )
    steps = Steps(conn, at, grant.run_id, grant.boot_id, grant.fence)
    effects = _with_frames(steps, action, effects, frames)
    if failed is None:
        effects = [_taken(steps, effect) for effect in effects]
    new = _phase_at_its_end(action, effects, failed)
    changed = {"closed_at": at, "reason": action.reason if failed is None else failed}
    settle_action(steps, action, new, None if failed is None else f"the call failed: {failed}", changed)
    moved = add_checkpoint(conn, run, action.seq, "after", after, at=at)
    update_run(conn, grant.run_id, {"changed_at": at, **moved})
    steps.write_log()
    fields = {**action._mapping, "phase": new, **changed}  # noqa: SLF001
    return reading.record(Action, fields, schema.actions, effects=tuple(effects))


def observe_answered(steps: Steps) -> None:
    """What was answered after its action's own checkpoint is observed by the agent's next one.

    Only of this very boot: what an earlier one left unread stays so until the agent says that it read it.
    """
    marks = {"run_id": steps.run_id, "fence": steps.fence}
    for action in _ANSWERED_LATE.all(steps.conn, marks):
        _, effects = action_with_effects(steps.conn, action.run_id, action.action_id)
        taken = [_taken(steps, effect).phase for effect in effects]
        settle_action(steps, action, follow(action, taken, closed=True))


def action_with_effects(conn: Connection, run_id: str, action_id: str) -> tuple[AnyRow, list[Effect]]:
    """An action of the run and its effects.

    Raises:
        KeyError: The run has no such action.
    """
    action = reading.ONE_ACTION.first(conn, {"action_id": action_id})
    if action is None or action.run_id != run_id:
        raise KeyError(action_id)
    rows = reading.EFFECTS_OF_ACTION.all(conn, {"action_id": action_id})
    return action, [reading.effect_of(row) for row in rows]


def follow(action: AnyRow, effects: Collection[Phase], *, closed: bool) -> Phase:
    """The phase that an action takes from its effects.

    One that moved without them keeps its phase: in doubt on its own account, because nobody saw what it sent, until
    a verdict ends that; or settled by one.
    """
    if action.phase != Phase.PLANNED and not set(effects) - {Phase.REFUSED}:
        return Phase(action.phase)
    return action_phase(effects, closed=closed)


def settle_action(
    steps: Steps, action: AnyRow, new: Phase, reason: str | None = None, changed: dict[str, Any] | None = None
) -> None:
    """Move the action to a phase, or only set its columns where it has that phase already."""
    if action.phase != new:
        steps.move("action", action.action_id, Phase(action.phase), new, reason, changed=changed)
    elif changed:
        _UPDATE.run(steps.conn, {"key_": action.action_id, **changed})


def _with_frames(steps: Steps, action: AnyRow, effects: list[Effect], frames: Mapping[str, Answer]) -> list[Effect]:
    """The action's effects, those that it was armed with settled."""
    waiting = [effect for effect in effects if effect.effect_id in frames and effect.phase is Phase.DISPATCHED]
    for effect in waiting:
        record_answer(steps, effect.effect_id, effect.phase, frames[effect.effect_id])
    return action_with_effects(steps.conn, action.run_id, action.action_id)[1] if waiting else effects


def _phase_at_its_end(action: AnyRow, effects: list[Effect], failed: str | None) -> Phase:
    """An action beside an open WebSocket that sent no frame is one without that effect."""
    counted = [it.phase for it in effects if it.channel != SOCKET or it.phase is not Phase.ABANDONED]
    is_disarmed = len(counted) < len(effects)
    new = action_phase(counted, closed=True) if is_disarmed else follow(action, counted, closed=True)
    return Phase.ABANDONED if failed is not None and not counted and new is Phase.OBSERVED else new


def _taken(steps: Steps, effect: Effect) -> Effect:
    """The effect, observed if it was answered: the call that sent it returned to the agent."""
    if effect.phase is not Phase.ACKNOWLEDGED:
        return effect
    steps.move("effect", effect.effect_id, effect.phase, Phase.OBSERVED)
    return effect.model_copy(update={"phase": Phase.OBSERVED})


def _refused(conn: Connection, refusal: Refusal, grant: Grant, runtime: str) -> BrowsermwError:
    if refusal is Refusal.SUPERSEDED:
        return superseded(grant)
    if refusal is Refusal.HELD:
        return held(runtime, run_id=grant.run_id)
    ids = [it.quarantine_id for it in reading.quarantined(conn, grant.run_id)]
    return Quarantined(
        f"Nothing left the browser: run {grant.run_id} has {len(ids)} in doubt ({', '.join(ids[:3])}) and is "
        "read-only until they are settled. See `browsermw quarantine list`; settle each with a verdict.",
        facts={"run_id": grant.run_id, "quarantine_ids": ids},
    )
