"""Who may do what: the one place that says yes or no to a claim, an action and an effect.

The ledger gathers the facts inside the transaction that would write the record, asks here, and writes only on
yes; so no work slips between a hold, a takeover or a new doubt and its acknowledgement (DESIGN sections 6 and 8).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from browsermw.protocol.phases import RuntimeState


class Refusal(StrEnum):
    """Why something was refused; each has its error in ``browsermw.errors``."""

    SUPERSEDED = "superseded"
    HELD = "held"
    QUARANTINED = "quarantined"
    IN_FLIGHT_DUPLICATE = "in_flight_duplicate"
    ALREADY_ANSWERED = "already_answered"
    REPLAYED_NAVIGATION = "replayed_navigation"
    UNOWNED = "unowned"
    CALLER_GONE = "caller_gone"
    LEDGER_UNAVAILABLE = "ledger_unavailable"
    UNREADABLE = "unreadable"


@dataclass(frozen=True)
class Standing:
    """What the ledger knows at the moment of the question.

    Attributes:
        owns: Whether the asking boot still owns the run under its fence.
        runtime: State of the runtime.
        doubt_count: Effects and actions of the run in NEEDS_REVIEW.
        same_in_flight: Id of an effect with the same fingerprint that is unanswered or in doubt.
        same_answered: Id of an effect with the same fingerprint that an earlier boot saw answered and whose
            result no one has taken since.
    """

    owns: bool
    runtime: RuntimeState
    doubt_count: int = 0
    same_in_flight: str | None = None
    same_answered: str | None = None


def refuse_claim(runtime: RuntimeState) -> Refusal | None:
    """Whether a run may be claimed. Owner and fence are the ledger's to check."""
    return None if runtime is RuntimeState.RUNNING else Refusal.HELD


def refuse_action(standing: Standing, *, reads_only: bool) -> Refusal | None:
    """Whether an action may start.

    Args:
        standing: The facts.
        reads_only: Whether it is a navigation by GET, which passes in quarantine.
    """
    if not standing.owns:
        return Refusal.SUPERSEDED
    if standing.runtime is not RuntimeState.RUNNING:
        return Refusal.HELD
    if standing.doubt_count and not reads_only:
        return Refusal.QUARANTINED
    return None


def refuse_effect(standing: Standing) -> Refusal | None:
    """Whether a held request may leave. The first rule that refuses names the reason.

    A duplicate is named before the quarantine, because it says more about the very request in hand.
    """
    if not standing.owns:
        return Refusal.SUPERSEDED
    if standing.same_in_flight is not None:
        return Refusal.IN_FLIGHT_DUPLICATE
    if standing.doubt_count:
        return Refusal.QUARANTINED
    if standing.same_answered is not None:
        return Refusal.ALREADY_ANSWERED
    if standing.runtime is not RuntimeState.RUNNING:
        return Refusal.HELD
    return None
