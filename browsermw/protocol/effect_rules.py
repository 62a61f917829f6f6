"""Decide whether a request is an effect (DESIGN section 6, step 1), and in which header it takes a key (step 5).

Asked by the gate and by the API hooks for each request. The first rule that fits decides: ``policy.effects`` says
yes, a safe method says no, ``policy.ignore`` (telemetry) says no, a GraphQL read says no; everything else is an
effect. A request that both lists name is an effect: of two wishes of the user, the careful one counts.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from browsermw.policy import matches
from browsermw.protocol.graphql import only_queries

if TYPE_CHECKING:
    from browsermw.policy import Policy

_GRAPHQL_IN_URL = re.compile(r"[?&](?:query|operationName|variables|extensions)=")

SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS", "TRACE"})
"""RFC 9110 section 9.2.1: methods that ask for no change of state."""

SOCKET = "WebSocket"
"""Channel of the frames that an action may have sent on an open socket."""

SOCKET_METHOD = "SEND"
"""What stands in the place of an HTTP method for them."""


def is_armed(policy: Policy, url: str) -> bool:
    """Whether frames on an open WebSocket may be effects.

    Args:
        policy: The user's rules.
        url: The socket's full URL.
    """
    return not any(matches(pattern, "GET", url) for pattern in policy.ignore_websockets)


def is_effect(policy: Policy, method: str, url: str, content_type: str, body: bytes | None) -> bool:
    """Whether a request may change something at the application.

    Args:
        policy: The user's rules.
        method: HTTP method, upper case.
        url: The full URL.
        content_type: Value of the ``Content-Type`` header, or empty.
        body: The body, or ``None`` where it could not be read.
    """
    if any(matches(pattern, method, url) for pattern in policy.effects):
        return True
    if method in SAFE_METHODS:
        return False
    if any(matches(pattern, method, url) for pattern in policy.ignore):
        return False
    # GraphQL reads are sent by POST, and a server may prefer what the URL names to what the body says.
    reads = method == "POST" and "json" in content_type.lower() and not _GRAPHQL_IN_URL.search(url)
    return not (reads and body is not None and only_queries(body))


def idempotency_header(policy: Policy, method: str, url: str) -> str | None:
    """The header in which the application takes an idempotency key for this effect; ``None`` where it takes none."""
    headers = policy.idempotency_headers.items()
    return next((name for pattern, name in headers if matches(pattern, method, url)), None)
