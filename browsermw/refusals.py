"""From a refusal to the error that the agent sees, in the user's words and with the way out.

One table, used by the desk for every refused request and every action that is not admitted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from browsermw.errors import (
    EffectRefused,
    Held,
    InFlightDuplicate,
    LedgerUnavailable,
    Quarantined,
    Superseded,
)
from browsermw.protocol.admission import Refusal

if TYPE_CHECKING:
    from browsermw.models import Effect

ERROR_OF: dict[Refusal, type[EffectRefused]] = {
    Refusal.SUPERSEDED: Superseded,
    Refusal.HELD: Held,
    Refusal.QUARANTINED: Quarantined,
    Refusal.IN_FLIGHT_DUPLICATE: InFlightDuplicate,
    Refusal.LEDGER_UNAVAILABLE: LedgerUnavailable,
}

WHY: dict[Refusal, str] = {
    Refusal.SUPERSEDED: "another process took this run over; stop this agent",
    Refusal.HELD: "the runtime is held for maintenance; try again after `browsermw reopen`",
    Refusal.QUARANTINED: "the run has effects in doubt and is read-only until they are settled "
    "(`browsermw quarantine list`)",
    Refusal.IN_FLIGHT_DUPLICATE: "the same request was sent before and is unanswered; wait for its answer or settle it",
    Refusal.ALREADY_ANSWERED: "the same request was answered before the process ended and its result was never taken; "
    "read the result at the application, then call run.mark_observed(effect_id)",
    Refusal.REPLAYED_NAVIGATION: "a reload or a step in the history would send the form again; "
    "open the page by its address instead",
    Refusal.UNOWNED: "its context is not wrapped by a run; wrap it, or set policy.unowned to 'allow'",
    Refusal.CALLER_GONE: "the call that caused it had already given up",
    Refusal.LEDGER_UNAVAILABLE: "its record could not be written",
    Refusal.UNREADABLE: "the browser did not hand it over to be checked, which it cannot do with a body of more than "
    "about 100 MB; send the upload in parts, or by context.request",
}


def refusal_error(
    refusal: Refusal, method: str, url: str, *, rival: Effect | None = None, cause: str = ""
) -> EffectRefused:
    """The error for a refused request.

    Args:
        refusal: Why.
        method: HTTP method.
        url: Redacted URL.
        rival: The effect that stands in its way.
        cause: What the database said, for a ledger that failed.
    """
    text = f"{method} {url} did not leave the browser: {WHY[refusal]}."
    if rival is not None:
        text += f" In its way: {describe(rival)}."
    if cause:
        text += f" {cause}"
    facts = {"refusal": str(refusal), "method": method, "url": url, "rival": rival and rival.effect_id}
    return ERROR_OF.get(refusal, EffectRefused)(text, facts=facts)


def describe(effect: Effect) -> str:
    """An effect in one line, for messages."""
    answer = f", answered {effect.status}" if effect.status is not None else ""
    return (
        f"effect {effect.effect_id} ({effect.method} {effect.url}, {effect.phase}, "
        f"left at {effect.dispatched_at:%Y-%m-%d %H:%M:%S} UTC{answer})"
    )
