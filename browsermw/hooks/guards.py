"""Guards: which run does a Playwright object belong to, and what is its page's name at the gate?

Each hook asks first; an object of a context that nobody wrapped costs a dictionary look-up. Three peeks at
Playwright's inside stand here and nowhere else, because there is no public way but a round trip: the frame of an
element handle, the context of a route, the fields of a form. The browser tests show that they hold.
"""

from __future__ import annotations

import asyncio
import secrets
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from playwright.async_api import BrowserContext as AsyncContext
from playwright.async_api import Error as PlaywrightError
from playwright.sync_api import BrowserContext as SyncContext

from browsermw.errors import BrowsermwError
from browsermw.wire.chromium import MARKER_URL
from browsermw.wire.routed import Owner, RoutedContext

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from browsermw.hooks.table import ActionKind
    from browsermw.run import Run
    from browsermw.wire.chromium import GuardedBrowser

_by_context: WeakKeyDictionary[Any, Guard] = WeakKeyDictionary()
_routed_of: WeakKeyDictionary[Any, RoutedContext] = WeakKeyDictionary()
_by_part: WeakKeyDictionary[Any, tuple[Guard, Any]] = WeakKeyDictionary()
_API = "_pw_api_instance_"
MARKER_LIFE_S = 60


class Guard:
    """A wrapped context.

    Attributes:
        run: The run that it belongs to.
        context: The Playwright context.
        sync: Whether it is a sync one.
        closed: The run was left; what would need it is refused.
        context_id: Its id at the gate, once it was found there.
        routed: The engine of a context that no gate of ours stands before.
    """

    def __init__(self, run: Run, context: Any) -> None:
        if not isinstance(context, SyncContext | AsyncContext):
            raise TypeError(
                f"wrap: {type(context).__name__} is no Playwright BrowserContext; give browser.new_context()"
            )
        self.run = run
        self.context: Any = context
        self.sync = isinstance(context, SyncContext)
        self.closed = False
        self.context_id: str | None = None
        self.routed: RoutedContext | None = None
        self._page_ids: WeakKeyDictionary[Any, str] = WeakKeyDictionary()
        self._identifying: asyncio.Task[None] | None = None

    def check_open(self) -> None:
        """Refuse a closed context.

        Raises:
            BrowsermwError: It is closed.
        """
        if self.context.is_closed():
            raise BrowsermwError("Nothing left the browser: this context is closed; wrap a new one.")

    def passes(self, entry: ActionKind) -> bool:
        """Whether a call may go unjournaled: after the run was left, what only reads; the gate refuses effects."""
        return self.closed and (entry.lazy or entry.reads_only)

    def open_pages(self) -> Iterator[Any]:
        """Pages that can still be waited through."""
        if not self.context.is_closed():
            yield from (page for page in self.context.pages if not page.is_closed())

    # Which browser context is it? A marker cookie tells, whether or not it has a page yet.

    def identify(self, browsers: list[GuardedBrowser]) -> None:
        """Find the context at the gate, or else route it: at once in sync code, at the next await in async code.

        ``wrap`` is a plain call in both flavours, and Playwright's async calls have to be awaited; so the task is
        started here and every hooked call waits for it. Until it is done the gate refuses what the context sends.

        Args:
            browsers: Where it may be; with none it is routed.
        """
        marker = f"browsermw-{secrets.token_hex(8)}"
        if self.sync:
            self._identify_sync(marker, browsers)
        else:
            self._identifying = asyncio.get_running_loop().create_task(self._identify_async(marker, browsers))

    def _identify_sync(self, marker: str, browsers: list[GuardedBrowser]) -> None:
        if browsers:
            self.context.add_cookies([_marker(marker)])
            self.context_id = self.run.runtime.submit(self.run.identify(marker, browsers)).result()
            if self.context_id is not None:
                return
            self.context.clear_cookies(name=marker)
        engine, is_new = self._engine()
        self.run.runtime.submit(self.run.identify_routed(engine)).result()
        if is_new:
            engine.install_sync()
        self.routed = engine

    async def _identify_async(self, marker: str, browsers: list[GuardedBrowser]) -> None:
        if browsers:
            await self.context.add_cookies([_marker(marker)])
            self.context_id = await asyncio.wrap_future(self.run.runtime.submit(self.run.identify(marker, browsers)))
            if self.context_id is not None:
                return
            await self.context.clear_cookies(name=marker)
        engine, is_new = self._engine()
        await asyncio.wrap_future(self.run.runtime.submit(self.run.identify_routed(engine)))
        if is_new:
            await engine.install_async()
        self.routed = engine

    def _engine(self) -> tuple[RoutedContext, bool]:
        """The context's engine: routes that an earlier run has put there serve this one from now on."""
        runtime = self.run.runtime
        owner = Owner(runtime.desk, runtime.policy, runtime.submit, lambda: self.closed)
        known = _routed_of.get(self.context)
        if known is not None:
            known.owner = owner
            return known, False
        made = _routed_of[self.context] = RoutedContext(self.context, owner)
        return made, True

    async def identified(self) -> None:
        """Wait until the context was found at the gate.

        Raises:
            WireTooWeak: It is in none of the guarded browsers.
        """
        if self._identifying is not None:
            await asyncio.shield(self._identifying)

    # What is a page's name at the gate? Asked once for each page.

    def page_id_sync(self, page: Any) -> str | None:
        """Target id of a page; ``None`` where it is gone."""
        if self.routed is not None:
            return self.routed.page_id_sync(page)
        if page is None:
            return None
        if page in self._page_ids:
            return self._page_ids[page]
        try:
            session = self.context.new_cdp_session(page)
            self._page_ids[page] = session.send("Target.getTargetInfo")["targetInfo"]["targetId"]
            session.detach()
        except PlaywrightError:
            return None
        return self._page_ids[page]

    async def page_id_async(self, page: Any) -> str | None:
        """See ``page_id_sync``."""
        if self.routed is not None:
            return await self.routed.page_id_async(page)
        if page is None:
            return None
        if page in self._page_ids:
            return self._page_ids[page]
        try:
            session = await self.context.new_cdp_session(page)
            self._page_ids[page] = (await session.send("Target.getTargetInfo"))["targetInfo"]["targetId"]
            await session.detach()
        except PlaywrightError:
            return None
        return self._page_ids[page]


def _marker(name: str) -> Any:
    return {"name": name, "value": "1", "url": MARKER_URL}


def register(guard: Guard) -> None:
    """Make a guard known, with the parts of its pages that do not say which page they belong to."""
    _by_context[guard.context] = guard
    _by_part[guard.context.request] = (guard, None)
    for page in guard.context.pages:
        _register_page(guard, page)
    guard.context.on("close", lambda *_: _forget(guard.context))
    guard.context.on("page", lambda page: _register_page(guard, page))


def _forget(context: Any) -> None:
    _by_context.pop(context, None)
    _routed_of.pop(context, None)


def _register_page(guard: Guard, page: Any) -> None:
    for part in (page.keyboard, page.mouse, page.touchscreen):
        _by_part[part] = (guard, page)
    _by_part[page.request] = (guard, None)


def find_guard(context: object) -> Guard | None:
    """The guard of a context, if it was wrapped."""
    return _by_context.get(context) if isinstance(context, SyncContext | AsyncContext) else None


def any_guards() -> bool:
    """Whether any context is wrapped in this process."""
    return bool(_by_context)


def guard_of(class_name: str, instance: Any) -> tuple[Guard | None, Any]:
    """The guard and the page of a Playwright object.

    Args:
        class_name: Playwright's public class.
        instance: The object.
    """
    if not _by_context:
        return None, None
    if class_name in {"Keyboard", "Mouse", "Touchscreen", "APIRequestContext"}:
        return _by_part.get(instance, (None, None))
    page = _PAGE_OF[class_name](instance)
    if page is None:
        return None, None
    return _by_context.get(page.context), page


def guard_of_route(route: Any) -> tuple[Guard | None, Any]:
    """The guard and the page of a route; a service worker's request has no page."""
    if not _by_context:
        return None, None
    try:
        page = route.request.frame.page
    except PlaywrightError:
        context = getattr(getattr(route._impl_obj, "_context", None), _API, None)  # noqa: SLF001 - see the module
        return _by_context.get(context), None
    return _by_context.get(page.context), page


def _page_of_handle(handle: Any) -> Any:
    frame = getattr(handle._impl_obj, "_frame", None)  # noqa: SLF001 - owner_frame() is a round trip
    return getattr(getattr(frame, "_page", None), _API, None)


def form_fields(given: Any) -> list[tuple[str, Any]] | None:
    """Names and values of a dict or of Playwright's ``FormData``; ``None`` where they cannot be seen."""
    return list(given.items()) if isinstance(given, dict) else getattr(given, "_fields", None)


_PAGE_OF: dict[str, Callable[[Any], Any]] = {
    "Page": lambda page: page,
    "Frame": lambda frame: frame.page,
    "Locator": lambda locator: locator.page,
    "ElementHandle": _page_of_handle,
    "JSHandle": _page_of_handle,
    "FileChooser": lambda chooser: chooser.page,
}
