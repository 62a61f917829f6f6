"""The frozen records that users see: what the ledger knows, in the words of DESIGN section 2.

Read from the ledger by ``runtime`` and ``run``, printed by the command line, serialised by ``--json``. They hold
no secret: URLs are redacted before they are stored, bodies are kept as fingerprints only.
"""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from pydantic import BaseModel, ConfigDict

from browsermw.protocol.outcome import Outcome
from browsermw.protocol.phases import Phase, RunPhase, RuntimeState
from browsermw.protocol.recovery import Wire

VerdictName = Literal["committed", "not_committed", "unknown"]
IdentityVerdict = Literal["same", "another", "signed_out", "signed_in", "unreadable", "undeclared"]
DomVerdict = Literal["same", "changed", "unknown"]


class Record(BaseModel):
    """Base of all records: frozen, nothing unknown accepted."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Checkpoint(Record):
    """What was seen at one moment.

    Attributes:
        run_id: The run.
        seq: Its place in the run's chain, from 1.
        action_seq: The action that it stands beside.
        moment: Before or after that action.
        url: Redacted URL of the page; empty where there is no page.
        dom_hash: ``dom1:`` and 32 hexadecimal digits, or ``None`` where it was not available.
        dom_note: Why there is no hash.
        identity_state: ``signed_in``, ``signed_out``, ``unreadable`` or ``undeclared``.
        identity_hash: Keyed hash of the identity; never the identity.
        identity_hint: Masked hint for people.
        last_action_seq: Last submitted action, that is the last one with an effect that may have left.
        external_request_id: From the last answer to an effect, ``header=value``.
        at: When, in UTC.
        digest: Digest over these facts and the digest before.
    """

    run_id: str
    seq: int
    action_seq: int
    moment: Literal["before", "after"]
    url: str
    dom_hash: str | None
    dom_note: str | None
    identity_state: str
    identity_hash: str | None
    identity_hint: str | None
    last_action_seq: int | None
    external_request_id: str | None
    at: datetime
    digest: str


class Effect(Record):
    """One request with a side effect.

    Attributes:
        effect_id: Unique in the ledger.
        run_id: The run.
        action_seq: The action that it belongs to.
        ordinal: Its place among the action's effects, from 1.
        phase: See ``browsermw.protocol.phases``.
        method: HTTP method.
        url: Redacted URL.
        fingerprint: See ``browsermw.protocol.fingerprints``.
        channel: How it was sent: ``Document``, ``Fetch``, ``XHR``, ``Ping``, ``Other``, ``api``, ``WebSocket``.
        outcome: What the answer says; ``None`` while there is none.
        status: HTTP status of the answer.
        external_request_id: ``header=value`` of the answer.
        location: Redacted ``Location`` of the answer.
        dispatched_at: When its record was durable.
        acknowledged_at: When its answer was durable.
        reason: Why it is in its phase, where that is not obvious.
        idempotency_key: What it was sent with in the header that policy names for it, so that the application can
            look it up; the same for each redirect hop. ``None`` where policy names no header.
    """

    effect_id: str
    run_id: str
    action_seq: int
    ordinal: int
    phase: Phase
    method: str
    url: str
    fingerprint: str
    channel: str
    outcome: Outcome | None
    status: int | None
    external_request_id: str | None
    location: str | None
    dispatched_at: datetime
    acknowledged_at: datetime | None
    reason: str | None
    idempotency_key: str | None = None


class Action(Record):
    """One journaled click, submit, key press, navigation or API call.

    Attributes:
        action_id: Unique in the ledger.
        run_id: The run.
        seq: Its place in the run, from 1.
        kind: ``click``, ``press``, ``submit``, ``navigate``, ``api``, ``script``, ``page``, ….
        method: The Playwright method, such as ``Page.click``.
        target: Selector or URL as the agent gave it, shortened and redacted.
        url: Redacted URL of the page at the start.
        phase: See ``browsermw.protocol.phases``.
        wire: How strongly it was guarded.
        planned_at: When its record was durable.
        closed_at: When its after-checkpoint was durable.
        reason: Why it is in its phase, where that is not obvious.
        effects: Its effects, in order.
    """

    action_id: str
    run_id: str
    seq: int
    kind: str
    method: str
    target: str
    url: str
    phase: Phase
    wire: Wire
    planned_at: datetime
    closed_at: datetime | None
    reason: str | None
    effects: tuple[Effect, ...] = ()


class Quarantine(Record):
    """Something that may have happened and must not be repeated until a verdict says how it ended.

    Attributes:
        quarantine_id: What ``browsermw quarantine resolve`` takes; the id of the effect or of the action.
        run_id: The run.
        action_seq: The action.
        effect: The effect; ``None`` for an action on a weak wire whose requests nobody saw.
        action: The action without its effects.
        since: When it came into doubt.
        reason: Why it is in doubt.
    """

    quarantine_id: str
    run_id: str
    action_seq: int
    effect: Effect | None
    action: Action
    since: datetime
    reason: str


class Verdict(Record):
    """What was concluded about something in doubt, by whom, and from what.

    Attributes:
        verdict: ``committed``, ``not_committed`` or ``unknown``.
        source: Who or what concluded it: ``person:alice``, ``HttpLookup``, ….
        note: The evidence in words; required.
        external_request_id: The application's id for what happened, where one was found.
    """

    verdict: VerdictName
    source: str
    note: str
    external_request_id: str | None = None


class ResumeReport(Record):
    """What an earlier boot left of a run, after the sweep.

    Attributes:
        run_id: The run.
        last_checkpoint: The last durable checkpoint, its digest checked.
        done: Actions with an answered effect, or observed.
        in_doubt: What must not be repeated.
        never_left: Actions that were planned and never left; they may be done again.
        answered_unread: Effects whose answer is recorded and whose result no one took: read it, do not send again.
        unseen_since: Only where the earlier process died on a wire without a relay: from this moment on (its last
            record) the pages of its browser may have sent, by themselves, what nobody recorded.
    """

    run_id: str
    last_checkpoint: Checkpoint | None
    done: tuple[Action, ...]
    in_doubt: tuple[Quarantine, ...]
    never_left: tuple[Action, ...]
    answered_unread: tuple[Effect, ...]
    unseen_since: datetime | None = None


class Verification(Record):
    """A page, held against the last checkpoint of an earlier boot. Printed, it says what differs.

    Attributes:
        checkpoint: What it was held against.
        same_url: Whether the redacted URLs are equal.
        identity: ``same``, ``signed_out``, ``signed_in`` (nobody was), ``unreadable`` then or now, or ``undeclared``
            by ``policy.identity``. ``another`` user is raised as ``IdentityMismatch`` instead.
        dom: Whether the page shows the same; ``unknown`` where its state could not be read, then or now.
        differences: What differs or cannot be told, in words; empty where all that is declared is the same.
    """

    checkpoint: Checkpoint
    same_url: bool
    identity: IdentityVerdict
    dom: DomVerdict
    differences: tuple[str, ...]

    @property
    def is_same(self) -> bool:
        """Whether the page is where the checkpoint left it: URL, state, and user where one is declared."""
        return not self.differences

    def __str__(self) -> str:
        where = f"checkpoint {self.checkpoint.seq} of run {self.checkpoint.run_id}"
        return f"as at {where}" if self.is_same else f"not as at {where}: {'; '.join(self.differences)}"


class RunSummary(Record):
    """A run at a glance.

    Attributes:
        run_id: The durable id.
        phase: See ``browsermw.protocol.phases``.
        runtime: The runtime that claimed it last.
        owner: The process that claimed it and did not leave it; ``None`` once it was left.
        owner_alive: Whether that process lives. An ``ACTIVE`` run of a dead one is swept at its next claim.
        fence: How often it was claimed.
        wire: The weakest wire that it was guarded by; ``None`` before a context was wrapped.
        labels: What the agent gave it.
        action_count: How many actions it has.
        in_doubt_count: How many of its doubts are unsettled.
        created_at: Its first claim, in UTC.
        changed_at: Its last record, in UTC.
    """

    run_id: str
    phase: RunPhase
    runtime: str | None
    owner: str | None
    owner_alive: bool
    fence: int
    wire: Wire | None
    labels: dict[str, str]
    action_count: int
    in_doubt_count: int
    created_at: datetime
    changed_at: datetime


class RuntimeStatus(Record):
    """A runtime at a glance."""

    runtime: str
    state: RuntimeState
    generation: int
    boot_id: str | None
    owner: str | None
    accepting_work: bool
    active_runs: tuple[str, ...]
    in_doubt_count: int
    started_at: datetime | None


class Transition(Record):
    """One line of the transitions log."""

    transition_id: int
    entity: str
    entity_id: str
    run_id: str | None
    old: str | None
    new: str
    at: datetime
    boot_id: str | None
    fence: int | None
    reason: str | None
