"""Who owns the run, and what stands in the way: the facts that ``protocol.admission`` decides on.

The first thing in each granted transaction. The run's row is locked first, then the runtime's row is read under a
shared lock, always in this order (a hold that updates the runtime's row must not lock a run's afterwards). The facts
are read in a second statement, because PostgreSQL's READ COMMITTED gives the waiting statement an old picture of
other tables.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlalchemy import and_, bindparam, func, literal, null, or_, select, update

from browsermw.errors import Held, Superseded
from browsermw.ledger import schema
from browsermw.ledger.prepared import Prepared
from browsermw.ledger.reading import corrupt
from browsermw.protocol.admission import Standing
from browsermw.protocol.outcome import Outcome
from browsermw.protocol.phases import IN_DOUBT_PHASES, Phase, RuntimeState

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sqlalchemy import Connection

    from browsermw.ledger.contract import Grant
    from browsermw.ledger.schema import AnyRow

A, E, RT = schema.actions, schema.effects, schema.runtimes

LOCK_RUN = Prepared(
    select(schema.runs)
    .where(schema.runs.c.run_id == bindparam("run_id"))
    .with_for_update(of=schema.runs, key_share=True)
)

UNREAD_EFFECT = and_(
    E.c.phase == str(Phase.ACKNOWLEDGED),
    or_(E.c.outcome == str(Outcome.ACCEPTED), E.c.outcome == str(Outcome.AMBIGUOUS)),
    # A live boot saw its own answers; a verdict (fence 0) was given over an action that nobody finished.
    E.c.acknowledged_fence < bindparam("fence"),
    or_(A.c.phase == str(Phase.ACKNOWLEDGED), E.c.acknowledged_fence == 0),
)
"""An effect, joined with its action, whose answer is recorded and whose result no one took."""

_DOUBT_COUNT = (
    select(func.count())
    .where(E.c.phase == str(Phase.NEEDS_REVIEW), E.c.run_id == bindparam("run_id"))
    .scalar_subquery()
    + select(func.count())
    .where(A.c.phase == str(Phase.NEEDS_REVIEW), A.c.doubt_at.is_not(None), A.c.run_id == bindparam("run_id"))
    .scalar_subquery()
)
_SAME = and_(E.c.run_id == bindparam("run_id"), E.c.fingerprint == bindparam("fingerprint"))
_SAME_IN_FLIGHT = (
    select(E.c.effect_id)
    .where(
        _SAME,
        or_(*(E.c.phase == phase for phase in sorted(map(str, IN_DOUBT_PHASES)))),
        E.c.chain != bindparam("chain"),
    )
    .order_by(E.c.action_seq, E.c.ordinal)
    .limit(1)
    .scalar_subquery()
)
_SAME_ANSWERED = (
    select(E.c.effect_id)
    .join(A, A.c.action_id == E.c.action_id)
    .where(_SAME, UNREAD_EFFECT)
    .order_by(E.c.action_seq.desc(), E.c.ordinal.desc())
    .limit(1)
    .scalar_subquery()
)
_MY_RUNTIME = select(schema.boots.c.runtime).where(schema.boots.c.boot_id == bindparam("boot_id")).scalar_subquery()


def _facts(same_in_flight: Any, same_answered: Any) -> Prepared:
    columns = (RT.c.state, _DOUBT_COUNT.label("doubts"), same_in_flight.label("flying"), same_answered.label("read"))
    return Prepared(select(*columns).where(RT.c.runtime == _MY_RUNTIME).with_for_update(of=RT, read=True))


_FACTS_FOR_ACTION = _facts(null(), null())
_FACTS_FOR_EFFECT = _facts(_SAME_IN_FLIGHT, _SAME_ANSWERED)
_UPDATE_RUN = Prepared(update(schema.runs).where(schema.runs.c.run_id == bindparam("key_")))
DOUBT_COUNT = select(_DOUBT_COUNT, literal(1))


def lock_run(conn: Connection, run_id: str) -> AnyRow | None:
    """Lock the run's row until the transaction ends, and read it."""
    return LOCK_RUN.first(conn, {"run_id": run_id})


def owned_run(conn: Connection, grant: Grant) -> AnyRow | None:
    """Lock the run's row; ``None`` unless the grant still holds."""
    run = lock_run(conn, grant.run_id)
    if run is None or run.boot_id != grant.boot_id or run.fence != grant.fence:
        return None
    return run


def demand_run(conn: Connection, grant: Grant) -> AnyRow:
    """Lock the run's row.

    Raises:
        Superseded: The grant no longer holds.
    """
    run = owned_run(conn, grant)
    if run is None:
        raise superseded(grant)
    return run


def superseded(grant: Grant) -> Superseded:
    """The error for a grant that no longer holds."""
    return Superseded(
        f"Nothing left the browser: this process no longer owns run {grant.run_id} (its fence was {grant.fence}). "
        "Stop this agent; the run goes on where the new owner is.",
        facts={"run_id": grant.run_id, "boot_id": grant.boot_id, "fence": grant.fence},
    )


def held(state: str, **facts: object) -> Held:
    """The error for a runtime that admits no work."""
    return Held(
        f"Nothing left the browser: this runtime is {state} and admits no work. "
        "The work keeps its place and its attempt count; try again after `browsermw reopen`.",
        facts={"state": str(state), **facts},
    )


def standing_for_action(conn: Connection, grant: Grant) -> Standing:
    """The facts for an action of a run whose row is locked and owned."""
    row = _FACTS_FOR_ACTION.first(conn, {"run_id": grant.run_id, "boot_id": grant.boot_id})
    if row is None:
        return Standing(owns=False, runtime=RuntimeState.RUNNING)
    return Standing(owns=True, runtime=runtime_state(row.state), doubt_count=row.doubts)


def standing_for_effect(conn: Connection, grant: Grant, fingerprint: str, chain: str) -> Standing:
    """The facts for an effect of a run whose row is locked and owned.

    Args:
        conn: The open transaction.
        grant: Proof of ownership.
        fingerprint: The effect's.
        chain: Id of the first effect of its chain of redirect hops; those are not its rivals.
    """
    marks = {
        "run_id": grant.run_id,
        "boot_id": grant.boot_id,
        "fence": grant.fence,
        "fingerprint": fingerprint,
        "chain": chain,
    }
    row = _FACTS_FOR_EFFECT.first(conn, marks)
    if row is None:
        return Standing(owns=False, runtime=RuntimeState.RUNNING)
    return Standing(
        owns=True,
        runtime=runtime_state(row.state),
        doubt_count=row.doubts,
        same_in_flight=row.flying,
        same_answered=row.read,
    )


def doubt_count(conn: Connection, run_id: str) -> int:
    """How many doubts of the run are unsettled."""
    return int(conn.execute(DOUBT_COUNT, {"run_id": run_id}).one()[0])


def runtime_state(text: str) -> RuntimeState:
    """The state in the row; unreadable is damage, and admits nothing (R17)."""
    try:
        return RuntimeState(text)
    except ValueError as error:
        raise corrupt("runtimes", "state", f"unknown state {text!r}") from error


def update_run(conn: Connection, run_id: str, values: Mapping[str, object]) -> None:
    """Set columns of the run's row, which is locked."""
    _UPDATE_RUN.run(conn, {"key_": run_id, **values})
