"""Which action a request belongs to, when it takes its time to the gate."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.async_api import Page, Route

    from tests.browser_kit import Journal
    from tests.shop_site import Shop


async def test_a_request_that_the_users_route_keeps_for_a_moment_belongs_to_its_click(
    page: Page, shop: Shop, journal: Journal
) -> None:
    async def later(route: Route) -> None:
        await asyncio.sleep(0.15)
        await route.continue_()

    await page.goto(f"{shop.url}/checkout")
    await page.route("**/api/checkout", later)
    await page.click("#pay")
    await page.wait_for_selector('#result:has-text("201")')
    [effect] = await asyncio.to_thread(journal.settled)
    assert journal.action_of(effect).method == "Page.click"
