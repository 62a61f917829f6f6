"""How a run changes hands: the claim with its checks and its sweep, and the release.

Called by the store, each function inside one transaction of its own. A claim decides by owner and fence, never by
age; what becomes of what a dead boot left is ``protocol.recovery``'s word.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlalchemy import select

from browsermw.errors import RunOwned
from browsermw.ledger import boots, reading, schema
from browsermw.ledger.actions import observe_answered, settle_action
from browsermw.ledger.chain import check_chain, check_phases
from browsermw.ledger.contract import Claim, Grant
from browsermw.ledger.standing import UNREAD_EFFECT, demand_run, doubt_count, held, lock_run, runtime_state, update_run
from browsermw.ledger.steps import Steps
from browsermw.models import ResumeReport
from browsermw.protocol.admission import refuse_claim
from browsermw.protocol.digests import GENESIS
from browsermw.protocol.phases import Phase, RunPhase, action_phase
from browsermw.protocol.recovery import Wire, classify_action, classify_effect

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import datetime

    from sqlalchemy import Connection

    from browsermw.ledger.dialects import Dialect
    from browsermw.ledger.schema import AnyRow
    from browsermw.models import Checkpoint
    from browsermw.protocol.recovery import Classified

A, E = schema.actions, schema.effects

_SWEPT_ACTIONS = (str(Phase.PLANNED), str(Phase.DISPATCHED), str(Phase.ACKNOWLEDGED))


def claim_run(
    conn: Connection, dialect: Dialect, run_id: str, boot_id: str, labels: Mapping[str, str], *, at: datetime
) -> Claim:
    """Claim, check, sweep; see the contract."""
    boot = boots.one_boot(conn, boot_id)
    run = lock_run(conn, run_id)
    is_new = run is None and _create(conn, dialect, run_id, boot.runtime, labels, at=at)
    if run is None:
        run = lock_run(conn, run_id)
        assert run is not None
    _admit(conn, boot.runtime)
    if run.boot_id is not None:
        _demand_dead(conn, dialect, run, boot_id)
    steps = Steps(conn, at, run_id, boot_id, run.fence + 1)
    owner = {"runtime": boot.runtime, "boot_id": boot_id, "fence": run.fence + 1, "claimed_at": at, "changed_at": at}
    grant = Grant(run_id, boot_id, run.fence + 1)
    if is_new:
        steps.enter("run", run_id, RunPhase.ACTIVE)
        update_run(conn, run_id, owner)
        steps.write_log()
        return Claim(grant, None)
    last = check_chain(conn, run)
    check_phases(conn, run)
    steps.move(
        "run", run_id, RunPhase(run.phase), RunPhase.ACTIVE, changed={**owner, "labels": {**run.labels, **labels}}
    )
    _sweep(steps, run_id)
    steps.write_log()
    return Claim(grant, _report(conn, grant, last, _unseen_since(run)))


def release_run(conn: Connection, grant: Grant, at: datetime, *, failed: bool) -> RunPhase:
    """Leave the run; see the contract."""
    run = demand_run(conn, grant)
    steps = Steps(conn, at, grant.run_id, grant.boot_id, grant.fence)
    if not failed:
        observe_answered(steps)
    _settle_effects(steps, grant.run_id, "no answer before the run ended")
    for action, effects in _open_actions(conn, grant.run_id):
        if action.phase == Phase.PLANNED:
            settle_action(steps, action, Phase.ABANDONED, "the run ended", {"reason": "the run ended"})
        elif set(effects) - {Phase.REFUSED}:
            settle_action(steps, action, action_phase(effects, closed=action.closed_at is not None))
    new = RunPhase.SUSPENDED if failed else RunPhase.FINISHED
    if doubt_count(conn, grant.run_id):
        new = RunPhase.NEEDS_REVIEW
    steps.move("run", grant.run_id, RunPhase(run.phase), new, changed={"boot_id": None, "changed_at": at})
    steps.write_log()
    return new


def set_wire(conn: Connection, grant: Grant, wire: Wire) -> None:
    """Record the weakest wire; see the contract."""
    run = demand_run(conn, grant)
    if run.wire is None or wire.strength < Wire(run.wire).strength:
        update_run(conn, grant.run_id, {"wire": str(wire)})


def _create(
    conn: Connection, dialect: Dialect, run_id: str, runtime: str, labels: Mapping[str, str], *, at: datetime
) -> bool:
    """Insert the run without an owner; ``False`` where another process was faster."""
    row = {"run_id": run_id, "phase": str(RunPhase.ACTIVE), "runtime": runtime, "fence": 0, "labels": dict(labels)}
    row |= {"action_count": 0, "checkpoint_count": 0, "head_digest": GENESIS}
    row |= {"claimed_at": at, "created_at": at, "changed_at": at}
    return conn.execute(dialect.insert_once(schema.runs), row).rowcount == 1


def _admit(conn: Connection, runtime: str) -> None:
    table = schema.runtimes
    text = conn.scalar(select(table.c.state).where(table.c.runtime == runtime).with_for_update(read=True))
    state = runtime_state(str(text))
    if refuse_claim(state) is not None:
        raise held(state, runtime=runtime)


def _demand_dead(conn: Connection, dialect: Dialect, run: AnyRow, boot_id: str) -> None:
    owner = conn.execute(boots.ONE_BOOT, {"boot_id": run.boot_id}).one()
    if run.boot_id != boot_id and (owner.closed_at is not None or not dialect.is_alive(conn, run.boot_id)):
        dialect.clear_lock(run.boot_id)
        return
    since = schema.iso(run.claimed_at)
    who = "this very process" if run.boot_id == boot_id else "a live process"
    raise RunOwned(
        f"Nothing left the browser: {who} owns run {run.run_id}: runtime {owner.runtime}, pid {owner.pid} on "
        f"{owner.host}, since {since}. Wait with mw.run(run_id, wait_s=...) or let the owner finish.",
        facts={
            "run_id": run.run_id,
            "runtime": owner.runtime,
            "boot_id": owner.boot_id,
            "host": owner.host,
            "pid": owner.pid,
            "since": since,
        },
    )


def _sweep(steps: Steps, run_id: str) -> None:
    """Classify what an earlier boot left open."""
    _settle_effects(steps, run_id, None)
    for action, effects in _open_actions(steps.conn, run_id):
        found = classify_action(
            Phase(action.phase),
            Wire(action.wire),
            effects,
            closed=action.closed_at is not None,
            reads_only=action.reads_only,
        )
        if found.phase == action.phase:
            continue
        changed: dict[str, Any] = {"reason": found.reason}
        if found.phase is Phase.NEEDS_REVIEW and Phase.NEEDS_REVIEW not in effects:
            changed |= {"doubt_at": steps.at, "doubt_reason": found.reason}
        settle_action(steps, action, found.phase, found.reason, changed)


def _settle_effects(steps: Steps, run_id: str, reason: str | None) -> None:
    """Put every unanswered effect of the run in doubt."""
    unanswered = select(E).where(E.c.run_id == run_id, E.c.phase == str(Phase.DISPATCHED))
    for row in steps.conn.execute(unanswered.order_by(E.c.action_seq, E.c.ordinal)).all():
        found: Classified = classify_effect(Phase(row.phase))
        why = reason or found.reason
        doubt = {"reason": why, "doubt_at": steps.at, "doubt_reason": why}
        steps.move("effect", row.effect_id, Phase(row.phase), found.phase, why, changed=doubt)


def _open_actions(conn: Connection, run_id: str) -> list[tuple[AnyRow, list[Phase]]]:
    """The run's actions that are neither ended nor in doubt, each with the phases of its effects."""
    mine = (A.c.run_id == run_id, A.c.phase.in_(_SWEPT_ACTIONS))
    wanted = select(E.c.action_id, E.c.phase).join(A, A.c.action_id == E.c.action_id).where(*mine)
    phases: dict[str, list[Phase]] = {}
    for action_id, phase in conn.execute(wanted):
        phases.setdefault(action_id, []).append(Phase(phase))
    rows = conn.execute(select(A).where(*mine).order_by(A.c.seq)).all()
    return [(row, phases.get(row.action_id, [])) for row in rows]


def _unseen_since(run: AnyRow) -> datetime | None:
    """A process that died lets its browser live on; only a relay dies with it."""
    died = run.boot_id is not None
    return run.changed_at if died and run.wire is not None and Wire(run.wire) is not Wire.SEALED else None


def _report(conn: Connection, grant: Grant, last: Checkpoint | None, unseen_since: datetime | None) -> ResumeReport:
    """What the run has behind it, after the sweep."""
    every = reading.actions(conn, grant.run_id)
    unread = conn.execute(
        select(E)
        .join(A, A.c.action_id == E.c.action_id)
        .where(E.c.run_id == grant.run_id, UNREAD_EFFECT)
        .order_by(E.c.action_seq, E.c.ordinal),
        {"fence": grant.fence},
    )
    left_open = select(A.c.action_id).where(A.c.run_id == grant.run_id, A.c.closed_at.is_(None))
    last_fence = select(A.c.fence).where(A.c.run_id == grant.run_id).order_by(A.c.seq.desc()).limit(1)
    # Of the boot that last did any work: an older boot's unfinished action was met by a later one already.
    undone = set(conn.scalars(left_open.where(A.c.fence == last_fence.scalar_subquery())))
    is_done: Callable[[Phase], bool] = {Phase.ACKNOWLEDGED, Phase.OBSERVED}.__contains__
    return ResumeReport(
        run_id=grant.run_id,
        last_checkpoint=last,
        done=tuple(action for action in every if is_done(action.phase)),
        in_doubt=reading.quarantined(conn, grant.run_id),
        never_left=tuple(it for it in every if it.phase is Phase.ABANDONED and it.action_id in undone),
        answered_unread=tuple(reading.effect_of(row) for row in unread),
        unseen_since=unseen_since,
    )
