"""Calls of the driver that once went out twice, or ended as never sent although they had arrived."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import Error

from browsermw import EffectRefused, OutcomeUnknown

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Page, Route

    from browsermw import Run
    from tests.browser_kit import Journal
    from tests.shop_site import Shop

ORDER = {"item": "book"}


def test_a_relative_url_whose_answer_is_lost_is_in_doubt(
    browser: Browser, run: Run, shop: Shop, journal: Journal
) -> None:
    context = run.wrap(browser.new_context(base_url=shop.url))
    with pytest.raises(OutcomeUnknown):
        context.request.post("/api/drop", data=ORDER)
    with pytest.raises(EffectRefused):
        context.request.post("/api/drop", data=ORDER)
    assert shop.count("/api/drop") == 1
    assert journal.phases("/api/drop") == ["NEEDS_REVIEW", "REFUSED"]
    assert journal.effects()[0].url == f"{shop.url}/api/drop"
    context.close()


def test_the_driver_does_not_send_an_effect_again_by_itself(
    context: BrowserContext, shop: Shop, journal: Journal
) -> None:
    with pytest.raises(OutcomeUnknown):
        context.request.post(f"{shop.url}/api/drop", data=ORDER, max_retries=2)
    assert shop.count("/api/drop") == 1
    assert journal.phases() == ["NEEDS_REVIEW"]


def test_nor_does_a_route_that_fetches(page: Page, shop: Shop, journal: Journal) -> None:
    page.route("**/api/drop", _fetch_stubbornly)
    page.goto(f"{shop.url}/shop")
    page.evaluate("() => fetch('/api/drop', {method: 'POST', body: 'item=book'}).catch(() => 0)")
    assert shop.count("/api/drop") == 1
    assert journal.phases("/api/drop") == ["NEEDS_REVIEW"]


def _fetch_stubbornly(route: Route) -> None:
    with pytest.raises(OutcomeUnknown):
        route.fetch(max_retries=2)
    route.abort()


def test_calls_that_differ_in_their_params_alone_are_two(context: BrowserContext, shop: Shop, journal: Journal) -> None:
    with pytest.raises(Error):
        context.request.post(f"{shop.url}/api/slow?ms=3000", params={"order": 1}, timeout=300)
    effects = journal.effects()
    with pytest.raises(EffectRefused):
        context.request.post(f"{shop.url}/api/slow?ms=3000", params={"order": 2}, timeout=300)
    first, second = journal.effects()
    assert effects == [first]
    assert first.fingerprint != second.fingerprint
