"""The same work in a bare browser and in a guarded one: what the page and the server saw has to be the same."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from benchmarks.browsers import bare_options
from tests.browser_kit import Journal, comparable

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from playwright.sync_api import Browser, BrowserContext, Playwright

    from browsermw import Run, Runtime
    from browsermw.models import Effect
    from tests.shop_site import Shop

TIMEOUT_MS = 15_000


class Side:
    """One of the two: makes contexts and browsers, and ends them.

    Attributes:
        browser: For contexts; another one where the work launches its own.
        folder: For files.
        run: That guards; ``None`` on the bare side.
    """

    def __init__(
        self,
        playwright: Playwright,
        browser: Browser,
        folder: Path,
        ending: ExitStack,
        guard: tuple[Runtime, Run] | None,
    ) -> None:
        self._playwright = playwright
        self._ending = ending
        self._mw: Runtime | None = guard[0] if guard is not None else None
        self.run: Run | None = guard[1] if guard is not None else None
        self.browser = browser
        self.folder = folder
        folder.mkdir()

    def context(self, browser: Browser | None = None, **options: Any) -> BrowserContext:
        """A context, guarded on the guarded side."""
        return self.taken((browser or self.browser).new_context(**options))

    def taken(self, context: BrowserContext) -> BrowserContext:
        """Guard a context on the guarded side; close it at the end."""
        self._ending.callback(context.close)
        context.set_default_timeout(TIMEOUT_MS)
        return context if self.run is None else self.run.wrap(context)

    def launch_options(self, **options: Any) -> dict[str, Any]:
        """Arguments for a launch."""
        if self._mw is not None:
            return self._mw.launch_options(headless=True, **options)
        bare = bare_options()
        return {**bare, **options, "args": [*bare["args"], *options.get("args", ())]}

    def launch_bare(self, **options: Any) -> Browser:
        """A browser without us on either side."""
        bare = bare_options()
        browser = self._playwright.chromium.launch(**{**bare, **options, "args": [*bare["args"], *options["args"]]})
        self._ending.callback(browser.close)
        return browser

    def launch(self, **options: Any) -> Browser:
        """A browser of its own."""
        browser = self._playwright.chromium.launch(**self.launch_options(**options))
        self._ending.callback(browser.close)
        return browser


class Both:
    """Does some work on both sides.

    Attributes:
        journal: Of the guarded side's run.
    """

    def __init__(
        self, playwright: Playwright, bare: Browser, guarded: Browser, guard: tuple[Runtime, Run], folder: Path
    ) -> None:
        self._playwright = playwright
        self._sides = {"bare": (bare, None), "guarded": (guarded, guard)}
        self._folder = folder
        self.journal = Journal(guard[0], guard[1].run_id)

    def __call__(
        self, shop: Shop, work: Callable[[Side], Any], *, posts: int = 1, records: int | None = None
    ) -> tuple[Any, list[Effect]]:
        """Do the work on both sides and compare.

        Args:
            shop: What the work talks to.
            work: Returns what the page saw.
            posts: How many POSTs must have arrived.
            records: How many effects must be answered on record; by default as many.

        Returns:
            What the page saw, and the effects on record.
        """
        seen, arrived = {}, {}
        records = posts if records is None else records
        for name, (browser, guard) in self._sides.items():
            shop.reset()
            with ExitStack() as ending:
                seen[name] = work(Side(self._playwright, browser, self._folder / name, ending, guard))
                arrived[name] = comparable(shop.arrivals())
                if guard is not None:
                    effects = self.journal.settled(count=records)
        assert seen["guarded"] == seen["bare"]
        assert arrived["guarded"] == arrived["bare"]
        assert sum(arrival["method"] == "POST" for arrival in arrived["guarded"]) == posts
        assert len([effect for effect in effects if effect.status is not None]) == records
        return seen["guarded"], effects
