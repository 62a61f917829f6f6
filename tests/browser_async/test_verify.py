"""A page is brought back and held against what the earlier boot saw last, in the async flavour."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from benchmarks.browsers import bare_options
from browsermw import BrowsermwError, Identity, IdentityMismatch, Policy

if TYPE_CHECKING:
    from collections.abc import Callable

    from playwright.async_api import Browser, Page, Playwright

    from browsermw import Run
    from tests.shop_site import Shop

    Opening = Callable[..., Any]

WHO = Identity(cookie="session")


async def page_of(run: Run, browser: Browser, shop: Shop, user: str, **context: Any) -> Page:
    page = await run.wrap(await browser.new_context(**context)).new_page()
    await page.goto(f"{shop.url}/login?user={user}")
    await page.goto(f"{shop.url}/form?action=/order")
    return page


async def test_a_page_that_was_brought_back_is_told_from_one_that_was_not(opening: Opening, shop: Shop) -> None:
    async with opening(Policy(identity=WHO)) as (mw, browser):
        async with mw.run("r") as run:
            page = await page_of(run, browser, shop, "alice")
            with pytest.raises(BrowsermwError, match="no earlier process left a checkpoint"):
                await run.averify(page)
        async with mw.run("r") as run:
            page = await page_of(run, browser, shop, "alice")
            assert (await run.averify(page)).is_same
            await page.fill("#item", "pen")
            assert (await run.averify(page)).differences == ("the page shows something else",)
            stranger = await page_of(run, browser, shop, "bob")
            with pytest.raises(IdentityMismatch, match="another user is signed in"):
                await run.averify(stranger)
    assert shop.count(None) == 0


async def test_a_routed_page_is_looked_at_through_playwright(
    opening: Opening, shop: Shop, playwright: Playwright
) -> None:
    plain = await playwright.chromium.launch(**bare_options())
    async with opening(Policy(minimum_wire="routed", identity=WHO)) as (mw, _):
        for is_back in (False, True):
            async with mw.run("r") as run:
                page = await page_of(run, plain, shop, "alice", service_workers="block")
                assert not is_back or (await run.averify(page)).is_same
                await page.context.close()
    await plain.close()
