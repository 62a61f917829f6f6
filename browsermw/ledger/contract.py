"""What a ledger promises: the one list of calls that the rest of browsermw makes.

Every call is synchronous, is one transaction, and is durable when it returns. ``runtime`` runs the calls on the
ledger's own threads. A call that takes a ``Grant`` checks inside its transaction that this boot still owns the
run under this fence; if not, it writes nothing and says ``Superseded``. A call that changes a phase first asks
``protocol.phases.check_step``, then makes one guarded update (``... WHERE phase = old``), and writes one line
into the transitions log in the same transaction.

Errors, always these and never the database driver's: ``LedgerUnavailable`` (nothing was written),
``LedgerCorrupt`` (names the record), ``Superseded``, ``IllegalTransition``, ``Held``, ``RunOwned``,
``RuntimeOwned``, ``Quarantined``. Nothing may leave the browser after any of them. ``KeyError`` names an action, an
effect, a run or a quarantine that is not there. A ledger belongs to the process that opened it; a forked child must
open its own.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime
    from pathlib import Path

    from browsermw.models import (
        Action,
        Checkpoint,
        Effect,
        Quarantine,
        ResumeReport,
        RunSummary,
        RuntimeStatus,
        Transition,
        Verdict,
    )
    from browsermw.protocol.admission import Refusal
    from browsermw.protocol.outcome import Outcome
    from browsermw.protocol.phases import Phase, RunPhase
    from browsermw.protocol.recovery import Wire


@dataclass(frozen=True)
class Grant:
    """Proof of ownership that each write carries.

    Attributes:
        run_id: The run.
        boot_id: The boot that owns it.
        fence: The fence that the claim was given; it only grows.
    """

    run_id: str
    boot_id: str
    fence: int


@dataclass(frozen=True)
class Claim:
    """A run as it was claimed: the grant, and what an earlier boot left (``None`` for a new run)."""

    grant: Grant
    resume: ResumeReport | None


@dataclass(frozen=True)
class Sighting:
    """What was seen on a page, on its way into a checkpoint. All texts are already redacted."""

    url: str = ""
    dom_hash: str | None = None
    dom_note: str | None = None
    identity_state: str = "undeclared"
    identity_hash: str | None = None
    identity_hint: str | None = None


@dataclass(frozen=True)
class ActionPlan:
    """An action that is about to start.

    Attributes:
        action_id: Unique id, made by the caller before any I/O.
        kind: See ``models.Action``.
        method: The Playwright method.
        target: Selector or URL, shortened and redacted.
        wire: How strongly it is guarded.
        reads_only: A navigation by GET; it passes in quarantine, and a crash in it proves nothing sent.
        passes_quarantine: It is written down although the run is in quarantine, so that the refusal of its effect is.
    """

    action_id: str
    kind: str
    method: str
    target: str
    wire: Wire
    reads_only: bool = False
    passes_quarantine: bool = False


@dataclass(frozen=True)
class EffectPlan:
    """A request that the gate holds.

    Attributes:
        effect_id: Unique id, made by the caller before any I/O.
        action_id: The action that it belongs to.
        method: HTTP method.
        url: Redacted URL.
        fingerprint: Compared within the run.
        channel: See ``models.Effect``; ``SOCKET`` for frames.
        refusal: The gate refuses it already (a reloaded POST, say): write REFUSED with this reason.
        continues: Id of the effect of which this is a redirect hop (307, 308); it is not its own duplicate.
        key_header: The header in which the application takes an idempotency key for it, if it takes one. The key is
            the id of the first effect of its chain of hops, so that hops have the same.
        own_key: The key that the request carries there by itself; it is kept.
    """

    effect_id: str
    action_id: str
    method: str
    url: str
    fingerprint: str
    channel: str
    refusal: Refusal | None = None
    continues: str | None = None
    key_header: str | None = None
    own_key: str | None = None


@dataclass(frozen=True)
class Dispatch:
    """Answer to ``dispatch_effect``: exactly one of the two is set.

    Attributes:
        effect: The durable DISPATCHED record; the request may now leave.
        refusal: Why it may not; a REFUSED record was written (not for ``SUPERSEDED``).
        rival: The effect that stands in its way (duplicate, already answered), or the first doubt.
    """

    effect: Effect | None = None
    refusal: Refusal | None = None
    rival: Effect | None = None


@dataclass(frozen=True)
class Answer:
    """What the response stage learned about an effect."""

    outcome: Outcome
    status: int | None = None
    external_request_id: str | None = None
    location: str | None = None
    reason: str | None = None


@dataclass(frozen=True)
class Boot:
    """One start of a runtime's process."""

    boot_id: str
    runtime: str
    host: str
    pid: int
    labels: Mapping[str, str] = field(default_factory=dict)


NO_FRAMES: Mapping[str, Answer] = MappingProxyType({})


class Ledger(Protocol):
    """The durable store. ``ledger.open_ledger(url)`` gives one, migrated and checked."""

    writer_count: int
    """How many calls may run at once: 1 for SQLite, the pool's size for PostgreSQL."""

    lease_needed: bool
    """Whether ownership runs out unless ``renew`` is called (PostgreSQL); on SQLite the kernel's lock speaks."""

    key_path: Path
    """Where the ledger's key lies: beside the SQLite file, else in the user's state folder."""

    @property
    def url(self) -> str:
        """Where it is, the password hidden."""

    # The life of a boot.
    def open_boot(self, boot: Boot) -> RuntimeStatus:
        """Register a boot and take its lock. A live boot of the same runtime: ``RuntimeOwned``.

        The state of the runtime (a hold) is kept as it was; reading it is the first thing that is done (R10).
        """

    def renew(self, boot_id: str) -> None:
        """Renew the boot's lease on the server's clock (PostgreSQL; on SQLite the lock file speaks).

        Raises:
            Superseded: The boot was taken for dead, and another boot of its runtime was opened.
        """

    def close_boot(self, boot_id: str) -> None:
        """The process ends in order: mark the boot closed and drop its lock."""

    # The life of a run.
    def claim_run(self, run_id: str, boot_id: str, labels: Mapping[str, str]) -> Claim:
        """Claim, raise the fence, check the digests, sweep what an earlier boot left; one transaction.

        Raises:
            RunOwned: A live boot owns it; names runtime, host, pid and since when. Nothing was changed.
            Held: The runtime admits no work.
            LedgerCorrupt: A record of the run does not match its digest, or a phase does not match the
                transitions log. Nothing was changed.
        """

    def release_run(self, grant: Grant, *, failed: bool) -> RunPhase:
        """Leave the run. Unanswered effects become NEEDS_REVIEW, open actions follow; sets the run's phase."""

    def set_wire(self, grant: Grant, wire: Wire) -> None:
        """Record the weakest wire that the run was guarded by."""

    # The life of a click.
    def plan_action(self, grant: Grant, plan: ActionPlan, before: Sighting, armed: Sequence[EffectPlan] = ()) -> Action:
        """Admission, before-checkpoint and PLANNED in one transaction.

        Args:
            grant: Proof of ownership.
            plan: The action.
            before: What was seen.
            armed: Frames that the action may send on open WebSockets, which no gate can hold: their DISPATCHED
                records are durable before the action is performed.

        Raises:
            Superseded, Held, Quarantined: Not admitted; nothing was written.
        """

    def dispatch_effect(self, grant: Grant, plan: EffectPlan) -> Dispatch:
        """Ask ``admission.refuse_effect`` and write DISPATCHED or REFUSED, with the action's phase.

        Raises:
            IllegalTransition: The action was closed and has ended; what a page sends after that needs an action
                of kind ``page``. Nothing was written.
        """

    def answer_effect(self, grant: Grant, effect_id: str, answer: Answer) -> Effect:
        """Write what became of a DISPATCHED effect, with the action's phase.

        ``accepted``, ``rejected``, ``ambiguous`` → ACKNOWLEDGED; ``not_sent`` → ABANDONED; ``unknown`` →
        NEEDS_REVIEW. For an effect that is in NEEDS_REVIEW already, or was settled by a verdict (a late answer),
        nothing changes but a line of evidence; the effect is returned as it is.
        """

    def close_action(
        self,
        grant: Grant,
        action_id: str,
        after: Sighting,
        *,
        failed: str | None,
        frames: Mapping[str, Answer] = NO_FRAMES,
    ) -> Action:
        """After-checkpoint and the phase that follows from the effects, in one transaction.

        Args:
            grant: Proof of ownership.
            action_id: The action.
            after: What was seen.
            failed: Why the Playwright call failed, or ``None``. A failed action without any effect is
                ABANDONED, not OBSERVED. Effects that are answered become OBSERVED only if it did not fail.
            frames: What became of the effects that the action was armed with, by effect id. One that was not sent
                counts as none.
        """

    # Doubt.
    def resolve(self, quarantine_id: str, verdict: Verdict) -> Quarantine:
        """Settle a doubt, in its own transaction, by anyone. ``unknown`` adds evidence and changes nothing.

        Raises:
            KeyError: No such quarantine.
            IllegalTransition: It is settled already; the message names the verdict that stands, who and when.
        """

    def mark_observed(self, grant: Grant, effect_id: str) -> Effect:
        """The agent took the result of an answered effect: ACKNOWLEDGED → OBSERVED."""

    # Reading; none of these writes.
    def quarantined(self, run_id: str | None = None) -> Sequence[Quarantine]: ...
    def quarantine(self, quarantine_id: str) -> Quarantine: ...
    def verdicts(self, quarantine_id: str) -> Sequence[tuple[Verdict, datetime]]: ...
    def actions(self, run_id: str, *, phases: Sequence[Phase] | None = None) -> Sequence[Action]: ...
    def checkpoints(self, run_id: str) -> Sequence[Checkpoint]: ...
    def transitions(self, run_id: str) -> Sequence[Transition]: ...
    def runs(self) -> Sequence[RunSummary]: ...
    def run(self, run_id: str) -> RunSummary: ...
    def runtimes(self) -> Sequence[RuntimeStatus]: ...
    def close(self) -> None: ...
