"""What Playwright's own objects say about a request, in the words of ``held``.

Asked by the routed engine for each request and each answer. It reads public properties that cost no round trip; of
Playwright it imports nothing.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from browsermw.protocol.effect_rules import SOCKET, SOCKET_METHOD
from browsermw.protocol.outcome import HOP_STATUSES
from browsermw.wire.held import HeldRequest, SeenAnswer, header, origin_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from browsermw.wire.targets import Target

_CHANNELS = {"xhr": "XHR", "fetch": "Fetch", "ping": "Ping", "beacon": "Ping", "cspviolationreport": "Other"}
_KEEPS_METHOD_BUT_POST = frozenset({301, 302})


def held_request(
    request: Any, changes: Mapping[str, Any], *, context_id: str, pages: tuple[Target, ...]
) -> HeldRequest:
    """Describe a request that waits in a route.

    Args:
        request: Playwright's request.
        changes: What the user's ``Route.continue_`` asks to be sent instead.
        context_id: The engine's name for its context.
        pages: The page and its openers; empty where nobody can tell.
    """
    url = str(changes.get("url") or request.url)
    headers = changes.get("headers") or request.headers
    content_type = header(headers, "content-type")
    return HeldRequest(
        method=str(changes.get("method") or request.method).upper(),
        url=url,
        content_type=content_type,
        body=_body(request, changes.get("post_data"), content_type),
        channel="Document" if request.is_navigation_request() else _CHANNELS.get(request.resource_type, "Other"),
        context_id=context_id,
        pages=pages,
        origin=origin_of(url),
    )


def _body(request: Any, changed: object, content_type: str) -> bytes | None:
    if changed is not None:
        if isinstance(changed, bytes):
            return changed
        return (changed if isinstance(changed, str) else json.dumps(changed, default=str)).encode()
    body: bytes | None = request.post_data_buffer
    if body is None:
        # Playwright says the same of no body and of one that it was not given; the latter has a type.
        return None if content_type else b""
    # Playwright leaves the content of files out, so that two uploads would look the same.
    return None if content_type.startswith("multipart/") and b"filename=" in body else body


def held_frame(url: str, *, context_id: str) -> HeldRequest:
    """Describe a message that a page sends on a WebSocket. Playwright does not say which page it was."""
    return HeldRequest(
        method=SOCKET_METHOD,
        url=url,
        content_type="",
        body=None,
        channel=SOCKET,
        context_id=context_id,
        pages=(),
        origin=origin_of(url),
    )


def seen_answer(response: Any) -> SeenAnswer | None:
    """What a response says; ``None`` for a redirect hop that sends the same effect on, whose own answer is to come."""
    status, headers = int(response.status), response.headers
    sends_on = status in HOP_STATUSES or (status in _KEEPS_METHOD_BUT_POST and response.request.method != "POST")
    if sends_on and header(headers, "location"):
        return None
    return SeenAnswer(status=status, headers=tuple(headers.items()))
