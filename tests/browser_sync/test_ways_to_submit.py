"""Whichever way an agent has of submitting: one arrival, in the right run, under the right kind of action."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import BrowserContext, Page, expect

if TYPE_CHECKING:
    from collections.abc import Callable

    from playwright.sync_api import Browser

    from browsermw import Run, Runtime
    from tests.browser_kit import Journal
    from tests.shop_site import Shop


def centre(page: Page) -> tuple[float, float]:
    box = page.locator("#send").bounding_box()
    assert box is not None
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def press_in_field(page: Page) -> None:
    page.focus("#item")
    page.keyboard.press("Enter")


def down_and_up(page: Page) -> None:
    page.mouse.move(*centre(page))
    page.mouse.down()
    page.mouse.up()


def type_a_line(page: Page) -> None:
    page.focus("#item")
    page.keyboard.type("book\n")


def key_down_and_up(page: Page) -> None:
    page.focus("#item")
    page.keyboard.down("Enter")
    page.keyboard.up("Enter")


SUBMIT = "document.forms[0].submit()"
REQUEST_SUBMIT = "document.forms[0].requestSubmit()"
WAYS: dict[str, tuple[Callable[[Page], object], str, str]] = {
    "page": (lambda page: page.click("#send"), "click", "Page.click"),
    "locator": (lambda page: page.get_by_role("button", name="Send order").click(), "click", "Locator.click"),
    "frame": (lambda page: page.main_frame.click("#send"), "click", "Frame.click"),
    "handle": (lambda page: page.query_selector("#send").click(), "click", "ElementHandle.click"),  # type: ignore[union-attr]
    "forced": (lambda page: page.click("#send", force=True), "click", "Page.click"),
    "dispatched": (lambda page: page.dispatch_event("#send", "click"), "dispatch", "Page.dispatch_event"),
    "dispatched by locator": (
        lambda page: page.locator("#send").dispatch_event("click"),
        "dispatch",
        "Locator.dispatch_event",
    ),
    "mouse": (lambda page: page.mouse.click(*centre(page)), "click", "Mouse.click"),
    "mouse, down and up": (down_and_up, "click", "Mouse.up"),
    "Enter": (lambda page: page.press("#item", "Enter"), "press", "Page.press"),
    "Enter by locator": (lambda page: page.locator("#item").press("Enter"), "press", "Locator.press"),
    "Enter by keyboard": (press_in_field, "press", "Keyboard.press"),
    "Enter, down and up": (key_down_and_up, "press", "Keyboard.down"),
    "typed line end": (type_a_line, "input", "Keyboard.type"),
    "script": (lambda page: page.evaluate(SUBMIT), "script", "Page.evaluate"),
    "script with validation": (lambda page: page.evaluate(REQUEST_SUBMIT), "script", "Page.evaluate"),
    "script by locator": (
        lambda page: page.locator("#order").evaluate("f => f.submit()"),
        "script",
        "Locator.evaluate",
    ),
    "script by handle": (
        lambda page: page.query_selector("#order").evaluate("f => f.submit()"),  # type: ignore[union-attr]
        "script",
        "JSHandle.evaluate",
    ),
    "script on selector": (
        lambda page: page.eval_on_selector("#order", "f => f.submit()"),
        "script",
        "Page.eval_on_selector",
    ),
}


@pytest.mark.parametrize("way", WAYS)
def test_each_way_to_submit_is_one_arrival_under_its_own_kind(
    page: Page, shop: Shop, journal: Journal, way: str
) -> None:
    submit, kind, method = WAYS[way]
    page.goto(f"{shop.url}/shop")
    submit(page)
    expect(page.locator("#reference")).to_have_text("ORD-0001")
    [arrival] = shop.arrivals("/order", "POST")
    [effect] = journal.settled()
    action = journal.action_of(effect)
    assert (action.kind, action.method) == (kind, method)
    assert effect.dispatched_at.isoformat() < arrival["arrived_at"]
    assert str(effect.phase) in {"ACKNOWLEDGED", "OBSERVED"}


def test_a_tap_is_a_click(browser: Browser, run: Run, shop: Shop, journal: Journal) -> None:
    page = run.wrap(browser.new_context(has_touch=True)).new_page()
    page.goto(f"{shop.url}/shop")
    page.tap("#send")
    expect(page.locator("#reference")).to_have_text("ORD-0001")
    [effect] = journal.settled()
    assert (journal.action_of(effect).kind, shop.count("/order")) == ("click", 1)
    page.context.close()


TAKEN: dict[str, Callable[[Page], Callable[[], object]]] = {
    "page": lambda page: lambda: page.click("#send"),
    "locator": lambda page: page.locator("#send").click,
    "handle": lambda page: page.query_selector("#send").click,  # type: ignore[union-attr]
    "js handle": lambda page: lambda: page.evaluate_handle("document.forms[0]").evaluate("f => f.submit()"),
    "keyboard": lambda page: lambda: page.keyboard.press("Enter"),
    "mouse": lambda page: lambda: page.mouse.click(*centre(page)),
}


@pytest.mark.parametrize("taken", TAKEN)
def test_a_handle_taken_before_wrap_is_guarded_too(
    browser: Browser, run: Run, shop: Shop, journal: Journal, taken: str
) -> None:
    context = browser.new_context()
    page = context.new_page()
    page.goto(f"{shop.url}/shop")
    page.focus("#item")
    act = TAKEN[taken](page)
    keyboard, mouse = page.keyboard, page.mouse
    assert run.wrap(context) is context
    act()
    expect(page.locator("#reference")).to_have_text("ORD-0001")
    assert (page.keyboard, page.mouse) == (keyboard, mouse)
    [effect] = journal.settled()
    assert journal.action_of(effect).kind != "page"
    assert shop.count("/order") == 1
    context.close()


def test_a_request_taken_before_wrap_is_guarded_too(browser: Browser, run: Run, shop: Shop, journal: Journal) -> None:
    context = browser.new_context()
    page = context.new_page()
    takens = [context.request, page.request]
    run.wrap(context)
    for number, taken in enumerate(takens):
        assert taken.post(f"{shop.url}/api/checkout", data={"item": str(number)}).status == 201
    assert [effect.status for effect in journal.effects()] == [201, 201]
    context.close()


def test_a_page_older_than_wrap_is_guarded_without_being_loaded_again(
    browser: Browser, run: Run, shop: Shop, journal: Journal
) -> None:
    context: BrowserContext = browser.new_context()
    page = context.new_page()
    page.goto(f"{shop.url}/checkout")
    run.wrap(context)
    page.click("#pay")
    expect(page.locator("#result")).to_contain_text("201")
    [effect] = journal.settled()
    # Measured: 1 of 96 such clicks is closed before its fetch is at the gate; the page's own action has it then.
    assert journal.action_of(effect).kind in {"click", "page"}
    assert shop.count("/api/checkout") == 1
    assert str(effect.phase) in {"ACKNOWLEDGED", "OBSERVED"}
    context.close()


def test_an_effect_belongs_to_the_action_that_is_open_on_its_page(
    page: Page, mw: Runtime, shop: Shop, journal: Journal
) -> None:
    page.goto(f"{shop.url}/checkout")
    for item in ("first", "second"):
        page.fill("#item", item)
        page.click("#pay")
        expect(page.locator("#result")).to_contain_text("201")
        page.evaluate("document.querySelector('#result').textContent = ''")
    clicks = [action for action in journal.actions() if action.kind == "click"]
    assert [len(click.effects) for click in clicks] == [1, 1]
    assert shop.count("/api/checkout") == 2
