"""Open WebSockets and the frames that left on them: no gate can hold a frame, so it has to be known who may send one.

Fed by the engine with ``Network`` events of pages and workers, asked by the desk before and after each click. A
picture in memory; it sends nothing and decides nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from browsermw.wire.targets import Target, TargetMap

_PAGELESS = frozenset({"shared_worker", "service_worker"})
"""Workers that serve every page of their context."""


@dataclass(eq=False)
class Socket:
    """One WebSocket.

    Attributes:
        url: The full URL; never stored as it is.
        target_id: The page or worker that opened it.
        sent_count: Frames that left on it.
        answered: Whether the server has sent a frame after the last of them.
        closed: It is closed, or failed.
    """

    url: str
    target_id: str
    sent_count: int = 0
    answered: bool = False
    closed: bool = False


@dataclass
class Sockets:
    """The open WebSockets of one browser.

    Args:
        targets: What is known of its pages and workers.
    """

    targets: TargetMap
    _open: dict[tuple[str, str], Socket] = field(default_factory=dict)

    def event(self, name: str, params: dict[str, Any], target: Target) -> Socket | None:
        """Take a ``Network.webSocket…`` event; returns the socket that it opens."""
        key = (target.target_id, params["requestId"])
        if name == "webSocketCreated":
            self._open[key] = Socket(params["url"], target.target_id)
            return self._open[key]
        # One that was opened before we listened makes itself known by its first frame; its URL stays unknown.
        socket = self._open.setdefault(key, Socket("", target.target_id))
        if name == "webSocketFrameSent":
            socket.sent_count += 1
            socket.answered = False
        elif name == "webSocketFrameReceived":
            socket.answered = True
        elif name in {"webSocketClosed", "webSocketFrameError"}:
            socket.closed = True
            del self._open[key]
        return None

    def gone(self, target_id: str) -> None:
        """A page or worker has ended, and its sockets with it."""
        for key in [key for key in self._open if key[0] == target_id]:
            self._open.pop(key).closed = True

    def beside(self, page_id: str) -> list[Socket]:
        """Open sockets that a click on a page may send on, through its frames and workers, or its context's workers."""
        page = self.targets.targets.get(page_id)
        return [] if page is None else [it for it in self._open.values() if self._serves(it.target_id, page)]

    def _serves(self, target_id: str, page: Target) -> bool:
        owner = self.targets.targets.get(target_id)
        if owner is None:
            return False
        if owner.kind in _PAGELESS:
            return owner.context_id == page.context_id
        return self.targets.page_of(owner) is page
