"""What the gate shows to the desk about a request that it holds, and what the desk tells it to do.

Small frozen records, no behaviour beyond reading a CDP message: the wire and the ledger meet only through them.
"""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from collections.abc import Mapping

    from browsermw.protocol.admission import Refusal
    from browsermw.wire.sockets import Socket
    from browsermw.wire.targets import Target


@dataclass(frozen=True)
class HeldRequest:
    """A request with a side effect that waits at the gate.

    Attributes:
        method: HTTP method.
        url: The full URL; never stored or logged as it is.
        content_type: Value of ``Content-Type``, or empty.
        body: The body; ``None`` where the browser did not give it.
        channel: CDP resource type (``Document``, ``Fetch``, …), or ``WebSocket``.
        context_id: Browser context, or ``None`` where the browser names none that we know.
        pages: The page and the pages that opened it, nearest first; empty for a worker.
        repeats: A reload or a step in the history: the browser would send an earlier request again.
        is_unreadable: The browser does not hand it over, so that it can only be refused.
        continues: Effect of which this is a redirect hop.
        origin: Host and port, for the relay's knowledge.
        held_at: When it came to the gate, on the loop's clock.
        headers: All headers that it has by itself; never stored.
    """

    method: str
    url: str
    content_type: str
    body: bytes | None
    channel: str
    context_id: str | None
    pages: tuple[Target, ...]
    origin: tuple[str, int]
    repeats: bool = False
    is_unreadable: bool = False
    continues: str | None = None
    held_at: float = 0.0
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def navigates(self) -> bool:
        """Whether a document waits for the answer."""
        return self.channel == "Document"


@dataclass(frozen=True)
class Ruling:
    """What is to be done with a held request: released under its id, or refused, or neither to let it go unrecorded.

    Attributes:
        effect_id: Release it; its DISPATCHED record is durable.
        refusal: It must not leave.
        added: Header, name and value, that a released effect is sent with on top of its own.
    """

    effect_id: str | None = None
    refusal: Refusal | None = None
    added: tuple[str, str] | None = None


@dataclass(frozen=True)
class SeenAnswer:
    """What the response stage shows: a status with headers, or the browser's error reason.

    Attributes:
        url: The full URL that was asked for; never stored or logged as it is.
        status: HTTP status.
        headers: Response headers in order.
        error: CDP ``Network.ErrorReason``, such as ``ConnectionReset``.
        reached: Whether a request can have gone through the relay to the host since; ``None`` without a relay.
        never_left: The browser said before the release took effect that the request is gone.
        sent: It was handed over, and nothing ever answers it: a message on a WebSocket.
    """

    url: str = ""
    status: int | None = None
    headers: tuple[tuple[str, str], ...] = ()
    error: str | None = None
    reached: bool | None = None
    never_left: bool = False
    sent: bool = False


class Desk(Protocol):
    """What the gate asks; ``browsermw.gate_desk`` answers."""

    async def rule(self, held: HeldRequest) -> Ruling:
        """Decide about a held request; the record is durable when this returns. Never raises."""

    async def answered(self, effect_id: str, seen: SeenAnswer) -> bool:
        """Record an answer; true when it is durable, so that the page may have it. Never raises."""

    async def socket_opened(self, context_id: str, page_ids: tuple[str, ...], socket: Socket) -> None:
        """Note a WebSocket that was opened in the middle of an action. Never raises."""


def origin_of(url: str) -> tuple[str, int]:
    """Host and port of a URL, with the scheme's default port."""
    parts = urlsplit(url)
    try:
        port = parts.port
    except ValueError:
        port = None
    return (parts.hostname or "").lower(), port or {"https": 443, "wss": 443}.get(parts.scheme, 80)


def body_of(request: Mapping[str, Any], limit: int) -> bytes | None:
    """The body in a CDP ``Network.Request``.

    Args:
        request: As the browser describes it.
        limit: The most bytes that are read.

    Returns:
        ``b""`` where there is none, ``None`` where it is larger or the browser does not give it (a file, a stream).
    """
    if not request.get("hasPostData"):
        return b""
    entries = request.get("postDataEntries") or []
    if not entries or any("bytes" not in entry for entry in entries):
        return None
    try:
        if sum(_decoded_size(entry["bytes"]) for entry in entries) > limit:
            return None
        return b"".join(base64.b64decode(entry["bytes"], validate=True) for entry in entries)
    except binascii.Error:
        return None


def _decoded_size(text: str) -> int:
    return len(text) * 3 // 4 - text.count("=", -2)


def header(headers: Mapping[str, str], name: str) -> str:
    """A request header's value, whatever its case; empty where it is absent."""
    return next((value for key, value in headers.items() if key.lower() == name), "")
