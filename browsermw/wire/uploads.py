"""Uploads that were begun and have not come to the gate: past some size Chromium never hands them over.

The pause message carries the body twice, and one of more than about 256 MB is never delivered (field note 18): that
request would hang for good. Nothing of it leaves; here the waiting gets an end. Fed by the engine with ``Network``
events; what is done about a late one is the engine's and the desk's.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from browsermw.wire.targets import Target


@dataclass(frozen=True)
class Upload:
    """A request with a body that the browser did not show when it began.

    Attributes:
        method: HTTP method.
        url: The full URL; never stored as it is.
        channel: CDP resource type.
        target: The page, frame or worker that sends it.
    """

    method: str
    url: str
    channel: str
    target: Target


class Uploads:
    """See the module.

    Args:
        patience_s: How long an upload may take to the gate, in seconds.
        on_late: Called once with each that takes longer.
    """

    def __init__(self, patience_s: float, on_late: Callable[[Upload], None]) -> None:
        self._patience_s = patience_s
        self._on_late = on_late
        self._waiting: dict[str, asyncio.TimerHandle] = {}

    def began(self, params: dict[str, Any], target: Target) -> None:
        """Take a ``Network.requestWillBeSent`` event of a request that may be an effect."""
        request = params["request"]
        is_shown = not request.get("hasPostData") or "postData" in request  # a small body comes with the event
        if is_shown:
            return
        upload = Upload(request["method"], request["url"], params.get("type", "Other"), target)
        loop = asyncio.get_running_loop()
        self.ended(params["requestId"])
        self._waiting[params["requestId"]] = loop.call_later(self._patience_s, self._late, params["requestId"], upload)

    def ended(self, network_id: str) -> None:
        """It came to the gate, or the page gave it up."""
        timer = self._waiting.pop(network_id, None)
        if timer is not None:
            timer.cancel()

    def close(self) -> None:
        """Watch no more."""
        for network_id in list(self._waiting):
            self.ended(network_id)

    def _late(self, network_id: str, upload: Upload) -> None:
        self._waiting.pop(network_id, None)
        self._on_late(upload)
