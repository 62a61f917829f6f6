"""What becomes of an effect that left: the phase that its outcome gives it, and the columns that say why.

Called inside the transactions of ``effects`` (an answer) and ``actions`` (frames, settled when their click ends).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from browsermw.protocol.outcome import Outcome
from browsermw.protocol.phases import Phase

if TYPE_CHECKING:
    from browsermw.ledger.contract import Answer
    from browsermw.ledger.steps import Steps

PHASE_OF_OUTCOME = {
    Outcome.ACCEPTED: Phase.ACKNOWLEDGED,
    Outcome.REJECTED: Phase.ACKNOWLEDGED,
    Outcome.AMBIGUOUS: Phase.ACKNOWLEDGED,
    Outcome.NOT_SENT: Phase.ABANDONED,
    Outcome.UNKNOWN: Phase.NEEDS_REVIEW,
}


def record_answer(steps: Steps, effect_id: str, old: Phase, answer: Answer) -> None:
    """Move an effect to the phase of its answer.

    Raises:
        IllegalTransition: It does not wait for one.
    """
    new = PHASE_OF_OUTCOME[answer.outcome]
    fields: dict[str, Any] = {
        "outcome": str(answer.outcome),
        "status": answer.status,
        "external_request_id": answer.external_request_id,
        "location": answer.location,
        "reason": answer.reason,
    }
    if new is Phase.ACKNOWLEDGED:
        fields |= {"acknowledged_at": steps.at, "acknowledged_fence": steps.fence}
    if new is Phase.NEEDS_REVIEW:
        fields |= {"doubt_at": steps.at, "doubt_reason": answer.reason or "its outcome is unknown"}
    steps.move("effect", effect_id, old, new, answer.reason, changed=fields)
