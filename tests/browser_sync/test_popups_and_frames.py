"""Popups, forms in other windows, frames of all kinds: one arrival, in the run and the action that caused it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import Page, expect

from browsermw import EffectRefused

if TYPE_CHECKING:
    from playwright.sync_api import BrowserContext

    from tests.browser_kit import Journal
    from tests.shop_site import Shop


def test_a_popup_that_posts_by_itself_belongs_to_the_click_that_opened_it(
    page: Page, shop: Shop, journal: Journal
) -> None:
    page.goto(f"{shop.url}/popup-opener")
    with page.expect_popup() as opened:
        page.click("#open-autopost")
    expect(opened.value.locator("#reference")).to_have_text("ORD-0001")
    [effect] = journal.settled()
    action = journal.action_of(effect)
    assert shop.count("/order") == 1
    # The click may have returned before the popup's form was sent; then the page did it by itself.
    assert (action.kind, action.target) in {("click", "#open-autopost"), ("page", f"{shop.url}/order")}


def test_a_click_in_a_popup_is_an_action_of_its_own(page: Page, shop: Shop, journal: Journal) -> None:
    page.goto(f"{shop.url}/popup-opener")
    with page.expect_popup() as opened:
        page.click("#open")
    popup = opened.value
    popup.click("#send")
    expect(popup.locator("#reference")).to_have_text("ORD-0001")
    [effect] = journal.settled()
    assert (journal.action_of(effect).target, shop.count("/order")) == ("#send", 1)


def test_a_popup_without_opener_is_guarded(page: Page, shop: Shop, journal: Journal) -> None:
    page.goto(f"{shop.url}/popup-opener")
    with page.context.expect_page() as opened:
        page.evaluate("window.open('/popup-autopost', '_blank', 'noopener')")
    expect(opened.value.locator("#reference")).to_have_text("ORD-0001")
    [effect] = journal.settled()
    assert (str(effect.phase), shop.count("/order")) == ("OBSERVED", 1)


def test_a_form_that_opens_a_page_of_its_own_is_sent_once(page: Page, shop: Shop, journal: Journal) -> None:
    page.goto(f"{shop.url}/popup-opener")
    with page.expect_popup() as opened:
        page.click("#open-form")
    expect(opened.value.locator("#reference")).to_have_text("ORD-0001")
    [effect] = journal.settled()
    action = journal.action_of(effect)
    # Of the page that is opened the gate may hear after the click was closed; the run is the same, and it is sent once.
    assert (action.kind, action.target) in {("click", "#open-form"), ("page", f"{shop.url}/order")}
    assert shop.count("/order") == 1


@pytest.mark.parametrize("source", ["same origin", "srcdoc", "cross origin"])
def test_a_form_in_a_frame_is_sent_once(page: Page, shop: Shop, journal: Journal, source: str) -> None:
    other = shop.url.replace("127.0.0.1", "localhost")
    query = {"same origin": "src=/shop", "srcdoc": "srcdoc=1", "cross origin": f"src={other}/shop"}[source]
    page.goto(f"{shop.url}/frames?{query}")
    frame = page.frame_locator("#frame")
    frame.locator("#send").click()
    expect(frame.locator("#reference")).to_have_text("ORD-0001")
    [effect] = journal.settled()
    action = journal.action_of(effect)
    # A frame may live in a process of its own, whose request can come after the click was closed.
    assert (action.kind, action.method) in {("click", "Locator.click"), ("page", "")}
    assert shop.count("/order") == 1


def test_a_script_in_a_cross_origin_frame_is_guarded(page: Page, shop: Shop, journal: Journal) -> None:
    other = shop.url.replace("127.0.0.1", "localhost")
    page.goto(f"{shop.url}/frames?src={other}/checkout")
    frame = page.frame(name="frame")
    assert frame is not None
    status = frame.evaluate("fetch('/api/checkout', {method: 'POST', body: 'item=x'}).then(answer => answer.status)")
    assert status == 201
    [effect] = journal.settled()
    assert (journal.action_of(effect).method, shop.count("/api/checkout")) == ("Frame.evaluate", 1)


def test_a_refused_form_in_a_frame_leaves_the_frame_as_it_was(
    page: Page, context: BrowserContext, shop: Shop, journal: Journal
) -> None:
    page.goto(f"{shop.url}/frames?src=/form%3Faction=/order-page")
    frame = page.frame_locator("#frame")
    frame.locator("#send").click()
    expect(frame.locator("#reference")).to_have_text("ORD-0001")
    journal.settled()
    inner = page.frame(name="frame")
    assert inner is not None
    with pytest.raises(EffectRefused, match="did not leave"):
        inner.evaluate("location.reload()")
    expect(frame.locator("#reference")).to_have_text("ORD-0001")
    assert shop.count("/order-page") == 1
    assert journal.phases()[1:] == ["REFUSED"]
