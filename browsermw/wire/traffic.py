"""What the gate alone does not see: WebSockets, requests on their way to it or given up, uploads that never come.

Fed by the engine with the ``Network`` events of pages, frames and workers. It hands on what it learns: to the desk a
socket that is opened or an upload that is late, to the gate a request that will get no answer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from browsermw.newest import Newest
from browsermw.protocol.effect_rules import SAFE_METHODS
from browsermw.wire.held import HeldRequest, origin_of
from browsermw.wire.sockets import Sockets
from browsermw.wire.uploads import Upload, Uploads

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine

    from browsermw.wire.gate import Gate
    from browsermw.wire.held import Desk
    from browsermw.wire.targets import Target, TargetMap

WORKER_TYPES = frozenset({"worker", "shared_worker", "service_worker"})
NO_BUFFERS = {"maxTotalBufferSize": 0, "maxResourceBufferSize": 0}
"""``Network`` keeps bodies for a debugger's eyes; we want its events only."""

_WITHOUT_NAVIGATION = frozenset({"XHR", "Fetch", "Ping", "Other"})
"""Navigations are announced by the ``Page`` domain (``wire.begun``)."""

ARRIVED_LIMIT = 1000
"""Requests that the gate saw lately: their announcement is a few milliseconds behind at most."""

UNREAD = ("dataReceived", "responseReceived", "requestWillBeSentExtraInfo", "resourceChangedPriority")
"""Events, by the beginning of their names, that tell us nothing: most of what ``Network`` says about a page."""


class Traffic:
    """See the module.

    Args:
        desk: Hears of sockets and of uploads that cannot be checked.
        targets: What is known of pages and workers.
        gate: Hears of requests that the page gave up.
        patience_s: How long an upload may take to the gate, in seconds.
        spawn: Starts a task of the engine's.
        order: Sends a command whose failure does not matter.
    """

    def __init__(
        self,
        desk: Desk,
        targets: TargetMap,
        gate: Gate,
        patience_s: float,
        *,
        spawn: Callable[[Coroutine[Any, Any, None]], None],
        order: Callable[[str, dict[str, Any], str], Awaitable[None]],
    ) -> None:
        self._desk = desk
        self._targets = targets
        self._gate = gate
        self._spawn = spawn
        self._order = order
        self._uploads = Uploads(patience_s, lambda late: spawn(self._refuse(late)))
        self._on_the_way: dict[str, Target] = {}
        self._arrived: Newest[str, None] = Newest(ARRIVED_LIMIT)
        self.sockets = Sockets(targets)

    def event(self, name: str, params: dict[str, Any], target: Target) -> None:
        """Take a ``Network`` event."""
        if name.startswith("webSocket"):
            opened = self.sockets.event(name, params, target)
            if opened is not None:
                page_ids = tuple(page.target_id for page in self._pages(target))
                self._spawn(self._desk.socket_opened(target.context_id, page_ids, opened))
        elif name == "requestWillBeSent":
            if params["request"]["method"] not in SAFE_METHODS and "redirectResponse" not in params:
                self._began(params, target)
        elif name in {"loadingFailed", "loadingFinished"}:
            self.at_the_gate(params["requestId"])  # or past it: the user's own route answered or failed it
            if name == "loadingFailed":
                self._gate.given_up(params["requestId"], params.get("errorText", ""))

    def _began(self, params: dict[str, Any], target: Target) -> None:
        if params["requestId"] in self._arrived:
            return
        self._uploads.began(params, target)
        if params.get("type") in _WITHOUT_NAVIGATION:
            self._on_the_way[params["requestId"]] = target

    def at_the_gate(self, network_id: str) -> None:
        """A request was paused; the page may announce it afterwards, because it speaks through another process."""
        self._arrived[network_id] = None
        self._uploads.ended(network_id)
        self._on_the_way.pop(network_id, None)

    def is_on_the_way(self, page_id: str) -> bool:
        """Whether a request of the page, its frames or its workers was begun and is not at the gate yet."""
        pages = (self._targets.page_of(target) for target in self._on_the_way.values())
        return any(page is not None and page.target_id == page_id for page in pages)

    def gone(self, target_id: str) -> None:
        """A page or worker has ended."""
        self.sockets.gone(target_id)
        self._on_the_way = {key: it for key, it in self._on_the_way.items() if it.target_id != target_id}

    def close(self) -> None:
        """Wait for nothing more."""
        self._uploads.close()

    def _pages(self, target: Target) -> tuple[Target, ...]:
        return self._targets.openers(self._targets.page_of(target))

    async def _refuse(self, late: Upload) -> None:
        """End the waiting for an upload that the browser does not hand over. Nothing of it has left."""
        held = HeldRequest(
            method=late.method,
            url=late.url,
            content_type="",
            body=None,
            channel=late.channel,
            context_id=late.target.context_id,
            pages=self._pages(late.target),
            is_unreadable=True,
            origin=origin_of(late.url),
        )
        await self._desk.rule(held)
        # A worker cannot be told to stop loading; its request stays where it is.
        if late.target.kind not in WORKER_TYPES:
            await self._order("Page.stopLoading", {}, late.target.session)
