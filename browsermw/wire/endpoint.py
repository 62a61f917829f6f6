"""From a debugging port to the browser's own WebSocket: asked until it answers, or the time is up."""

from __future__ import annotations

import asyncio
import json
import urllib.request
from http.client import HTTPException
from urllib.parse import urlsplit, urlunsplit

from browsermw.errors import WireTooWeak

RETRY_S = 0.05


async def socket_url(endpoint: str, timeout_s: float) -> str:
    """The ``ws://`` URL of the browser behind an endpoint.

    Args:
        endpoint: ``http://127.0.0.1:9222``, or the ``ws://`` URL itself.
        timeout_s: How long to ask, in seconds.

    Raises:
        WireTooWeak: Nobody answers there.
    """
    if endpoint.startswith(("ws://", "wss://")):
        return endpoint
    deadline = asyncio.get_running_loop().time() + timeout_s
    while True:
        try:
            return await asyncio.to_thread(_ask_version, endpoint)
        except (OSError, ValueError, KeyError, HTTPException) as error:
            if asyncio.get_running_loop().time() > deadline:
                raise WireTooWeak(
                    f"Nothing left the browser: no browser answers on its debugging port at {shown(endpoint)} "
                    f"({reason(error, endpoint)}). Was it launched with mw.launch_options()? Is the port taken by "
                    "another program?"
                ) from error
        await asyncio.sleep(RETRY_S)


def shown(endpoint: str) -> str:
    """An endpoint without what may be a secret in it: name and password, and the query, where services put tokens."""
    parts = urlsplit(endpoint)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


def reason(error: Exception, endpoint: str) -> str:
    """An error in words; by its name alone where the words may repeat a secret of the endpoint."""
    return type(error).__name__ if "@" in endpoint or "?" in endpoint else str(error)


def _ask_version(endpoint: str) -> str:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(f"{endpoint}/json/version", timeout=2) as answer:
        return str(json.load(answer)["webSocketDebuggerUrl"])
