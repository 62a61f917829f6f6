"""Where channels are fired: a runtime, its browser, a shop, and guarded pages to lend.

Making a context costs as much as firing a channel, so most channels take the same page one after another. A page is not
lent again once anything in its run is in doubt: the run would refuse the next channel, and the fault would be ours.
"""

from __future__ import annotations

import itertools
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Self

from browsermw.hooks.waiting import wait_through

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from concurrent.futures import Future
    from types import TracebackType
    from typing import Any

    from playwright.sync_api import BrowserContext, Page

    from browsermw.runtime import Runtime
    from browsermw.testing.shop_site import Shop

ACTION_LIMIT_MS = 60_000
SETTLE_S = 5.0

Lent = tuple[str, "Page"]
"""A run's id, and a page in a context that it guards."""


class Place:
    """A context manager; leaving it closes what it lent.

    Args:
        mw: An open runtime.
        new_context: Makes a context in a browser that the runtime guards.
        shop: A running shop.
    """

    def __init__(self, mw: Runtime, new_context: Callable[[], BrowserContext], shop: Shop) -> None:
        self.mw = mw
        self.shop = shop
        self._new_context = new_context
        # No channel touches this page; waiting through it keeps Playwright's handlers running.
        self._keeper = new_context().new_page()
        self._numbers = itertools.count(1)
        self._kept = ExitStack()
        self._shared: Lent | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._let_go()

    def wait(self, future: Future[Any]) -> Any:
        """Wait for something that is not Playwright's, without starving a handler that is."""
        return wait_through(future, self._keeper)

    @contextmanager
    def page(self, *, alone: bool) -> Iterator[Lent]:
        """Lend a page.

        Args:
            alone: A page in a context and a run of its own, which end with the loan.
        """
        if alone:
            with ExitStack() as stack:
                yield self._made(stack)
            return
        if self._shared is None:
            self._shared = self._made(self._kept)
        try:
            yield self._shared
        except BaseException:
            self._let_go()
            raise
        self._tidy(*self._shared)

    def _made(self, stack: ExitStack) -> Lent:
        run = stack.enter_context(self.mw.run(f"channels-{self.mw.boot_id}-{next(self._numbers)}"))
        context = run.wrap(self._new_context())
        stack.callback(context.close)
        context.set_default_timeout(ACTION_LIMIT_MS)
        return run.run_id, context.new_page()

    def _tidy(self, run_id: str, page: Page) -> None:
        """Make the page fit for the next channel, or give it up."""
        self.wait(self.mw.submit(self.mw.desk.settle(run_id, SETTLE_S)))
        # A popup ends with its context: Playwright, also without us, hangs in `close` of one that is navigating.
        if len(page.context.pages) != 1 or page.is_closed() or self.mw.ledger_call("quarantined", run_id):
            self._let_go()

    def _let_go(self) -> None:
        self._shared = None
        self._kept.close()
