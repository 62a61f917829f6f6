"""The Chromium engine: one guarded browser, from its first connection to its end.

Attaching, in an order that matters (field notes 2 and 16):

1. The relay listens before the browser starts and forwards nothing.
2. When the browser first connects to the relay, or when ``wrap`` asks, we connect to its debugging port, check
   that it is the browser that we launched, and send ``Fetch.enable`` once, at browser level.
3. Pages that were there before get page-level ``Fetch.enable`` until they navigate.
4. Only then does the relay open.

If our connection breaks, the relay shuts at once and stays shut: a gate that came back would miss the pages that
lived meanwhile. Used by ``runtime``; knows nothing of runs or records.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Any

from browsermw.errors import WireTooWeak
from browsermw.events import Events
from browsermw.protocol.recovery import Wire
from browsermw.wire.begun import Begun
from browsermw.wire.cdp import CdpConnection, CdpError
from browsermw.wire.endpoint import shown, socket_url
from browsermw.wire.gate import PATTERNS, Gate
from browsermw.wire.targets import PAGE_TYPES, Target, TargetMap
from browsermw.wire.traffic import NO_BUFFERS, UNREAD, WORKER_TYPES, Traffic
from browsermw.wire.worlds import Worlds, in_next_turn

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from browsermw.policy import Policy
    from browsermw.wire.held import Desk
    from browsermw.wire.relay import Relay
    from browsermw.wire.sockets import Socket

MARKER_URL = "https://browsermw.invalid/"
"""Where the cookie lives by which ``wrap`` finds a context; a name that resolves nowhere (RFC 6761)."""

TOP_FILTER: list[dict[str, Any]] = [{"type": "browser_ui", "exclude": True}, {"type": "tab", "exclude": True}, {}]
FRAME_FILTER: list[dict[str, Any]] = [{"type": "iframe"}, {"type": "worker"}, {"exclude": True}]
BEGUN_LIMIT_S = 3.0
"""A navigation that has not reached the gate by then was given up, or waits in the user's own route."""

ON_THE_WAY_LIMIT_S = 0.3
"""A request that has not reached the gate by then waits in the user's own route, or behind a service worker."""

log = Events("browsermw.wire")


class GuardedBrowser:
    """A Chromium whose requests pass our gate.

    Attributes:
        wire: ``sealed`` behind our relay, else ``attached``.
        targets: What is known of its pages.
        lost: Set once the gate is gone.
    """

    def __init__(self, desk: Desk, policy: Policy, *, endpoint: str, relay: Relay | None) -> None:
        self._policy = policy
        self._endpoint = endpoint
        self._relay = relay
        self._connection: CdpConnection | None = None
        self._attaching: asyncio.Task[None] | None = None
        self._background: set[asyncio.Task[None]] = set()
        self._worlds = Worlds(lambda method, params, session: self._command(method, params, session=session))
        self._older: set[str] = set()
        self._on_lost: Callable[[], None] = lambda: None
        self.wire = Wire.SEALED if relay is not None else Wire.ATTACHED
        self.targets = TargetMap()
        self._begun = Begun(self.targets)
        self.gate = Gate(desk, policy, self.targets, relay)
        self._traffic = Traffic(
            desk, self.targets, self.gate, policy.upload_timeout_s, spawn=self._spawn, order=self._quietly
        )
        self.lost = asyncio.Event()
        self._stirred = asyncio.Event()

    @property
    def attached(self) -> bool:
        """Whether the gate is in place now."""
        return self._connection is not None and not self.lost.is_set()

    @property
    def gate_is_gone(self) -> bool:
        """See ``Engine``."""
        return self.lost.is_set() and self._relay is None

    def context_closed(self, context_id: str) -> None:
        """See ``Engine``."""
        self.gate.context_closed(context_id)

    def reached_by(self, effect_id: str) -> bool | None:
        """See ``Engine``."""
        return self.gate.reached_by(effect_id)

    def sockets_beside(self, page_id: str) -> list[Socket]:
        """See ``Engine``."""
        return self._traffic.sockets.beside(page_id)

    def on_lost(self, callback: Callable[[], None]) -> None:
        """Have the desk told when the browser, or our connection to it, is gone."""
        self._on_lost = callback

    def begin(self) -> None:
        """Start attaching in the background; called at the browser's first connection to the relay."""
        if self._attaching is None:
            self._attaching = asyncio.create_task(self._attach(), name="browsermw-attach")
            self._attaching.add_done_callback(self._attach_ended)

    def _attach_ended(self, task: asyncio.Task[None]) -> None:
        """Without a gate nothing may pass: fail the browser's requests now instead of keeping them waiting."""
        if task.cancelled() or task.exception() is None:
            return
        log.warning("gate_not_attached", cause=str(task.exception()))
        if self._relay is not None:
            self._relay.shut("the gate could not be attached")

    async def ready(self) -> None:
        """Wait until the gate is in place.

        Raises:
            WireTooWeak: The browser cannot be reached, is another one, or the gate was lost.
        """
        self.begin()
        assert self._attaching is not None
        await asyncio.shield(self._attaching)
        if self.lost.is_set():
            raise WireTooWeak(
                "Nothing left the browser: the gate lost its connection to the browser, and pages that lived "
                "meanwhile could send unseen. Close this browser and launch a new one with mw.launch_options()."
            )

    async def tried(self) -> None:
        """Wait until the gate is in place or has failed to be; ``ready`` tells which."""
        self.begin()
        assert self._attaching is not None
        await asyncio.wait([self._attaching])

    async def _attach(self) -> None:
        url = await socket_url(self._endpoint, self._policy.attach_timeout_s)
        connection = await CdpConnection.open(url, self._event, unread=[f"Network.{name}" for name in UNREAD])
        try:
            await self._check_browser(connection)
            self._connection = connection
            await connection.send("Fetch.enable", {"patterns": PATTERNS})
            older = await connection.send("Target.getTargets", {"filter": TOP_FILTER})
            self._older = {info["targetId"] for info in older["targetInfos"] if info["type"] in PAGE_TYPES}
            await connection.send("Target.setAutoAttach", _auto_attach(TOP_FILTER))
            await self._cover_older_pages()
        except BaseException:
            self._connection = None
            await connection.close()
            raise
        self._spawn(self._watch(connection))
        if self._relay is not None:
            self._relay.open()
        log.info("gate_attached", wire=str(self.wire))

    async def _check_browser(self, connection: CdpConnection) -> None:
        if self._relay is None:
            return
        answer = await connection.send("SystemInfo.getInfo")
        if self._relay.server not in answer.get("commandLine", ""):
            raise WireTooWeak(
                f"Nothing left the browser: the browser on {shown(self._endpoint)} is not the one that was launched "
                "with mw.launch_options(): another program took its debugging port. Launch it again."
            )

    async def _cover_older_pages(self) -> None:
        """Page-level Fetch for pages that were loaded before the gate (field note 16); it does not hold their pings."""
        for target in self.targets.pages():
            if target.target_id in self._older:
                if self._relay is not None and target.url in {"", "about:blank"}:
                    # The first page of a persistent context: nothing is on it yet, and with a new document it is
                    # under the gate like any other, its beacons too.
                    await self._renew(target)
                    continue
                target.older_than_gate = True
                # Its navigations are held at browser level already; holding them twice would look like a duplicate.
                patterns = [pattern for pattern in PATTERNS if pattern["resourceType"] != "Document"]
                await self._command("Fetch.enable", {"patterns": patterns}, session=target.session)
        count = sum(target.older_than_gate for target in self.targets.pages())
        if count:
            log.warning("pages_older_than_gate", count=count, unrecorded="beacons and pings, until each page navigates")

    async def _renew(self, target: Target) -> None:
        """Give a blank page a new document, and wait for it: the agent's first call must not fall into the change."""
        await self._command("Page.enable", session=target.session)
        answer = await self._command("Page.navigate", {"url": "about:blank"}, session=target.session)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(BEGUN_LIMIT_S):
                while target.loader_id != answer.get("loaderId"):
                    await self._next_event()

    async def _watch(self, connection: CdpConnection) -> None:
        await connection.closed.wait()
        self.lost.set()
        if self._relay is not None:
            self._relay.shut("the gate lost its connection to the browser")
        self._on_lost()
        log.info("gate_lost", wire=str(self.wire))

    async def _next_event(self) -> None:
        """Wait until what is known of pages and requests may have changed."""
        self._stirred.clear()
        await self._stirred.wait()

    def _event(self, method: str, params: dict[str, Any], session: str | None) -> None:
        self._stirred.set()
        if method == "Fetch.requestPaused":
            self._paused(params, session)
        elif method == "Target.attachedToTarget":
            target = self.targets.attached(params["sessionId"], params["targetInfo"], parent_session=session)
            self._spawn(self._follow(target))
        elif method == "Target.detachedFromTarget":
            self._detached(params["sessionId"])
        elif method.startswith("Page."):
            self._page_event(method.removeprefix("Page."), params, session)
        elif method.startswith("Network."):
            sender = self.targets.by_session.get(session or "")
            if sender is not None:
                self._traffic.event(method.removeprefix("Network."), params, sender)

    def _detached(self, session: str) -> None:
        gone = self.targets.detached(session)
        if gone is None:
            return
        self._worlds.forget(gone.target_id)
        self._traffic.gone(gone.target_id)
        if gone.kind in PAGE_TYPES:
            self._begun.arrived(gone.target_id)

    def _page_event(self, name: str, params: dict[str, Any], session: str | None) -> None:
        self._begun.page_event(name, params, session)
        if name == "frameAttached":
            self.targets.frame_attached(params["frameId"], params.get("parentFrameId"))
        elif name == "frameStartedNavigating":
            self.targets.navigating(params["loaderId"], params["navigationType"])
        elif name == "frameNavigated" and "parentId" not in params["frame"]:
            self._navigated(session, params["frame"]["url"], params["frame"]["loaderId"])

    def _paused(self, params: dict[str, Any], session: str | None) -> None:
        if self._connection is None:
            return
        if params["resourceType"] == "Document":
            self._begun.at_the_gate(params.get("frameId", ""))
        self._traffic.at_the_gate(params.get("networkId", ""))
        target = self.targets.by_session.get(session or "")
        if target is None or target.older_than_gate:
            self.gate.paused(self._connection, params, session)
        else:
            # The page has navigated since: the browser-level gate holds the same request, and one record is enough.
            order = {"requestId": params["requestId"]}
            self._spawn(self._quietly("Fetch.continueRequest", order, target.session))

    def _navigated(self, session: str | None, url: str, loader_id: str) -> None:
        target = self.targets.by_session.get(session or "")
        if target is None:
            return
        target.url, target.loader_id = url, loader_id
        # The world went with the document; asking it would cost a round trip to hear so.
        self._worlds.forget(target.target_id)
        if target.older_than_gate:
            target.older_than_gate = False
            self._spawn(self._quietly("Fetch.disable", {}, target.session))

    async def _follow(self, target: Target) -> None:
        """Learn a new page's frames, follow the frames and workers that it makes, and hear of their sockets."""
        shows = target.kind in PAGE_TYPES | {"iframe"}
        if not shows and target.kind not in WORKER_TYPES:
            return
        orders: list[tuple[str, dict[str, Any]]] = [
            ("Network.enable", NO_BUFFERS),
            ("Target.setAutoAttach", _auto_attach(FRAME_FILTER, pauses=True)),
            ("Runtime.runIfWaitingForDebugger", {}),
        ]
        if shows:
            orders = [("Page.getFrameTree", {}), ("Page.enable", {}), *orders]
        # Sent in one go, because a page does not wait for us; the browser takes them in order.
        work = [self._command(method, params, session=target.session) for method, params in orders]
        first, *_ = await asyncio.gather(*work, return_exceptions=True)
        if isinstance(first, dict) and "frameTree" in first:
            self.targets.frame_tree(first["frameTree"])

    async def _quietly(self, method: str, params: dict[str, Any], session: str) -> None:
        with contextlib.suppress(CdpError):
            await self._command(method, params, session=session)

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._background.add(task)
        task.add_done_callback(self._background.discard)

    async def _command(
        self, method: str, params: dict[str, Any] | None = None, *, session: str | None = None
    ) -> dict[str, Any]:
        if self._connection is None:
            raise CdpError("the gate is not attached")
        return await self._connection.send(method, params, session=session)

    async def context_with_marker(self, name: str) -> str | None:
        """Find the context that holds the marker cookie of that name, and take the cookie away again.

        Returns:
            The browser context's id, or ``None`` where no context of this browser has it.
        """
        answer = await self._command("Target.getBrowserContexts")
        default = answer.get("defaultBrowserContextId")
        for context_id in [*answer["browserContextIds"], *([default] if default else [])]:
            where = {} if context_id == default else {"browserContextId": context_id}
            cookies = (await self._command("Storage.getCookies", where))["cookies"]
            if any(cookie["name"] == name for cookie in cookies):
                gone = {"name": name, "value": "", "url": MARKER_URL, "expires": 1}
                await self._command("Storage.setCookies", {"cookies": [gone], **where})
                return str(context_id)
        return None

    async def evaluate(self, target_id: str, expression: str, *, repeated: str) -> object:
        """Evaluate an expression in a world of our own on a page's main frame.

        Args:
            target_id: The page.
            expression: JavaScript; its value, or what it promises, must be serialisable.
            repeated: What is evaluated instead in a world that has evaluated ``expression`` before. Where that gives
                nothing, ``expression`` is evaluated again.

        Raises:
            CdpError: The page is gone, is navigating, or the expression failed.
        """
        target = self.targets.targets.get(target_id)
        if target is None:
            raise CdpError("the page is gone")
        return await self._worlds.evaluate(target, expression, repeated)

    async def flushed(self, target_ids: set[str]) -> None:
        """Wait until the events of what those pages and workers have done so far are here; not for long."""
        known = [self.targets.targets[it].session for it in target_ids if it in self.targets.targets]
        asked = [self._quietly("Runtime.evaluate", {"expression": "1"}, session) for session in known]
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._policy.probe_timeout_s):
                await asyncio.gather(*asked)

    async def caught_up(self, target_id: str, *, turned: bool = False) -> None:
        """Wait until the navigations and requests that a page's scripts have begun are at the gate.

        ``form.submit()`` returns before its request exists: the browser begins it in the page's next turn, and
        announces it beforehand. A page that is navigating already has no next turn to wait for.

        Args:
            target_id: The page.
            turned: Its next turn has come already, because it was looked at in it.
        """
        with contextlib.suppress(CdpError, TimeoutError):
            async with asyncio.timeout(BEGUN_LIMIT_S):
                if not turned:
                    await self._next_turn(target_id)
                while self._begun.on_the_way(target_id):
                    await self._next_event()
        self._begun.waits_no_more(target_id)
        self._stirred.set()  # no event of the browser says so to another action that waits for the same
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(ON_THE_WAY_LIMIT_S):
                while self._traffic.is_on_the_way(target_id):
                    await self._next_event()
        await asyncio.sleep(0)  # a request that was paused just now begins to be ruled on in the loop's next turn

    async def _next_turn(self, target_id: str) -> None:
        turn = asyncio.create_task(self._turn(target_id))
        turn.add_done_callback(lambda _: self._stirred.set())
        try:
            while not self._begun.is_navigating(target_id) and not turn.done():
                await self._next_event()
        finally:
            turn.cancel()

    async def _turn(self, target_id: str) -> None:
        with contextlib.suppress(CdpError):
            next_turn = in_next_turn("true")
            await self.evaluate(target_id, next_turn, repeated=next_turn)

    async def cookies(self, target_id: str) -> list[dict[str, Any]]:
        """Cookies that the page's URL would be sent.

        Raises:
            CdpError: The page is gone.
        """
        target = self.targets.targets.get(target_id)
        if target is None:
            raise CdpError("the page is gone")
        answer = await self._command("Network.getCookies", session=target.session)
        return list(answer["cookies"])

    def reached(self, host: str, port: int, *, since: float) -> bool | None:
        """Whether a request can have gone there since that loop time; ``None`` without a relay."""
        return None if self._relay is None else self._relay.reached(host, port, since=since)

    async def close(self) -> None:
        """Let go of the browser. The relay is shut first, so that what is held cannot leave."""
        if self._relay is not None:
            self._relay.shut("the runtime is closed")
        if self._attaching is not None:
            self._attaching.cancel()
            await asyncio.gather(self._attaching, return_exceptions=True)
        self._traffic.close()
        await self.gate.close()
        if self._connection is not None:
            await self._connection.close()
        await asyncio.gather(*self._background, return_exceptions=True)
        if self._relay is not None:
            await self._relay.close()


def _auto_attach(target_filter: list[dict[str, Any]], *, pauses: bool = False) -> dict[str, Any]:
    """What to follow; with ``pauses`` it waits for ``_follow``, so that we hear of the first socket that it opens."""
    return {"autoAttach": True, "waitForDebuggerOnStart": pauses, "flatten": True, "filter": target_filter}
