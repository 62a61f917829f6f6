"""The same submission again while the first is unanswered: it does not leave, and the page is still there."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import TimeoutError as PlaywrightTimeoutError
from playwright.sync_api import expect

from browsermw import InFlightDuplicate, OutcomeUnknown
from tests.browser_kit import until

if TYPE_CHECKING:
    from collections.abc import Callable

    from playwright.sync_api import Page

    from tests.browser_kit import Journal
    from tests.shop_site import Shop

SHORT_MS = 1200


def fence(page: Page) -> None:
    """A later request of the same page has arrived, so an earlier one would have."""
    page.evaluate("fetch('/api/poll').then(answer => answer.text())")


def test_a_click_that_times_out_says_that_its_outcome_is_unknown(page: Page, shop: Shop, journal: Journal) -> None:
    page.goto(f"{shop.url}/form?action=/order-never")
    with pytest.raises(OutcomeUnknown, match="do not repeat") as caught:
        page.click("#send", timeout=SHORT_MS)
    assert isinstance(caught.value, PlaywrightTimeoutError)
    assert isinstance(caught.value.__cause__, PlaywrightTimeoutError)
    [effect] = journal.effects()
    assert caught.value.facts["effects"] == [effect.effect_id]
    assert effect.effect_id in str(caught.value)
    assert journal.phases() == ["DISPATCHED"]


@pytest.mark.parametrize("again", ["page", "locator", "handle", "Enter"])
def test_a_second_submit_while_the_first_is_unanswered_does_not_leave(
    page: Page, shop: Shop, journal: Journal, again: str
) -> None:
    page.goto(f"{shop.url}/form?action=/order-never")
    handle = page.query_selector("#send")
    assert handle is not None
    with pytest.raises(OutcomeUnknown):
        page.click("#send", timeout=SHORT_MS)
    submits: dict[str, Callable[[], None]] = {
        "page": lambda: page.click("#send", timeout=SHORT_MS),
        "locator": lambda: page.locator("#send").click(timeout=SHORT_MS),
        "handle": lambda: handle.click(timeout=SHORT_MS),
        "Enter": lambda: page.press("#item", "Enter", timeout=SHORT_MS),
    }
    with pytest.raises(InFlightDuplicate) as caught:
        submits[again]()
    assert caught.value.facts["rival"] == journal.effects()[0].effect_id
    assert shop.count("/order-never") == 1
    assert page.url == f"{shop.url}/form?action=/order-never"
    assert journal.phases()[0] == "DISPATCHED"
    assert set(journal.phases()[1:]) <= {"REFUSED"}
    shop.release("/order-never")
    journal.settled("/order-never")
    assert journal.phases()[0] in {"ACKNOWLEDGED", "OBSERVED"}
    assert shop.count("/order-never") == 1


def test_a_second_click_does_not_wait_to_land_on_the_page_that_comes_of_the_first(page: Page, shop: Shop) -> None:
    page.goto(f"{shop.url}/form?action=/order-slow%3Fms=2500")
    with pytest.raises(OutcomeUnknown):
        page.click("#send", timeout=SHORT_MS)
    with pytest.raises(InFlightDuplicate, match="was not performed"):
        page.click("#send")
    expect(page.locator("#reference")).to_have_text("ORD-0001")
    assert shop.count("/order-slow") == 1


def test_a_second_submit_that_playwright_does_not_wait_for_does_not_leave_either(
    page: Page, shop: Shop, journal: Journal
) -> None:
    page.goto(f"{shop.url}/form?action=/order-never")
    box = page.locator("#send").bounding_box()
    assert box is not None
    with pytest.raises(OutcomeUnknown):
        page.click("#send", timeout=SHORT_MS)
    with pytest.raises(InFlightDuplicate):
        page.mouse.click(box["x"] + 5, box["y"] + 5)
    assert shop.count("/order-never") == 1
    assert page.title() == "Order"
    # The browser gave the first navigation up for the second; nobody will ever see its answer (field note 19).
    until(lambda: journal.phases() == ["NEEDS_REVIEW", "REFUSED"])


def test_a_second_fetch_while_the_first_is_unanswered_does_not_leave(page: Page, shop: Shop, journal: Journal) -> None:
    page.goto(f"{shop.url}/checkout")
    page.click("#pay-never")
    with pytest.raises(InFlightDuplicate):
        page.click("#pay-never")
    expect(page.locator("#result")).to_contain_text("failed")
    assert shop.count("/api/never") == 1
    assert journal.phases() == ["DISPATCHED", "REFUSED"]


def test_another_order_may_leave_while_the_first_is_unanswered(page: Page, shop: Shop) -> None:
    page.goto(f"{shop.url}/checkout")
    page.click("#pay-never")
    page.fill("#item", "another book")
    page.click("#pay-never")
    shop.wait_for("/api/never", 2)


def test_a_second_order_may_leave_once_the_first_is_answered(page: Page, shop: Shop, journal: Journal) -> None:
    page.goto(f"{shop.url}/checkout")
    for count in (1, 2):
        page.click("#pay")
        expect(page.locator("#result")).to_contain_text(f"ORD-000{count}")
    assert shop.count("/api/checkout") == 2
    assert len(journal.settled("/api/checkout", 2)) == 2


def test_a_double_click_on_a_form_is_one_arrival(page: Page, shop: Shop, journal: Journal) -> None:
    page.goto(f"{shop.url}/form?action=/order-slow%3Fms=700")
    with suppress(InFlightDuplicate):  # the browser may drop the second submission by itself
        page.dblclick("#send")
    expect(page.locator("#reference")).to_have_text("ORD-0001")
    fence(page)
    assert shop.count("/order-slow") == 1
    assert journal.settled()[0].status == 303
    assert set(journal.phases()[1:]) <= {"REFUSED"}


def test_a_double_click_on_a_fetch_is_one_arrival_while_unanswered(page: Page, shop: Shop, journal: Journal) -> None:
    page.goto(f"{shop.url}/checkout")
    with pytest.raises(InFlightDuplicate):
        page.dblclick("#pay-slow")
    fence(page)
    journal.settled("/api/slow", 2)
    assert shop.count("/api/slow") == 1
    assert sorted(journal.phases("/api/slow")) in [["ACKNOWLEDGED", "REFUSED"], ["OBSERVED", "REFUSED"]]


def test_a_timeout_before_anything_left_says_so(page: Page, shop: Shop, journal: Journal) -> None:
    page.goto(f"{shop.url}/shop")
    with pytest.raises(PlaywrightTimeoutError) as caught:
        page.click("#not-there", timeout=200)
    assert type(caught.value) is PlaywrightTimeoutError
    assert any("no request with a side effect left" in note for note in caught.value.__notes__)
    assert str(journal.actions()[-1].phase) == "ABANDONED"
    assert journal.effects() == []


def test_a_page_that_waits_for_one_answer_still_reads(page: Page, shop: Shop) -> None:
    page.goto(f"{shop.url}/checkout")
    page.click("#pay-never")
    shop.wait_for("/api/never")
    assert page.title() == "Checkout"
    assert page.evaluate("1 + 1") == 2
    page.goto(f"{shop.url}/shop")
    assert page.title() == "Order"
