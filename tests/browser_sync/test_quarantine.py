"""While something is in doubt the run is read-only: a click is refused before it is performed, reads pass."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from browsermw import Quarantined
from tests.browser_kit import Journal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from playwright.sync_api import Browser, Page

    from browsermw import Run, Runtime
    from tests.shop_site import Shop

_COUNTING = """() => {
    globalThis.seen = 0;
    for (const kind of ['pointerdown', 'mousedown', 'click', 'keydown', 'submit', 'input', 'change'])
        addEventListener(kind, () => { globalThis.seen += 1; }, true);
}"""


@pytest.fixture
def doubtful(mw: Runtime, browser: Browser, shop: Shop, request: pytest.FixtureRequest) -> Iterator[tuple[Run, Page]]:
    run_id = f"doubt-{request.node.name}"[:200]
    with mw.run(run_id) as run:
        page = run.wrap(browser.new_context()).new_page()
        page.goto(f"{shop.url}/checkout")
        page.click("#pay-drop")
        Journal(mw, run_id).settled()
        shop.reset()
        page.goto(f"{shop.url}/shop")
        page.evaluate(_COUNTING)
        yield run, page
        page.context.close()


CLICKS: dict[str, Callable[[Page], object]] = {
    "page": lambda page: page.click("#send"),
    "locator": lambda page: page.locator("#send").dblclick(),
    "handle": lambda page: page.query_selector("#send").click(),  # type: ignore[union-attr]
    "press": lambda page: page.press("#item", "Enter"),
    "keyboard": lambda page: page.keyboard.press("Enter"),
    "mouse": lambda page: page.mouse.click(50, 150),
    "dispatch": lambda page: page.dispatch_event("#send", "click"),
}


@pytest.mark.parametrize("way", CLICKS)
def test_a_click_is_refused_before_it_is_performed(doubtful: tuple[Run, Page], shop: Shop, way: str) -> None:
    run, page = doubtful
    with pytest.raises(Quarantined) as caught:
        CLICKS[way](page)
    assert run.quarantined[0].quarantine_id in str(caught.value)
    assert page.evaluate("globalThis.seen") == 0
    assert shop.count(None) == 0


def test_reads_pass(doubtful: tuple[Run, Page], shop: Shop) -> None:
    _, page = doubtful
    assert page.inner_text("#user") == "user-1"
    assert page.evaluate("document.title") == "Order"
    page.hover("#send")
    page.fill("#item", "another")
    page.goto(f"{shop.url}/orders/ORD-0001")
    page.reload()
    page.go_back()
    assert page.context.request.get(f"{shop.url}/api/poll").status == 200
    assert len(page.screenshot()) > 0


def test_a_script_or_a_call_that_sends_is_refused_and_nothing_arrives(doubtful: tuple[Run, Page], shop: Shop) -> None:
    _, page = doubtful
    with pytest.raises(Quarantined):
        page.evaluate("document.forms[0].submit()")
    assert page.title() == "Order"
    with pytest.raises(Quarantined):
        page.evaluate("fetch('/api/checkout', {method: 'POST', body: 'x'})")
    with pytest.raises(Quarantined):
        page.context.request.post(f"{shop.url}/api/checkout", data={})
    assert shop.count(None) == 0


def test_an_autosaving_page_may_be_read_and_saves_nothing(mw: Runtime, doubtful: tuple[Run, Page], shop: Shop) -> None:
    run, page = doubtful
    page.goto(f"{shop.url}/autosave?ms=20")
    page.wait_for_function("performance.now() > 600")
    assert page.evaluate("document.title") == "Autosave"
    page.reload()
    page.wait_for_function("performance.now() > 300")
    assert page.inner_text("#saved") == "0"
    page.goto(f"{shop.url}/shop")
    assert shop.count(None) == 0
    assert set(Journal(mw, run.run_id).phases("/api/autosave")) == {"REFUSED"}


def test_a_verdict_lets_the_run_go_on(mw: Runtime, doubtful: tuple[Run, Page], shop: Shop) -> None:
    run, page = doubtful
    mw.resolve(run.quarantined[0].quarantine_id, verdict="not_committed", note="the shop has no such order")
    assert run.quarantined == []
    page.click("#send")
    assert shop.count("/order") == 1
