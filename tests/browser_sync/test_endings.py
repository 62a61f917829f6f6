"""Ends of all kinds: a page, a context, a run, a runtime, a browser that is killed. No answer is lost on the way."""

from __future__ import annotations

import os
import signal
import time
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import Error as PlaywrightError

from browsermw import BrowsermwError, Policy, Quarantined
from browsermw.hooks.launched import debugging_port_of
from tests.browser_kit import Journal, browser_pid

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from playwright.sync_api import Browser, Page

    from browsermw import Runtime
    from tests.shop_site import Shop

SLOW = "void fetch('/api/slow?ms=500', {method: 'POST', body: 'item=x'})"


@pytest.mark.parametrize("end", ["page", "context", "run"])
def test_an_end_waits_for_a_late_answer_and_records_it(mw: Runtime, browser: Browser, shop: Shop, end: str) -> None:
    run_id = f"late-{end}"
    with mw.run(run_id) as run:
        page = run.wrap(browser.new_context()).new_page()
        page.goto(f"{shop.url}/checkout")
        page.evaluate(SLOW)
        shop.wait_for("/api/slow")
        if end == "page":
            page.close()
        if end == "context":
            page.context.close()
        if end != "run":
            assert Journal(mw, run_id).effects()[0].status == 201
    [effect] = Journal(mw, run_id).effects()
    assert (effect.status, str(effect.outcome)) == (201, "accepted")
    assert run.phase == "FINISHED"
    assert shop.count("/api/slow") == 1
    if end == "run":
        page.context.close()


def test_an_end_waits_for_a_route_that_is_fetching_without_starving_it(
    mw: Runtime, browser: Browser, shop: Shop, caplog: pytest.LogCaptureFixture
) -> None:
    """The user's route runs on the very thread that waits for the end."""
    with mw.run("routed") as run:
        page = run.wrap(browser.new_context()).new_page()
        page.goto(f"{shop.url}/checkout")
        page.route("**/api/slow*", lambda route: route.fulfill(response=route.fetch()))
        page.evaluate(SLOW)
        while not shop.count("/api/slow"):
            page.wait_for_timeout(10)
        page.context.close()
    assert "still_unanswered" not in caplog.text
    [effect] = Journal(mw, "routed").effects()
    assert (effect.status, effect.channel, run.phase) == (201, "api", "FINISHED")


def test_what_is_never_answered_is_in_doubt_after_the_time_that_policy_gives(
    mw: Runtime, browser: Browser, shop: Shop
) -> None:
    with mw.run("never") as run:
        page = run.wrap(browser.new_context()).new_page()
        page.goto(f"{shop.url}/checkout")
        page.click("#pay-never")
        shop.wait_for("/api/never")
        began_s = time.monotonic()
    assert mw.policy.settle_s <= time.monotonic() - began_s < mw.policy.settle_s + 2
    assert run.phase == "NEEDS_REVIEW"
    assert Journal(mw, "never").phases() == ["NEEDS_REVIEW"]
    page.context.close()


@pytest.mark.parametrize("leave", ["goes elsewhere", "aborts"])
def test_what_the_page_gave_up_after_it_left_is_in_doubt_at_the_end(
    mw: Runtime, browser: Browser, shop: Shop, leave: str
) -> None:
    """The browser tells no more about it (field note 19), whatever the shop made of it."""
    run_id = f"given up, {leave}"
    with mw.run(run_id) as run:
        page = run.wrap(browser.new_context()).new_page()
        page.goto(f"{shop.url}/checkout")
        page.evaluate("globalThis.stop = new AbortController()")
        page.evaluate("void fetch('/api/never', {method: 'POST', body: 'x', signal: stop.signal}).catch(() => 0)")
        shop.wait_for("/api/never")
        if leave == "aborts":
            page.evaluate("stop.abort()")
        else:
            page.goto(f"{shop.url}/shop")
    assert (run.phase, Journal(mw, run_id).phases()) == ("NEEDS_REVIEW", ["NEEDS_REVIEW"])
    assert shop.count("/api/never") == 1
    page.context.close()


def test_a_run_left_by_an_error_is_suspended_and_the_error_is_the_users(
    mw: Runtime, browser: Browser, shop: Shop
) -> None:
    with pytest.raises(ZeroDivisionError), mw.run("broken") as run:  # noqa: PT012 - the run is left by the error
        page = run.wrap(browser.new_context()).new_page()
        page.goto(f"{shop.url}/shop")
        page.click("#send")
        raise ZeroDivisionError
    assert run.phase == "SUSPENDED"
    page.context.close()


def test_a_runtime_that_is_closed_lets_nothing_leave(
    opening: Callable[..., AbstractContextManager[tuple[Runtime, Browser]]], shop: Shop
) -> None:
    with opening(Policy(settle_s=0)) as (mw, browser):
        with mw.run("r") as run:
            page = run.wrap(browser.new_context()).new_page()
            page.goto(f"{shop.url}/autosave?ms=50")
            shop.wait_for("/api/autosave", 2)
        mw.close()
        before = shop.count(None, None)
        said = page.evaluate("fetch('/api/checkout', {method: 'POST', body: 'x'}).then(() => 'sent', () => 'failed')")
        assert said == "failed"
        assert shop.count(None, None) == before


def kill_in_flight(mw: Runtime, page: Page, shop: Shop) -> None:
    page.goto(f"{shop.url}/checkout")
    page.click("#pay-never")
    shop.wait_for("/api/never")
    port = debugging_port_of(page.context)
    assert port is not None
    os.kill(browser_pid(port), signal.SIGKILL)


def test_a_browser_that_is_killed_leaves_its_effect_in_doubt_and_the_run_read_only(
    opening: Callable[..., AbstractContextManager[tuple[Runtime, Browser]]], shop: Shop, playwright: object
) -> None:
    with opening(Policy(settle_s=3)) as (mw, browser):
        with mw.run("r") as run:
            page = run.wrap(browser.new_context()).new_page()
            kill_in_flight(mw, page, shop)
            journal = Journal(mw, "r")
            [effect] = journal.settled()
            assert str(effect.phase) == "NEEDS_REVIEW"
            assert effect.reason == "the browser ended before the answer"
            with pytest.raises((PlaywrightError, BrowsermwError)):
                page.click("#pay")
            with pytest.raises((PlaywrightError, BrowsermwError)):
                page.goto(f"{shop.url}/shop")
            [doubt] = run.quarantined
            assert doubt.quarantine_id == effect.effect_id
        assert run.phase == "NEEDS_REVIEW"
        again = playwright.chromium.launch(**mw.launch_options(headless=True))  # type: ignore[attr-defined]
        with mw.run("r") as run:
            page = run.wrap(again.new_context()).new_page()
            page.goto(f"{shop.url}/checkout")
            with pytest.raises(Quarantined):
                page.click("#pay")
            mw.resolve(effect.effect_id, verdict="committed", note="seen in the shop")
            page.click("#pay")
            page.wait_for_function("document.querySelector('#result').textContent.startsWith('201')")
        again.close()
        assert run.phase == "FINISHED"
    assert (shop.count("/api/never"), shop.count("/api/checkout")) == (1, 1)
