"""The ledger itself: each call of the contract as one transaction.

Thin on purpose: opens the transaction, lets the file of the subject do the work, commits, and turns the database's
errors into ours. No transaction stays open when a call returns. A commit whose answer was lost with the connection
is reported as not written; a record that was written after all then counts as a doubt, never as permission.
"""

from __future__ import annotations

import os
import time
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from sqlalchemy.exc import SQLAlchemyError

from browsermw.errors import RuntimeOwned
from browsermw.events import Events
from browsermw.faults import Point, reach
from browsermw.ledger import actions, boots, claims, effects, reading, verdicts
from browsermw.ledger.contract import NO_FRAMES
from browsermw.ledger.steps import STEPS_TAKEN

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from sqlalchemy import Connection, Engine

    from browsermw.ledger.contract import ActionPlan, Answer, Boot, Claim, Dispatch, EffectPlan, Grant, Sighting
    from browsermw.ledger.dialects import Dialect
    from browsermw.models import (
        Action,
        Checkpoint,
        Effect,
        Quarantine,
        RunSummary,
        RuntimeStatus,
        Transition,
        Verdict,
    )
    from browsermw.protocol.phases import Phase, RunPhase
    from browsermw.protocol.recovery import Wire

NOTICE_S = 1.0
"""How long a boot that finds its runtime owned asks again, on a database behind a connection."""
NOTICE_POLL_S = 0.05

log = Events("browsermw.ledger")


class SqlLedger:
    """A ledger on SQLite or PostgreSQL; ``open_ledger`` makes one. See ``contract.Ledger`` for each call."""

    def __init__(self, engine: Engine, dialect: Dialect) -> None:
        """Take an engine whose database is migrated and checked."""
        self._engine = engine
        self._reader = engine.execution_options(**dialect.reading_options)
        self._dialect = dialect
        self.writer_count = dialect.writer_count
        self.lease_needed = dialect.lease_until() is not None
        self.key_path = dialect.key_path
        self._pid = os.getpid()

    @property
    def url(self) -> str:
        """Where it is, the password hidden."""
        return self._dialect.shown_url

    def open_boot(self, boot: Boot) -> RuntimeStatus:
        """Register a boot and take its lock."""
        with self._errors():
            self._dialect.take_lock(self._engine, boot.boot_id)
        patience_until_s = time.monotonic() + (NOTICE_S if self.lease_needed else 0)
        try:
            while True:
                try:
                    with self._writing("open_boot") as conn:
                        return boots.open_boot(conn, self._dialect, boot, _now())
                except RuntimeOwned:
                    # A server hears of a killed process a moment after its death, and a restart comes that fast.
                    if time.monotonic() >= patience_until_s:
                        raise
                time.sleep(NOTICE_POLL_S)
        except BaseException:
            self._dialect.drop_lock(boot.boot_id)
            raise

    def renew(self, boot_id: str) -> None:
        """Renew the boot's lease on the server's clock."""
        if self._dialect.lease_until() is not None:
            with self._writing("renew") as conn:
                boots.renew(conn, self._dialect, boot_id)

    def close_boot(self, boot_id: str) -> None:
        """Mark the boot closed and drop its lock, which is dropped even where the mark cannot be written."""
        try:
            with self._writing("close_boot") as conn:
                boots.close_boot(conn, boot_id, _now())
        finally:
            self._dialect.drop_lock(boot_id)

    def claim_run(self, run_id: str, boot_id: str, labels: Mapping[str, str]) -> Claim:
        """Claim, raise the fence, check the digests, sweep."""
        with self._writing("claim_run") as conn:
            return claims.claim_run(conn, self._dialect, run_id, boot_id, labels, at=_now())

    def release_run(self, grant: Grant, *, failed: bool) -> RunPhase:
        """Leave the run."""
        with self._writing("release_run") as conn:
            return claims.release_run(conn, grant, _now(), failed=failed)

    def set_wire(self, grant: Grant, wire: Wire) -> None:
        """Record the weakest wire."""
        with self._writing("set_wire") as conn:
            claims.set_wire(conn, grant, wire)

    def plan_action(self, grant: Grant, plan: ActionPlan, before: Sighting, armed: Sequence[EffectPlan] = ()) -> Action:
        """Admission, before-checkpoint and PLANNED, with the frames that it may send."""
        with self._writing("plan_action") as conn:
            at = _now()
            planned = actions.plan_action(conn, grant, plan, before, at)
            sent = [effects.dispatch_effect(conn, grant, effect, at).effect for effect in armed]
            return planned.model_copy(update={"effects": tuple(filter(None, sent))}) if armed else planned

    def dispatch_effect(self, grant: Grant, plan: EffectPlan) -> Dispatch:
        """DISPATCHED, or REFUSED with the reason."""
        with self._writing("dispatch_effect") as conn:
            return effects.dispatch_effect(conn, grant, plan, _now())

    def answer_effect(self, grant: Grant, effect_id: str, answer: Answer) -> Effect:
        """What became of an effect."""
        with self._writing("answer_effect") as conn:
            return effects.answer_effect(conn, grant, effect_id, answer, _now())

    def close_action(
        self,
        grant: Grant,
        action_id: str,
        after: Sighting,
        *,
        failed: str | None,
        frames: Mapping[str, Answer] = NO_FRAMES,
    ) -> Action:
        """After-checkpoint and the phase that follows."""
        with self._writing("close_action") as conn:
            return actions.close_action(conn, grant, action_id, after, failed=failed, frames=frames, at=_now())

    def resolve(self, quarantine_id: str, verdict: Verdict) -> Quarantine:
        """Settle a doubt."""
        with self._writing("resolve") as conn:
            return verdicts.resolve(conn, quarantine_id, verdict, _now())

    def mark_observed(self, grant: Grant, effect_id: str) -> Effect:
        """ACKNOWLEDGED → OBSERVED."""
        with self._writing("mark_observed") as conn:
            return effects.mark_observed(conn, grant, effect_id, _now())

    def quarantined(self, run_id: str | None = None) -> Sequence[Quarantine]:
        """What is in doubt."""
        with self._reading() as conn:
            return reading.quarantined(conn, run_id)

    def quarantine(self, quarantine_id: str) -> Quarantine:
        """One doubt, settled or not; ``KeyError`` where there never was one."""
        with self._reading() as conn:
            return reading.quarantine(conn, quarantine_id)

    def verdicts(self, quarantine_id: str) -> Sequence[tuple[Verdict, datetime]]:
        """The evidence about one doubt, oldest first."""
        with self._reading() as conn:
            return reading.verdicts(conn, quarantine_id)

    def actions(self, run_id: str, *, phases: Sequence[Phase] | None = None) -> Sequence[Action]:
        """The run's actions with their effects, in order."""
        with self._reading() as conn:
            return reading.actions(conn, run_id, phases)

    def checkpoints(self, run_id: str) -> Sequence[Checkpoint]:
        """The run's chain of checkpoints."""
        with self._reading() as conn:
            return reading.checkpoints(conn, run_id)

    def transitions(self, run_id: str) -> Sequence[Transition]:
        """The run's lines of the log, oldest first."""
        with self._reading() as conn:
            return reading.transitions(conn, run_id)

    def runs(self) -> Sequence[RunSummary]:
        """All runs at a glance."""
        with self._reading() as conn:
            return reading.runs(conn, self._dialect)

    def run(self, run_id: str) -> RunSummary:
        """One run at a glance; ``KeyError`` where there is none."""
        with self._reading() as conn:
            found = reading.runs(conn, self._dialect, run_id)
        if not found:
            raise KeyError(run_id)
        return found[0]

    def runtimes(self) -> Sequence[RuntimeStatus]:
        """All runtimes at a glance."""
        with self._reading() as conn:
            return reading.runtimes(conn, self._dialect)

    def close(self) -> None:
        """Close the connections and drop the locks of boots that are still open, as their death would."""
        self._dialect.close(self._engine)

    @contextmanager
    def _writing(self, call: str) -> Iterator[Connection]:
        with self._errors(), self._dialect.writing(self._engine) as conn:
            conn.info.pop(STEPS_TAKEN, None)
            with conn.begin():
                yield conn
                reach(Point.LEDGER_BEFORE_COMMIT, call)
            reach(Point.LEDGER_AFTER_COMMIT, call)
            _announce(conn.info.pop(STEPS_TAKEN, ()))

    @contextmanager
    def _reading(self) -> Iterator[Connection]:
        with self._errors(), self._reader.connect() as conn, conn.begin():
            yield conn

    @contextmanager
    def _errors(self) -> Iterator[None]:
        if os.getpid() != self._pid:
            raise self._dialect.unavailable("this is a forked child; its parent holds the connections and the locks")
        try:
            yield
        except SQLAlchemyError as error:
            raise self._dialect.explain(error) from error
        except UnicodeEncodeError as error:
            raise self._dialect.unavailable(f"a name holds what a database cannot ({error})") from error
        except ValueError as error:
            raise self._dialect.damaged(f"a record cannot be read ({error})") from error


def _announce(lines: Sequence[Mapping[str, object]]) -> None:
    """One event for each step that is durable now."""
    for line in lines:
        facts = {name: line[name] for name in ("entity_id", "run_id", "old", "new", "fence", "reason")}
        name = f"{line['entity']}_{str(line['new']).lower()}"
        log.info(name, **facts)


def _now() -> datetime:
    return datetime.now(UTC)
