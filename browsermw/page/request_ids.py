"""Decides which response header names the request at the application: the external request id.

The gate's response stage calls this before ACKNOWLEDGED is written. Headers come from a server that nobody
vouches for: what is too long or holds control characters is passed over, never stored.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

MAX_ID_CHARS: Final = 200
MAX_LOCATION_CHARS: Final = 8_192

# From the application's own ids, through its platform's, to those of proxies and tracing.
REQUEST_ID_HEADERS: Final = (
    "x-request-id",
    "request-id",
    "x-correlation-id",
    "correlation-id",
    "x-operation-id",
    "x-transaction-id",
    "x-trace-id",
    "x-amzn-requestid",
    "x-amz-request-id",
    "x-amzn-trace-id",
    "x-ms-request-id",
    "x-ms-correlation-request-id",
    "x-goog-request-id",
    "x-github-request-id",
    "x-shopify-request-id",
    "x-vercel-id",
    "fly-request-id",
    "x-cloud-trace-context",
    "cf-ray",
    "traceparent",
)


def external_request_id(
    headers: Iterable[tuple[str, str]], *, names: Sequence[str] = REQUEST_ID_HEADERS
) -> tuple[str, str] | None:
    """Find the id that the application gave the request.

    Args:
        headers: The response's headers as name and value, in any case and order.
        names: The header names to look for, best first.

    Returns:
        The header's name in lower case and its value, or ``None`` when no header has a usable one.
    """
    ranks = {name.lower(): rank for rank, name in reversed(list(enumerate(names)))}
    best: tuple[int, str, str] | None = None
    for name, raw in headers:
        rank = ranks.get(name.lower())
        if rank is None or (best is not None and rank >= best[0]):
            continue
        value = _usable(raw, MAX_ID_CHARS)
        if value is not None:
            best = (rank, name.lower(), value)
    return None if best is None else best[1:]


def location(headers: Iterable[tuple[str, str]]) -> str | None:
    """Read where the response points to; for a created thing this often is its id.

    Args:
        headers: The response's headers as name and value.

    Returns:
        The first usable ``Location``, unredacted (see ``redact_url``), or ``None``.
    """
    for name, raw in headers:
        if name.lower() == "location":
            value = _usable(raw, MAX_LOCATION_CHARS)
            if value is not None:
                return value
    return None


def _usable(raw: str, max_chars: int) -> str | None:
    value = raw.strip(" \t")
    if not value or len(value) > max_chars or not value.isprintable():
        return None
    return value
