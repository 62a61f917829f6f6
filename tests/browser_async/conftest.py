"""One shop, one Playwright and one event loop for the folder; runtimes, runs and pages as in the sync folder."""

from __future__ import annotations

import itertools
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest
import pytest_asyncio
from playwright.async_api import Browser, BrowserContext, Page, Playwright, async_playwright

import browsermw
from browsermw import Policy
from tests.browser_kit import Journal, mark_our_processes, processes_left
from tests.shop_site import Shop

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator
    from contextlib import AbstractAsyncContextManager
    from pathlib import Path

    from browsermw import Run, Runtime

TIMEOUT_MS = 15_000
_numbers = itertools.count(1)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Playwright's objects belong to the loop that they were made in: one loop for all."""
    here = str(__file__).removesuffix("conftest.py")
    for item in items:
        if str(item.path).startswith(here) and pytest_asyncio.is_async_test(item):
            item.add_marker(pytest.mark.asyncio(loop_scope="session"), append=False)


@pytest.fixture(scope="session", autouse=True)
def _no_browser_is_left() -> Iterator[None]:
    mark = mark_our_processes()
    yield
    assert processes_left(mark) == []


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def playwright(_no_browser_is_left: None) -> AsyncIterator[Playwright]:
    async with async_playwright() as started:
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


@asynccontextmanager
async def _opened(
    playwright: Playwright, folder: Path, policy: Policy | None = None, **launch: Any
) -> AsyncIterator[tuple[Runtime, Browser]]:
    url = f"sqlite:///{folder / 'agent.db'}"
    async with browsermw.open(url, runtime="agent-7", policy=policy or Policy(settle_s=1)) as mw:
        browser = await playwright.chromium.launch(**mw.launch_options(headless=True, **launch))
        try:
            yield mw, browser
        finally:
            await browser.close()


@pytest.fixture
def opening(
    playwright: Playwright, tmp_path: Path
) -> Callable[..., AbstractAsyncContextManager[tuple[Runtime, Browser]]]:
    """Make runtimes on a ledger of the test's own, with a browser, for ``async with``; takes a policy."""
    return lambda policy=None, **launch: _opened(playwright, tmp_path, policy, **launch)


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def _office(
    playwright: Playwright, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[tuple[Runtime, Browser]]:
    async with _opened(playwright, tmp_path_factory.mktemp("ledger")) as opened:
        yield opened


@pytest.fixture
def mw(_office: tuple[Runtime, Browser]) -> Runtime:
    return _office[0]


@pytest.fixture
def browser(_office: tuple[Runtime, Browser]) -> Browser:
    return _office[1]


@pytest_asyncio.fixture(loop_scope="session")
async def run(mw: Runtime) -> AsyncIterator[Run]:
    async with mw.run(f"invoice-{next(_numbers)}") as entered:
        yield entered


@pytest.fixture
def journal(mw: Runtime, run: Run) -> Journal:
    return Journal(mw, run.run_id)


@pytest_asyncio.fixture(loop_scope="session")
async def context(browser: Browser, run: Run, shop: Shop) -> AsyncIterator[BrowserContext]:
    made = run.wrap(await browser.new_context())
    made.set_default_timeout(TIMEOUT_MS)
    yield made
    shop.release()
    await made.close()


@pytest_asyncio.fixture(loop_scope="session")
async def page(context: BrowserContext) -> Page:
    return await context.new_page()
