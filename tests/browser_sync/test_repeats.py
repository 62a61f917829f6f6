"""A reload or a step in the history would send the form again (field note 12): refused, and the page stays."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from browsermw import EffectRefused

if TYPE_CHECKING:
    from collections.abc import Callable

    from playwright.sync_api import Page

    from tests.browser_kit import Journal
    from tests.shop_site import Shop

REPEATS: dict[str, Callable[[Page], object]] = {
    "page.reload": lambda page: page.reload(),
    "location.reload": lambda page: page.evaluate("location.reload()"),
    "history.go(0)": lambda page: page.evaluate("history.go(0)"),
    "F5": lambda page: page.evaluate("setTimeout(() => location.reload(), 0)"),
}


@pytest.mark.parametrize("repeat", REPEATS)
def test_reloading_the_result_of_a_form_does_not_send_it_again(
    page: Page, shop: Shop, journal: Journal, repeat: str
) -> None:
    page.goto(f"{shop.url}/form?action=/order-page")
    page.click("#send")
    expect(page.locator("#reference")).to_have_text("ORD-0001")
    with pytest.raises(EffectRefused, match="open the page by its address"):
        REPEATS[repeat](page)
    assert page.inner_text("#reference") == "ORD-0001"
    assert page.url == f"{shop.url}/order-page"
    assert shop.count("/order-page") == 1
    assert [(str(effect.phase), effect.reason) for effect in journal.effects()] == [
        ("OBSERVED", None),
        ("REFUSED", "replayed_navigation"),
    ]


def test_going_back_to_the_result_of_a_form_does_not_send_it_again(page: Page, shop: Shop, journal: Journal) -> None:
    page.goto(f"{shop.url}/form?action=/order-page")
    page.click("#send")
    page.goto(f"{shop.url}/assets?n=1")
    with pytest.raises(EffectRefused):
        page.go_back()
    assert page.url == f"{shop.url}/assets?n=1"
    assert page.title() == "Assets"
    assert shop.count("/order-page") == 1
    assert journal.phases("/order-page")[1:] == ["REFUSED"]
    page.goto(f"{shop.url}/shop")
    assert page.title() == "Order"


def test_a_reload_of_what_was_got_is_fine(page: Page, shop: Shop, journal: Journal) -> None:
    page.goto(f"{shop.url}/shop")
    page.click("#send")
    page.reload()
    page.go_back()
    page.go_forward()
    assert page.inner_text("#reference") == "ORD-0001"
    assert (shop.count("/order"), shop.count("/orders/ORD-0001", "GET")) >= (1, 2)
    assert journal.phases() == ["OBSERVED"]


def test_the_form_may_be_filled_in_and_sent_anew(page: Page, shop: Shop) -> None:
    for _ in range(2):
        page.goto(f"{shop.url}/form?action=/order-page")
        page.click("#send")
    assert page.inner_text("#reference") == "ORD-0002"
    assert shop.count("/order-page") == 2
