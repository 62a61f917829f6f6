"""What an answer, or the lack of one, says about an effect.

Called by the gate at the response stage and by the API hooks. Decides only; the gate writes it down.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

from browsermw.policy import matches

if TYPE_CHECKING:
    from browsermw.policy import Policy

AMBIGUOUS_STATUSES = frozenset({408, 409, 425, 429})
"""4xx that do not prove a rejection: timeout, conflict (perhaps with our own first try), too early, too many."""

HOP_STATUSES = frozenset({307, 308})
"""Redirects that repeat the request at another place, body and all: what follows is a hop of the same effect."""


class Outcome(StrEnum):
    """What is known about an effect after it was released."""

    ACCEPTED = "accepted"
    REJECTED = "rejected"
    AMBIGUOUS = "ambiguous"
    NOT_SENT = "not_sent"
    UNKNOWN = "unknown"


NEVER_CONNECTED_ERRORS = frozenset(
    {
        "ERR_NAME_NOT_RESOLVED",
        "ERR_CERT_AUTHORITY_INVALID",
        "ERR_CERT_COMMON_NAME_INVALID",
        "ERR_CERT_DATE_INVALID",
        "NameNotResolved",
        "NS_ERROR_UNKNOWN_HOST",
        "SEC_ERROR_UNKNOWN_ISSUER",
        "SEC_ERROR_EXPIRED_CERTIFICATE",
        "SSL_ERROR_BAD_CERT_DOMAIN",
        "MOZILLA_PKIX_ERROR_SELF_SIGNED_CERT",
        "Unacceptable TLS certificate",
        "Could not resolve hostname",
        "A server with the specified hostname could not be found.",
    },
)
"""What comes before a byte of the request leaves: Chromium's ``net::ERR_…`` texts and CDP ``Network.ErrorReason``
values, Firefox's ``NS_ERROR_…`` and certificate names, and WebKit's sentences, as Playwright tells them.

Measured on Chromium 156, and so not among them: a server that reads a POST on a kept-alive connection and dies gives
``ERR_CONNECTION_REFUSED``, because Chromium tries again by itself on a new connection and reports that try only
(``ERR_ADDRESS_UNREACHABLE`` and ``ERR_INTERNET_DISCONNECTED`` can come the same way); a TLS connection that breaks
after the POST was read gives ``ERR_SSL_PROTOCOL_ERROR``. Only a relay can tell that nothing was sent there.
"""

WEBKIT_RESOLVING = "Error resolving "
"""How WebKit on Linux begins to say that a name does not resolve; the name and the system's words follow."""


def outcome_of_status(status: int) -> Outcome:
    """Outcome of an HTTP status (DESIGN section 5).

    Args:
        status: The status code. An interim one (below 200) is no answer yet, so it proves nothing.
    """
    if status in AMBIGUOUS_STATUSES or status >= 500 or status < 200:
        return Outcome.AMBIGUOUS
    if status >= 400:
        return Outcome.REJECTED
    return Outcome.ACCEPTED


def outcome_of_frames(*, sent: bool, answered: bool, lost: bool, failed: bool) -> Outcome:
    """Outcome of a click beside an open WebSocket, once it is over. A frame has no answer of its own.

    Args:
        sent: Whether a frame left on the socket since the click began.
        answered: Whether the server sent a frame after the last of them.
        lost: Whether the socket was closed since.
        failed: Whether the call that clicked failed, so that nobody has seen its result.
    """
    if not sent:
        return Outcome.NOT_SENT
    if answered:
        return Outcome.ACCEPTED
    return Outcome.UNKNOWN if lost or failed else Outcome.ACCEPTED


def outcome_of_answer(policy: Policy, method: str, url: str, status: int) -> Outcome:
    """Outcome of an answered effect: what policy says of this status there, else what HTTP says.

    Args:
        policy: The user's rules.
        method: HTTP method, upper case.
        url: The full URL.
        status: The status code.
    """
    rules = {
        Outcome.ACCEPTED: policy.accepted_statuses,
        Outcome.REJECTED: policy.rejected_statuses,
        Outcome.AMBIGUOUS: policy.ambiguous_statuses,
    }
    named = [
        outcome
        for outcome, patterns in rules.items()
        if any(status in statuses and matches(pattern, method, url) for pattern, statuses in patterns.items())
    ]
    if not named:
        return outcome_of_status(status)
    return named[0] if len(named) == 1 else Outcome.AMBIGUOUS


def outcome_of_error(reason: str, *, reached: bool | None) -> Outcome:
    """Outcome of a network error.

    Args:
        reason: CDP error reason, or the text of Playwright's ``request.failure``.
        reached: Whether the relay carried anything that may be a request to that host and port since the release,
            also on a connection that was open before it; ``None`` without a relay. Behind a relay every connection
            error looks the same to the browser (field note 14), so the relay's own knowledge decides.
    """
    if reached is False:
        return Outcome.NOT_SENT
    if reached is None:
        text = reason.removeprefix("net::")
        if text in NEVER_CONNECTED_ERRORS or text.startswith(WEBKIT_RESOLVING):
            return Outcome.NOT_SENT
    return Outcome.UNKNOWN
