"""One shop and one Playwright for the folder, one runtime with its browser for each module, a run for each test.

Launching takes most of a second, so tests share a browser and have a run, a context and a page of their own; those
that need another policy, or break something, open a runtime of their own with ``opening``.
"""

from __future__ import annotations

import itertools
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, Playwright, sync_playwright

import browsermw
from benchmarks.browsers import bare_options
from browsermw import Policy
from tests.browser_kit import Journal, make_certificates, mark_our_processes, processes_left
from tests.browser_sync.sides import Both
from tests.shop_site import Shop

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager
    from pathlib import Path

    from browsermw import Run, Runtime

TIMEOUT_MS = 15_000
_numbers = itertools.count(1)


@pytest.fixture(scope="session", autouse=True)
def _no_browser_is_left() -> Iterator[None]:
    mark = mark_our_processes()
    yield
    assert processes_left(mark) == []


@pytest.fixture(scope="session")
def playwright(_no_browser_is_left: None) -> Iterator[Playwright]:
    with sync_playwright() as started:
        yield started


@pytest.fixture(scope="session")
def _http_shop() -> Iterator[Shop]:
    with Shop.start() as started:
        yield started


@pytest.fixture
def shop(_http_shop: Shop) -> Iterator[Shop]:
    _http_shop.reset()
    yield _http_shop
    _http_shop.release()


@pytest.fixture(scope="session")
def _https_shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    pair, ca = make_certificates(tmp_path_factory.mktemp("tls"))
    with Shop.start(pair, ca=ca) as started:
        yield started


@pytest.fixture
def tls_shop(_https_shop: Shop) -> Iterator[Shop]:
    _https_shop.reset()
    yield _https_shop
    _https_shop.release()


@contextmanager
def _opened(
    playwright: Playwright, folder: Path, policy: Policy | None = None, **launch: Any
) -> Iterator[tuple[Runtime, Browser]]:
    url = f"sqlite:///{folder / 'agent.db'}"
    with browsermw.open(url, runtime="agent-7", policy=policy or Policy(settle_s=1)) as mw:
        browser = playwright.chromium.launch(**mw.launch_options(headless=True, **launch))
        try:
            yield mw, browser
        finally:
            browser.close()


@pytest.fixture
def opening(playwright: Playwright, tmp_path: Path) -> Callable[..., AbstractContextManager[tuple[Runtime, Browser]]]:
    """Make runtimes on a ledger of the test's own, with a browser, for ``with``; takes a policy."""
    return lambda policy=None, **launch: _opened(playwright, tmp_path, policy, **launch)


@pytest.fixture(scope="module")
def policy() -> Policy | None:
    """The policy of the module's runtime; a module that needs another one says so by a fixture of this name."""
    return None


@pytest.fixture(scope="module")
def _office(
    playwright: Playwright, policy: Policy | None, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Runtime, Browser]]:
    with _opened(playwright, tmp_path_factory.mktemp("ledger"), policy) as opened:
        yield opened


@pytest.fixture(scope="module")
def mw(_office: tuple[Runtime, Browser]) -> Runtime:
    return _office[0]


@pytest.fixture(scope="module")
def browser(_office: tuple[Runtime, Browser]) -> Browser:
    return _office[1]


@pytest.fixture(scope="module")
def bare_browser(playwright: Playwright) -> Iterator[Browser]:
    """A browser without us, to compare with."""
    started = playwright.chromium.launch(**bare_options())
    yield started
    started.close()


@pytest.fixture
def both(
    playwright: Playwright, bare_browser: Browser, browser: Browser, mw: Runtime, run: Run, tmp_path: Path
) -> Both:
    """Does some work in a bare and in a guarded browser and compares what came of it."""
    return Both(playwright, bare_browser, browser, (mw, run), tmp_path)


@pytest.fixture
def run(mw: Runtime) -> Iterator[Run]:
    with mw.run(f"invoice-{next(_numbers)}") as entered:
        yield entered


@pytest.fixture
def journal(mw: Runtime, run: Run) -> Journal:
    return Journal(mw, run.run_id)


@pytest.fixture
def context(browser: Browser, run: Run, shop: Shop) -> Iterator[BrowserContext]:
    made = run.wrap(browser.new_context())
    made.set_default_timeout(TIMEOUT_MS)
    yield made
    shop.release()
    made.close()


@pytest.fixture
def page(context: BrowserContext) -> Page:
    return context.new_page()
