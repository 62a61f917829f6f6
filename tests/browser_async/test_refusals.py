"""What must not leave a second time: duplicates, reloads, what is in doubt; and the errors that say so."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from playwright.async_api import TimeoutError as PlaywrightTimeoutError
from playwright.async_api import expect

from browsermw import BrowsermwError, EffectRefused, InFlightDuplicate, OutcomeUnknown, Quarantined
from tests.browser_kit import Journal

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from playwright.async_api import Browser, BrowserContext, Page, Route

    from browsermw import Runtime
    from tests.shop_site import Shop

SHORT_MS = 1200


async def test_a_second_click_while_the_first_is_unanswered_does_not_leave(
    page: Page, shop: Shop, journal: Journal
) -> None:
    await page.goto(f"{shop.url}/form?action=/order-never")
    with pytest.raises(OutcomeUnknown) as caught:
        await page.click("#send", timeout=SHORT_MS)
    assert isinstance(caught.value, PlaywrightTimeoutError)
    with pytest.raises(InFlightDuplicate):
        await page.click("#send", timeout=SHORT_MS)
    with pytest.raises(InFlightDuplicate):
        await page.locator("#send").click(timeout=SHORT_MS)
    assert shop.count("/order-never") == 1
    assert page.url == f"{shop.url}/form?action=/order-never"
    shop.release("/order-never")
    journal.settled()
    assert shop.count("/order-never") == 1


async def test_two_clicks_at_once_are_one_arrival(page: Page, shop: Shop, journal: Journal) -> None:
    await page.goto(f"{shop.url}/checkout")
    done = await asyncio.gather(page.click("#pay-slow"), page.click("#pay-slow"), return_exceptions=True)
    assert sorted(type(it).__name__ for it in done) == ["InFlightDuplicate", "NoneType"]
    await expect(page.locator("#result")).not_to_have_text("sending")
    journal.settled(count=2)
    assert shop.count("/api/slow") == 1


async def test_a_timeout_before_anything_left_says_so(page: Page, shop: Shop) -> None:
    await page.goto(f"{shop.url}/shop")
    with pytest.raises(PlaywrightTimeoutError) as caught:
        await page.click("#not-there", timeout=200)
    assert any("no request with a side effect left" in note for note in caught.value.__notes__)


async def test_a_click_that_is_cancelled_is_closed_in_the_ledger_and_its_effect_stays_known(
    page: Page, shop: Shop, journal: Journal
) -> None:
    await page.goto(f"{shop.url}/form?action=/order-never")
    click = asyncio.create_task(page.click("#send"))
    await asyncio.to_thread(shop.wait_for, "/order-never")
    click.cancel()
    with pytest.raises(asyncio.CancelledError):
        await click
    action = journal.actions()[-1]
    assert action.closed_at is not None
    assert action.reason is not None
    assert "CancelledError" in action.reason
    with pytest.raises(InFlightDuplicate):
        await page.click("#send", timeout=SHORT_MS)
    assert shop.count("/order-never") == 1


@pytest.mark.parametrize("repeat", ["reload", "script", "back"])
async def test_a_repeated_navigation_does_not_send_the_form_again(page: Page, shop: Shop, repeat: str) -> None:
    await page.goto(f"{shop.url}/form?action=/order-page")
    await page.click("#send")
    await expect(page.locator("#reference")).to_have_text("ORD-0001")
    if repeat == "back":
        await page.goto(f"{shop.url}/assets?n=1")
    repeats: dict[str, Callable[[], Coroutine[Any, Any, object]]] = {
        "reload": page.reload,
        "script": lambda: page.evaluate("location.reload()"),
        "back": page.go_back,
    }
    with pytest.raises(EffectRefused):
        await repeats[repeat]()
    assert shop.count("/order-page") == 1
    assert await page.title() == ("Assets" if repeat == "back" else "Thank you")


async def test_calls_of_the_driver_are_journaled_and_duplicates_refused(
    context: BrowserContext, shop: Shop, journal: Journal
) -> None:
    for method in ("post", "put", "delete"):
        await getattr(context.request, method)(f"{shop.url}/api/checkout", data={"item": method})
    await context.request.get(f"{shop.url}/api/poll")
    assert [effect.method for effect in journal.effects()] == ["POST", "PUT", "DELETE"]
    first = asyncio.create_task(context.request.post(f"{shop.url}/api/slow?ms=800", data={"item": "x"}))
    await asyncio.to_thread(shop.wait_for, "/api/slow")
    with pytest.raises(InFlightDuplicate):
        await context.request.post(f"{shop.url}/api/slow?ms=800", data={"item": "x"})
    assert (await first).status == 201
    assert shop.count("/api/slow") == 1


async def test_route_fetch_is_journaled_and_other_routes_work(page: Page, shop: Shop, journal: Journal) -> None:
    async def through(route: Route) -> None:
        await asyncio.sleep(0.3)  # a slow one must not hold our hooks up
        await route.fulfill(response=await route.fetch())

    await page.route("**/api/checkout", through)
    await page.route("**/api/slow", lambda route: route.abort())
    await page.route("**/api/reject", lambda route: route.continue_())
    await page.goto(f"{shop.url}/checkout")
    for name, shown in (("pay", "201"), ("pay-slow", "failed"), ("pay-reject", "422")):
        await page.click(f"#{name}")
        await expect(page.locator("#result")).to_contain_text(shown)
    effects = journal.settled(count=2)
    assert [(effect.channel, effect.status) for effect in effects] == [("api", 201), ("XHR", 422)]
    assert (shop.count("/api/checkout"), shop.count("/api/slow"), shop.count("/api/reject")) == (1, 0, 1)


async def test_in_quarantine_clicks_are_refused_before_they_are_performed_and_reads_pass(
    mw: Runtime, browser: Browser, shop: Shop
) -> None:
    async with mw.run("doubt") as run:
        page = await run.wrap(await browser.new_context()).new_page()
        await page.goto(f"{shop.url}/checkout")
        await page.click("#pay-drop")
        Journal(mw, "doubt").settled()
        shop.reset()
        await page.evaluate("addEventListener('click', () => { globalThis.clicked = true; }, true)")
        with pytest.raises(Quarantined):
            await page.click("#pay")
        assert await page.evaluate("globalThis.clicked") is None
        with pytest.raises(Quarantined):
            await page.context.request.post(f"{shop.url}/api/checkout", data={})
        await page.goto(f"{shop.url}/autosave?ms=20")
        await page.wait_for_function("performance.now() > 500")
        assert await page.title() == "Autosave"
        assert shop.count(None) == 0
        await page.context.close()
    assert run.phase == "NEEDS_REVIEW"


async def test_an_unwrapped_context_may_not_send(browser: Browser, shop: Shop) -> None:
    page = await (await browser.new_context()).new_page()
    await page.goto(f"{shop.url}/shop")
    await page.click("#send")
    assert await page.title() == "Order"
    assert shop.count(None) == 0
    await page.context.close()


async def test_a_context_sends_nothing_after_its_run_was_left(mw: Runtime, browser: Browser, shop: Shop) -> None:
    async with mw.run("over") as run:
        page = await run.wrap(await browser.new_context()).new_page()
    await page.goto(f"{shop.url}/shop")
    with pytest.raises(BrowsermwError):
        await page.click("#send")
    await page.evaluate("document.forms[0].submit()")
    assert shop.count(None) == 0
    await page.context.close()
