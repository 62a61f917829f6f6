"""Opens a place for the channels on one engine: a ledger, a runtime, a browser and a page to wait through.

The tests and ``browsermw doctor`` use it. Each engine is one function here and one line in ``OPENERS``.
"""

from __future__ import annotations

from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

import browsermw
from browsermw.policy import Policy
from browsermw.testing.channels.place import Place
from browsermw.testing.channels.states import Engine
from browsermw.wire.launch import free_port, local_browser

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager
    from pathlib import Path

    from playwright.sync_api import Browser, BrowserContext, Playwright

    from browsermw.runtime import Runtime
    from browsermw.testing.shop_site import Shop

    Opener = Callable[[Playwright, Path], AbstractContextManager[tuple[Runtime, Browser]]]


@contextmanager
def opened(engine: Engine, playwright: Playwright, shop: Shop, folder: Path) -> Iterator[Place]:
    """A place on this engine, closed in order at the end.

    Args:
        engine: One of ``OPENERS``.
        playwright: A started Playwright, sync flavour.
        shop: A running shop.
        folder: Where the ledger may lie; it must exist.
    """
    with OPENERS[engine](playwright, folder) as (mw, browser), Place(mw, _maker(engine, browser), shop) as place:
        yield place


def _maker(engine: Engine, browser: Browser) -> Callable[[], BrowserContext]:
    # Nobody can guard what a service worker sends past Playwright's routes.
    return partial(browser.new_context, service_workers="block") if engine is Engine.ROUTED else browser.new_context


@contextmanager
def _runtime(folder: Path, engine: Engine) -> Iterator[Runtime]:
    policy = Policy(minimum_wire=engine.value, settle_s=1)
    with browsermw.open(f"sqlite:///{folder / engine.value}.db", runtime="channels", policy=policy) as mw:
        yield mw


@contextmanager
def _sealed(playwright: Playwright, folder: Path) -> Iterator[tuple[Runtime, Browser]]:
    with _runtime(folder, Engine.SEALED) as mw:
        browser = playwright.chromium.launch(**mw.launch_options(headless=True))
        try:
            yield mw, browser
        finally:
            browser.close()


@contextmanager
def _attached(playwright: Playwright, folder: Path) -> Iterator[tuple[Runtime, Browser]]:
    """A browser that knows nothing of us, joined over its debugging port by us and by Playwright."""
    port = free_port()
    options = local_browser({"headless": True, "args": [f"--remote-debugging-port={port}"]})
    foreign = playwright.chromium.launch(**options)
    try:
        with _runtime(folder, Engine.ATTACHED) as mw:
            mw.attach(f"http://127.0.0.1:{port}")
            yield mw, playwright.chromium.connect_over_cdp(f"http://127.0.0.1:{port}")
    finally:
        foreign.close()


@contextmanager
def _routed(playwright: Playwright, folder: Path) -> Iterator[tuple[Runtime, Browser]]:
    """A browser without any gate; its contexts are guarded by Playwright's own routing."""
    browser = playwright.chromium.launch(**local_browser({"headless": True}))
    try:
        with _runtime(folder, Engine.ROUTED) as mw:
            yield mw, browser
    finally:
        browser.close()


OPENERS: dict[Engine, Opener] = {Engine.SEALED: _sealed, Engine.ATTACHED: _attached, Engine.ROUTED: _routed}
