"""Requests that a page gives up, uploads that the browser cannot hand over: an end for each, in bounded time."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from browsermw import Policy
from tests.browser_kit import Journal, until

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from playwright.sync_api import Browser, Page

    from browsermw import Run, Runtime
    from browsermw.wire.socks import Target
    from tests.shop_site import Shop

ABORTED = """void (window.stopper = new AbortController(),
    fetch('/api/never', {method: 'POST', body: 'item=x', signal: stopper.signal}).catch(() => 0))"""
UPLOAD = """megabytes => new Promise(done => {
    const block = new Uint8Array(1 << 20);
    for (let at = 0; at < block.length; at += 65536) crypto.getRandomValues(block.subarray(at, at + 65536));
    const body = new Blob(Array(megabytes).fill(block));
    fetch('/upload', {method: 'POST', body}).then(it => done(it.status), error => done(`${error}`));
})"""


def test_a_fetch_that_the_page_aborts_is_in_doubt_at_once(page: Page, shop: Shop, journal: Journal, run: Run) -> None:
    page.goto(f"{shop.url}/checkout")
    page.evaluate(ABORTED)
    shop.wait_for("/api/never")
    page.evaluate("stopper.abort()")
    until(lambda: journal.phases() == ["NEEDS_REVIEW"])
    [doubt] = run.quarantined
    assert "given up by the page (net::ERR_ABORTED)" in doubt.reason
    assert shop.count("/api/never") == 1


@pytest.mark.parametrize("end", ["abort", "context"])
def test_one_that_is_given_up_while_its_connection_is_made_is_in_doubt(
    opening: Callable[..., AbstractContextManager[tuple[Runtime, Browser]]], shop: Shop, end: str
) -> None:
    """The relay has not seen it then, and may see it in the next moment."""
    with opening(Policy(settle_s=0)) as (mw, browser), mw.run("r") as run:
        page = run.wrap(browser.new_context()).new_page()
        page.goto(f"{shop.url}/checkout")
        relay = next(iter(mw._browsers.values()))._relay
        assert relay is not None
        dial, asked, go = relay.dial, threading.Event(), threading.Event()

        async def waits(target: Target) -> socket.socket:
            asked.set()
            await asyncio.to_thread(go.wait, 20)
            return await dial(target)

        relay.dial = waits  # type: ignore[method-assign]
        far = shop.url.replace("127.0.0.1", "localhost")
        page.evaluate(ABORTED.replace("/api/never", f"{far}/api/never").replace("body:", "mode: 'no-cors', body:"))
        assert asked.wait(10)
        until(lambda: Journal(mw, "r").phases() == ["DISPATCHED"])
        if end == "abort":
            page.evaluate("stopper.abort()")
        else:
            page.context.close()
        until(lambda: Journal(mw, "r").phases() == ["NEEDS_REVIEW"])
        go.set()


def test_a_navigation_that_replaces_an_unanswered_form_leaves_it_in_doubt(
    page: Page, shop: Shop, journal: Journal
) -> None:
    page.goto(f"{shop.url}/form?action=/order-never")
    page.click("#send", no_wait_after=True)
    shop.wait_for("/order-never")
    page.goto(f"{shop.url}/checkout")
    until(lambda: journal.phases() == ["NEEDS_REVIEW"])
    assert shop.count("/order-never") == 1


def test_an_upload_of_100_mb_passes(page: Page, shop: Shop, journal: Journal) -> None:
    page.goto(f"{shop.url}/checkout")
    assert page.evaluate(UPLOAD, 100) == 200
    [effect] = journal.settled("/upload")
    [arrival] = shop.arrivals("/upload")
    assert (effect.status, arrival["body_length"]) == (200, 100 << 20)
    assert effect.dispatched_at.isoformat() < arrival["arrived_at"]


def test_an_upload_that_the_browser_cannot_hand_over_is_refused_in_bounded_time(
    opening: Callable[..., AbstractContextManager[tuple[Runtime, Browser]]],
    shop: Shop,
) -> None:
    with opening(Policy(settle_s=1, upload_timeout_s=8)) as (mw, browser), mw.run("r") as run:
        page = run.wrap(browser.new_context()).new_page()
        page.goto(f"{shop.url}/checkout")
        assert "Failed to fetch" in page.evaluate(UPLOAD, 200)
        [effect] = Journal(mw, "r").effects("/upload")
        assert (str(effect.phase), effect.reason) == ("REFUSED", "unreadable")
        page.click("#pay")  # the page, its run and its gate work on
        expect(page.locator("#result")).to_contain_text("201")
    assert shop.count("/upload") == 0
