"""Whichever way an agent has of submitting: one arrival, observed once, under the right kind of action."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from playwright.async_api import Page, expect

from tests.browser_kit import STOP_TIMERS

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from playwright.async_api import Browser, BrowserContext

    from browsermw import Run
    from tests.browser_kit import Journal
    from tests.shop_site import Shop


async def centre(page: Page) -> tuple[float, float]:
    box = await page.locator("#send").bounding_box()
    assert box is not None
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


async def by_handle(page: Page) -> None:
    handle = await page.query_selector("#send")
    assert handle is not None
    await handle.click()


async def by_mouse(page: Page) -> None:
    await page.mouse.click(*await centre(page))


async def by_keyboard(page: Page) -> None:
    await page.focus("#item")
    await page.keyboard.press("Enter")


WAYS: dict[str, tuple[Callable[[Page], Coroutine[Any, Any, object]], str, str]] = {
    "page": (lambda page: page.click("#send"), "click", "Page.click"),
    "locator": (lambda page: page.get_by_role("button", name="Send order").click(), "click", "Locator.click"),
    "frame": (lambda page: page.main_frame.click("#send"), "click", "Frame.click"),
    "handle": (by_handle, "click", "ElementHandle.click"),
    "dispatched": (lambda page: page.dispatch_event("#send", "click"), "dispatch", "Page.dispatch_event"),
    "mouse": (by_mouse, "click", "Mouse.click"),
    "Enter": (lambda page: page.press("#item", "Enter"), "press", "Page.press"),
    "Enter by keyboard": (by_keyboard, "press", "Keyboard.press"),
    "script": (lambda page: page.evaluate("document.forms[0].submit()"), "script", "Page.evaluate"),
    "script with validation": (
        lambda page: page.evaluate("document.forms[0].requestSubmit()"),
        "script",
        "Page.evaluate",
    ),
}


@pytest.mark.parametrize("way", WAYS)
async def test_each_way_to_submit_is_one_arrival_under_its_own_kind(
    page: Page, shop: Shop, journal: Journal, way: str
) -> None:
    submit, kind, method = WAYS[way]
    await page.goto(f"{shop.url}/shop")
    await submit(page)
    await expect(page.locator("#reference")).to_have_text("ORD-0001")
    assert isinstance(page, Page)
    [arrival] = shop.arrivals("/order", "POST")
    [effect] = journal.settled()
    action = journal.action_of(effect)
    assert (action.kind, action.method) == (kind, method)
    assert effect.dispatched_at.isoformat() < arrival["arrived_at"]
    assert effect.external_request_id == f"x-request-id=req-{arrival['n']}"
    assert (effect.status, str(effect.outcome)) == (303, "accepted")


async def test_a_click_without_effect_is_observed_and_sends_nothing(page: Page, shop: Shop, journal: Journal) -> None:
    await page.goto(f"{shop.url}/checkout")
    await page.click("#noop")
    click = journal.actions()[-1]
    assert (click.kind, click.target, str(click.phase), click.effects) == ("click", "#noop", "OBSERVED", ())
    assert shop.count(None) == 0


async def test_checkpoints_stand_before_and_after_each_action(page: Page, shop: Shop, journal: Journal) -> None:
    await page.goto(f"{shop.url}/shop")
    await page.click("#send")
    points = journal.checkpoints()
    order = f"{shop.url}/orders/ORD-0001"
    assert [(point.moment, point.url) for point in points[1:]] == [
        ("after", f"{shop.url}/shop"),
        ("before", f"{shop.url}/shop"),
        ("after", order),
    ]
    hashes = [point.dom_hash for point in points[1:]]
    assert hashes[0] == hashes[1] != hashes[2] is not None
    assert [point.last_action_seq for point in points] == [None, None, None, 2]


async def test_handles_taken_before_wrap_are_guarded_although_wrap_is_not_awaited(
    browser: Browser, run: Run, shop: Shop, journal: Journal
) -> None:
    context: BrowserContext = await browser.new_context()
    page = await context.new_page()
    await page.goto(f"{shop.url}/checkout")
    keyboard, mouse, request, locator = page.keyboard, page.mouse, context.request, page.locator("#pay")
    handle = await page.query_selector("#pay")
    assert handle is not None
    assert run.wrap(context) is context
    await locator.click()
    await expect(page.locator("#result")).to_contain_text("ORD-0001")
    await handle.click()
    await expect(page.locator("#result")).to_contain_text("ORD-0002")
    await page.focus("#pay")
    await keyboard.press("Enter")
    await expect(page.locator("#result")).to_contain_text("ORD-0003")
    box = await locator.bounding_box()
    assert box is not None
    await mouse.click(box["x"] + 5, box["y"] + 5)
    await expect(page.locator("#result")).to_contain_text("ORD-0004")
    await request.post(f"{shop.url}/api/checkout", data={"item": "x"})
    effects = journal.settled(count=5)
    assert [journal.action_of(effect).method for effect in effects] == [
        *("Locator.click", "ElementHandle.click", "Keyboard.press", "Mouse.click", "APIRequestContext.post")
    ]
    assert shop.count("/api/checkout") == 5
    await context.close()


async def test_a_popup_that_posts_by_itself_is_guarded(page: Page, shop: Shop, journal: Journal) -> None:
    await page.goto(f"{shop.url}/popup-opener")
    async with page.expect_popup() as opened:
        await page.click("#open-autopost")
    popup = await opened.value
    await expect(popup.locator("#reference")).to_have_text("ORD-0001")
    [effect] = journal.settled()
    assert (effect.status, shop.count("/order")) == (303, 1)


@pytest.mark.parametrize("source", ["same origin", "srcdoc", "cross origin"])
async def test_a_form_in_a_frame_is_sent_once(page: Page, shop: Shop, journal: Journal, source: str) -> None:
    other = shop.url.replace("127.0.0.1", "localhost")
    query = {"same origin": "src=/shop", "srcdoc": "srcdoc=1", "cross origin": f"src={other}/shop"}[source]
    await page.goto(f"{shop.url}/frames?{query}")
    frame = page.frame_locator("#frame")
    await frame.locator("#send").click()
    await expect(frame.locator("#reference")).to_have_text("ORD-0001")
    [effect] = journal.settled()
    assert (journal.action_of(effect).method, shop.count("/order")) == ("Locator.click", 1)


async def test_a_page_goes_on_while_the_agents_loop_is_blocked(page: Page, shop: Shop, journal: Journal) -> None:
    await page.goto(f"{shop.url}/autosave?ms=100")
    shop.wait_for("/api/autosave")
    shop.wait_for("/api/autosave", 15)  # a plain wait that blocks this very loop
    await page.evaluate(STOP_TIMERS)
    effects = journal.settled("/api/autosave")
    assert len([it for it in effects if str(it.phase) != "REFUSED"]) == shop.count("/api/autosave")
    assert "page" in {journal.action_of(effect).kind for effect in effects}
