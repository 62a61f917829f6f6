"""The routed engine: one context guarded through Playwright's own routing, for browsers that have no gate of ours.

The life of a request here, in order (``gate`` has the stronger one):

1. Our route is the last before the network, whatever the user registers and when: what a route of the user's fulfils
   or aborts never comes here. Their ``Route.continue_``, which would pass us, comes here through a hook.
2. Not an effect: it goes on at once, without a record.
3. The desk is asked; it writes DISPATCHED, or REFUSED, and says so. Refused: a navigation is answered with 204, so that
   the page stays; anything else fails.
4. It goes on. A redirect that repeats it is not routed again (by Playwright): its hops are the one effect.
5. The answer is recorded when Playwright tells of it. The page may see it a moment earlier.

It lives on Playwright's connection, so in sync code it runs on the agent's thread, and while that thinks, the page's
requests wait (field note 4). It never waits for anything but the desk, which never waits for the agent's thread, so the
two cannot hold each other up. If anything goes wrong on the way the request is refused. Made by ``hooks.guards``.
"""

from __future__ import annotations

import asyncio
import re
import secrets
from concurrent.futures import CancelledError as FutureCancelledError
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary, WeakSet

from playwright.async_api import Error as PlaywrightError

from browsermw.errors import BrowsermwError
from browsermw.events import Events
from browsermw.faults import Point, reach
from browsermw.protocol.effect_rules import SAFE_METHODS, is_effect
from browsermw.protocol.recovery import Wire
from browsermw.wire.cdp import CdpError
from browsermw.wire.held import HeldRequest, Ruling, SeenAnswer
from browsermw.wire.routed_request import held_request, seen_answer
from browsermw.wire.routed_sockets import RoutedSockets, nobody_rules
from browsermw.wire.targets import TargetMap

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping
    from concurrent.futures import Future

    from browsermw.policy import Policy
    from browsermw.wire.held import Desk
    from browsermw.wire.sockets import Socket
    from browsermw.wire.targets import Target

EVERYTHING = re.compile("(?:browsermw)?")
"""Found in every URL. By this very object our routes are told from the user's; ``context.unroute`` takes no other."""

log = Events("browsermw.routed")


@dataclass(frozen=True)
class Owner:
    """The run that a context belongs to, as far as the engine needs it.

    Attributes:
        desk: What rules on effects.
        policy: The user's rules.
        submit: Starts a coroutine on the runtime's loop.
        left: Whether the run was left.
    """

    desk: Desk
    policy: Policy
    submit: Callable[[Any], Future[Any]]
    left: Callable[[], bool]


class RoutedContext:
    """A context whose requests pass our route.

    Attributes:
        context: Playwright's context.
        context_id: Our name for it.
        wire: ``routed``.
        targets: What is known of its pages, by names of our own.
        owner: The run that it belongs to now.
        ruled_count: Effects that were ruled on so far.
    """

    def __init__(self, context: Any, owner: Owner) -> None:
        self.context_id = f"routed-{secrets.token_hex(8)}"
        self.wire = Wire.ROUTED
        self.targets = TargetMap()
        self.owner = owner
        self.ruled_count = 0
        self.context = context
        self._ids: WeakKeyDictionary[Any, str] = WeakKeyDictionary()
        self._released: WeakKeyDictionary[Any, str] = WeakKeyDictionary()
        self._forms: WeakKeyDictionary[Any, set[int]] = WeakKeyDictionary()
        self._repeating: WeakSet[Any] = WeakSet()
        self._sockets = RoutedSockets(self)

    # Taking a place.

    def install_sync(self) -> None:
        """Put the routes in place."""
        self._listen()
        self.context.route(EVERYTHING, self._routed_sync)
        self.context.route_web_socket(EVERYTHING, self._sockets.opened_sync)
        self._be_last()

    async def install_async(self) -> None:
        """See ``install_sync``."""
        self._listen()
        await self.context.route(EVERYTHING, self._routed_async)
        await self.context.route_web_socket(EVERYTHING, self._sockets.opened_async)
        self._be_last()

    def _listen(self) -> None:
        self.context.on("response", self._on_response)
        self.context.on("requestfailed", self._on_failed)
        self.context.on("close", self._on_close)

    def _be_last(self) -> None:
        """Move our routes behind the user's.

        Playwright asks the newest first, and there is no public way to be asked last; the tests of routes that users
        register before and after ours show that this one holds.
        """
        inside = self.context._impl_obj  # noqa: SLF001 - see the docstring
        for routes in (inside._routes, inside._web_socket_routes):  # noqa: SLF001
            ours = next(route for route in routes if route.url is EVERYTHING)
            routes.remove(ours)
            routes.append(ours)

    def keep_only_ours(self) -> None:
        """What ``context.unroute_all`` may do: take the user's routes away and leave the gate."""
        routes = self.context._impl_obj._routes  # noqa: SLF001 - see _be_last
        routes[:] = [route for route in routes if route.url is EVERYTHING]

    # What pages are there? Playwright names none, so we do.

    def page_id_sync(self, page: Any) -> str | None:
        """Our name for a page; ``None`` where there is no page."""
        if page is None:
            return None
        if page not in self._ids:
            opener = page.opener()
            self._name(page, opener and self.page_id_sync(opener))
        return self._seen_at(page)

    async def page_id_async(self, page: Any) -> str | None:
        """See ``page_id_sync``."""
        if page is None:
            return None
        if page not in self._ids:
            opener = await page.opener()
            self._name(page, opener and await self.page_id_async(opener))
        return self._seen_at(page)

    def _name(self, page: Any, opener_id: str | None) -> None:
        if page in self._ids:  # while we asked for its opener
            return
        name = self._ids[page] = f"page-{secrets.token_hex(8)}"
        described = {"targetId": name, "type": "page", "browserContextId": self.context_id, "openerId": opener_id}
        self.targets.attached(name, described)
        page.on("close", lambda *_: self.targets.detached(name))

    def _seen_at(self, page: Any) -> str:
        name = self._ids[page]
        target = self.targets.targets.get(name)
        if target is not None:
            target.url = page.url
        return name

    def _pages(self, page_id: str | None) -> tuple[Target, ...]:
        return self.targets.openers(self.targets.targets.get(page_id or ""))

    def repeating(self, page: Any, *, on: bool) -> None:
        """A reload or a step in the history of that page begins or is over."""
        if on and page is not None:
            self._repeating.add(page)
        else:
            self._repeating.discard(page)

    # A request waits in a route.

    def _routed_sync(self, route: Any) -> None:
        self.pass_sync(route, route.fallback, {})

    async def _routed_async(self, route: Any) -> None:
        await self.pass_async(route, route.fallback, {})

    def pass_sync(self, route: Any, go: Callable[[], None], changes: Mapping[str, Any]) -> None:
        """Let a request go, an effect once it is on record.

        Args:
            route: Playwright's route.
            go: Sends it on.
            changes: What is sent in its place.
        """
        request, ruling = route.request, Ruling()
        navigates = request.is_navigation_request()
        if self._is_effect(request, changes):
            try:
                page = _page_of(request)
                held = self._held(request, changes, page, self.page_id_sync(page))
                ruling = self.ask(held).result()
            except (Exception, FutureCancelledError) as error:  # noqa: BLE001 - whatever it is, nothing may leave
                ruling = nobody_rules(error)
        if ruling.refusal is None:
            self._goes(request, ruling)
            go()
            reach(Point.GATE_RELEASED, request.method)
        elif navigates:
            route.fulfill(status=204)
        else:
            route.abort("blockedbyclient")

    async def pass_async(self, route: Any, go: Callable[[], Awaitable[None]], changes: Mapping[str, Any]) -> None:
        """See ``pass_sync``."""
        request, ruling = route.request, Ruling()
        navigates = request.is_navigation_request()
        if self._is_effect(request, changes):
            try:
                page = _page_of(request)
                held = self._held(request, changes, page, await self.page_id_async(page))
                ruling = await asyncio.wrap_future(self.ask(held))
            except (Exception, asyncio.CancelledError) as error:  # noqa: BLE001 - whatever it is, nothing may leave
                ruling = nobody_rules(error)
        if ruling.refusal is None:
            self._goes(request, ruling)
            await go()
            reach(Point.GATE_RELEASED, request.method)
        elif navigates:
            await route.fulfill(status=204)
        else:
            await route.abort("blockedbyclient")

    def _is_effect(self, request: Any, changes: Mapping[str, Any]) -> bool:
        if not changes and request.method in SAFE_METHODS and not self.owner.policy.effects:
            return False  # most requests are of this kind; describing each would cost the page time
        held = held_request(request, changes, context_id=self.context_id, pages=())
        return is_effect(self.owner.policy, held.method, held.url, held.content_type, held.body)

    def _held(self, request: Any, changes: Mapping[str, Any], page: Any, page_id: str | None) -> HeldRequest:
        pages = self._pages(page_id)
        held = held_request(request, changes, context_id=self.context_id, pages=pages)
        if page is None or not held.navigates:
            return held
        form, sent = hash((held.method, held.url, held.body)), self._forms.setdefault(page, set())
        repeats = form in sent and page in self._repeating
        sent.add(form)
        return replace(held, repeats=repeats)

    def ask(self, held: HeldRequest) -> Future[Ruling]:
        """Put an effect to the desk.

        Raises:
            BrowsermwError: There is nobody to ask any more; it must not leave.
        """
        reach(Point.GATE_HOLDS, held.method)
        if self.owner.left():
            raise BrowsermwError("the run was left")
        self.ruled_count += 1
        return self.owner.submit(self._rule(held))

    async def _rule(self, held: HeldRequest) -> Ruling:
        ruling = await self.owner.desk.rule(held)
        reach(Point.GATE_RULED, held.method)
        return ruling

    def _goes(self, request: Any, ruling: Ruling) -> None:
        if ruling.effect_id is not None:
            self._released[request] = ruling.effect_id

    # An answer is told.

    def _on_response(self, response: Any) -> None:
        request = self._released_by(response.request)
        if request is None:
            return
        seen = seen_answer(response)
        if seen is not None:
            self.record(self._released.pop(request), seen)

    def _on_failed(self, failed: Any) -> None:
        request = self._released_by(failed)
        if request is not None:
            # What a hop failed of says nothing about the request before it, which did arrive somewhere.
            where = "" if request is failed else "after a redirect: "
            self.record(self._released.pop(request), SeenAnswer(error=where + (failed.failure or "no answer")))

    def _released_by(self, request: Any) -> Any:
        """The request that was released and that this one, a redirect hop or itself, continues."""
        while request is not None and request not in self._released:
            request = request.redirected_from
        return request

    def record(self, effect_id: str, seen: SeenAnswer) -> None:
        """Have an answer recorded; nobody waits for it here."""
        try:
            self.owner.submit(self._answered(effect_id, seen))
        except BrowsermwError as error:
            log.warning("answer_not_recorded", effect=effect_id, cause=str(error))

    async def _answered(self, effect_id: str, seen: SeenAnswer) -> None:
        reach(Point.GATE_ANSWER_HELD, effect_id)
        await self.owner.desk.answered(effect_id, seen)
        reach(Point.GATE_ANSWER_RECORDED, effect_id)

    def _on_close(self, *_: object) -> None:
        for effect_id in self._released.values():
            self.record(effect_id, SeenAnswer(error="the context was closed before the answer"))
        self._released.clear()

    # What the desk asks of an engine.

    @property
    def gate_is_gone(self) -> bool:
        """See ``Engine``: the routes end with the connection that the page is driven by."""
        return False

    def context_closed(self, context_id: str) -> None:
        """See ``Engine``: a closed context has no route any more."""

    def reached_by(self, effect_id: str) -> bool | None:  # noqa: ARG002
        """See ``Engine``: without a relay nobody knows."""
        return None

    def sockets_beside(self, page_id: str) -> list[Socket]:  # noqa: ARG002
        """See ``Engine``: each frame is held until it is on record, so no click has to be armed."""
        return []

    async def flushed(self, target_ids: set[str]) -> None:
        """See ``Engine``."""

    async def evaluate(self, target_id: str, expression: str, *, repeated: str) -> object:  # noqa: ARG002
        """The desk cannot look from its own thread; the hooks do (``hooks.looks``), where a call ends in order."""
        raise CdpError("nobody looked at the page")

    async def cookies(self, target_id: str) -> list[dict[str, Any]]:  # noqa: ARG002
        """See ``evaluate``."""
        raise CdpError("nobody looked at the page")

    async def caught_up(self, target_id: str, *, turned: bool = False) -> None:
        """Nothing announces a navigation here; one that comes late is the page's own."""

    def reached(self, host: str, port: int, *, since: float) -> bool | None:
        """Without a relay nobody knows."""


def _page_of(request: Any) -> Any:
    """The page that a request belongs to; ``None`` for a worker's, and for the first one of a page that is coming."""
    try:
        return request.frame.page
    except PlaywrightError:
        return None
