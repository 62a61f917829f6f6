"""Doubt inside one process: whatever tries the same request again, and whatever is closed over one that is held."""

from __future__ import annotations

import os
import signal
import threading
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import Error as PlaywrightError
from playwright.sync_api import TimeoutError as PlaywrightTimeoutError

from browsermw import BrowsermwError, InFlightDuplicate, OutcomeUnknown, Policy, faults
from browsermw.faults import Point
from browsermw.hooks.launched import debugging_port_of
from tests.browser_kit import Journal, browser_pid

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

    from playwright.sync_api import Browser, Page

    from browsermw import Runtime
    from tests.shop_site import Shop

    Opening = Callable[..., AbstractContextManager[tuple[Runtime, Browser]]]

SHORT_MS = 1200


def _in_another_tab(page: Page, button: str) -> None:
    other = page.context.new_page()
    other.goto(page.url)
    other.click(button, timeout=SHORT_MS)


AGAIN: dict[str, Callable[[Page, str], object]] = {
    "forced": lambda page, button: page.click(button, force=True, timeout=SHORT_MS),
    "forced, not waiting": lambda page, button: page.click(button, force=True, no_wait_after=True, timeout=SHORT_MS),
    "dispatched": lambda page, button: page.dispatch_event(button, "click", timeout=SHORT_MS),
    "script": lambda page, button: page.evaluate("button => document.querySelector(button).click()", button),
    "script on the element": lambda page, button: page.eval_on_selector(button, "button => button.click()"),
    "another tab": _in_another_tab,
}


@pytest.fixture(autouse=True)
def _disarmed() -> Iterator[None]:
    yield
    faults.arm(None)


@pytest.mark.parametrize("again", [again for again in AGAIN if not again.startswith("script")])
def test_a_form_in_the_air_is_not_sent_again(page: Page, shop: Shop, journal: Journal, again: str) -> None:
    page.goto(f"{shop.url}/form?action=/order-never")
    with pytest.raises(OutcomeUnknown):
        page.click("#send", timeout=SHORT_MS)
    with pytest.raises(InFlightDuplicate) as caught:
        AGAIN[again](page, "#send")
    assert caught.value.facts["rival"] == journal.effects()[0].effect_id
    assert shop.count("/order-never") == 1
    assert set(journal.phases()[1:]) <= {"REFUSED"}


@pytest.mark.parametrize("again", AGAIN)
def test_a_fetch_in_the_air_is_not_sent_again(page: Page, shop: Shop, journal: Journal, again: str) -> None:
    page.goto(f"{shop.url}/checkout")
    page.click("#pay-never")
    shop.wait_for("/api/never")
    with pytest.raises(InFlightDuplicate) as caught:
        AGAIN[again](page, "#pay-never")
    assert caught.value.facts["rival"] == journal.effects()[0].effect_id
    assert shop.count("/api/never") == 1
    assert journal.phases() == ["DISPATCHED", "REFUSED"]


def test_a_timeout_names_the_request_that_left_and_when(page: Page, shop: Shop, journal: Journal) -> None:
    page.goto(f"{shop.url}/form?action=/order-never")
    try:
        page.click("#send", timeout=SHORT_MS)
    except PlaywrightTimeoutError as error:
        said = str(error)
    [effect] = journal.effects()
    for word in (
        f"POST {shop.url}/order-never",
        f"left at {effect.dispatched_at:%Y-%m-%d %H:%M:%S} UTC",
        "do not repeat",
    ):
        assert word in said


def test_a_click_that_does_not_wait_leaves_its_request_known(page: Page, shop: Shop, journal: Journal) -> None:
    page.goto(f"{shop.url}/form?action=/order-never")
    page.click("#send", no_wait_after=True)
    shop.wait_for("/order-never")
    [effect] = journal.effects()
    assert (str(effect.phase), journal.action_of(effect).kind) == ("DISPATCHED", "click")
    with pytest.raises(InFlightDuplicate):
        page.click("#send", no_wait_after=True, timeout=SHORT_MS)
    assert shop.count("/order-never") == 1
    shop.release("/order-never")
    assert journal.settled()[0].status == 303


class _Hold:
    """Holds the record of the next effect just before its commit, and with it the request."""

    def __init__(self) -> None:
        self.held, self._go_on = threading.Event(), threading.Event()
        faults.arm(self._wait)

    def _wait(self, point: Point, call: str) -> None:
        if point is Point.LEDGER_BEFORE_COMMIT and call == "dispatch_effect":
            self.held.set()
            self._go_on.wait(10)

    def let_go(self) -> None:
        faults.arm(None)
        self._go_on.set()


# Late enough that the script's own call is over on a busy machine: it would wait for what is held.
HELD = {
    "form": "setTimeout(() => document.querySelector('form').submit(), 700)",
    "fetch": "setTimeout(() => fetch('/api/checkout', {method: 'POST', body: 'x'}), 700)",
    "beacon": "setTimeout(() => navigator.sendBeacon('/api/beacon', 'x'), 700)",
}


@pytest.mark.parametrize("sent", HELD)
def test_what_is_held_when_its_context_is_closed_never_leaves(
    mw: Runtime, browser: Browser, shop: Shop, sent: str
) -> None:
    run_id = f"closed over {sent}"
    with mw.run(run_id) as run:
        page = run.wrap(browser.new_context()).new_page()
        page.goto(f"{shop.url}/form?action=/order-never")
        hold = _Hold()
        page.evaluate(f"() => {{ {HELD[sent]} }}")
        assert hold.held.wait(10)
        page.context.close()
        hold.let_go()
    assert shop.count(None) == 0
    assert Journal(mw, run_id).phases() == ["ABANDONED"]
    assert run.phase == "FINISHED"


def test_a_browser_killed_over_requests_of_all_kinds_leaves_each_in_its_phase(opening: Opening, shop: Shop) -> None:
    with opening(Policy(settle_s=3)) as (mw, browser):
        with mw.run("r") as run:
            page = run.wrap(browser.new_context()).new_page()
            journal = Journal(mw, "r")
            page.goto(f"{shop.url}/checkout")
            page.click("#pay")
            page.wait_for_function("document.querySelector('#result').textContent.startsWith('201')")
            page.click("#pay-never")
            shop.wait_for("/api/never")
            port = debugging_port_of(page.context)
            assert port is not None
            hold = _Hold()
            page.evaluate(f"() => {{ {HELD['beacon']} }}")
            assert hold.held.wait(10)
            os.kill(browser_pid(port), signal.SIGKILL)
            hold.let_go()
            journal.settled(count=3)
            with pytest.raises((PlaywrightError, BrowsermwError)):
                page.click("#pay")
        phases = {effect.url.removeprefix(shop.url): str(effect.phase) for effect in journal.effects()}
        assert phases == {"/api/checkout": "OBSERVED", "/api/never": "NEEDS_REVIEW", "/api/beacon": "ABANDONED"}
        assert run.phase == "NEEDS_REVIEW"
        with suppress(PlaywrightError):
            page.context.close()
    assert (shop.count("/api/checkout"), shop.count("/api/never"), shop.count("/api/beacon")) == (1, 1, 0)
