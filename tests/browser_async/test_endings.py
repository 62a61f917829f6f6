"""Ends: a page, a context and a run wait for late answers; a browser that is killed leaves its effect in doubt."""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING

import pytest
from playwright.async_api import Error as PlaywrightError

from browsermw import BrowsermwError, LedgerUnavailable, Policy, WireTooWeak
from browsermw.faults import Point, arm
from browsermw.hooks.launched import debugging_port_of
from tests.browser_kit import Journal, browser_pid

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractAsyncContextManager

    from playwright.async_api import Browser, Page, Playwright

    from browsermw import Run, Runtime
    from tests.shop_site import Shop

SLOW = "void fetch('/api/slow?ms=500', {method: 'POST', body: 'item=x'})"


@pytest.mark.parametrize("end", ["page", "context", "run"])
async def test_an_end_waits_for_a_late_answer_and_records_it(
    mw: Runtime, browser: Browser, shop: Shop, end: str
) -> None:
    run_id = f"late-{end}"
    async with mw.run(run_id) as run:
        page = await run.wrap(await browser.new_context()).new_page()
        await page.goto(f"{shop.url}/checkout")
        await page.evaluate(SLOW)
        shop.wait_for("/api/slow")
        if end == "page":
            await page.close()
        if end == "context":
            await page.context.close()
        if end != "run":
            assert Journal(mw, run_id).effects()[0].status == 201
    [effect] = Journal(mw, run_id).effects()
    assert (effect.status, run.phase, shop.count("/api/slow")) == (201, "FINISHED", 1)
    await page.context.close()


async def test_what_is_never_answered_is_in_doubt_when_the_run_ends(mw: Runtime, browser: Browser, shop: Shop) -> None:
    async with mw.run("never") as run:
        page = await run.wrap(await browser.new_context()).new_page()
        await page.goto(f"{shop.url}/checkout")
        await page.click("#pay-never")
        shop.wait_for("/api/never")
    assert (run.phase, Journal(mw, "never").phases()) == ("NEEDS_REVIEW", ["NEEDS_REVIEW"])
    await page.context.close()


async def test_a_browser_that_is_killed_leaves_its_effect_in_doubt(
    opening: Callable[..., AbstractAsyncContextManager[tuple[Runtime, Browser]]], shop: Shop
) -> None:
    async with opening(Policy(settle_s=3)) as (mw, browser):
        async with mw.run("r") as run:
            page = await run.wrap(await browser.new_context()).new_page()
            await page.goto(f"{shop.url}/checkout")
            await page.click("#pay-never")
            shop.wait_for("/api/never")
            port = debugging_port_of(page.context)
            assert port is not None
            os.kill(browser_pid(port), signal.SIGKILL)
            [effect] = Journal(mw, "r").settled()
            assert str(effect.phase) == "NEEDS_REVIEW"
            with pytest.raises((PlaywrightError, BrowsermwError)):
                await page.click("#pay")
        assert run.phase == "NEEDS_REVIEW"
    assert shop.count("/api/never") == 1


async def test_a_context_of_somebody_elses_browser_is_too_weak(run: Run, playwright: Playwright, mw: Runtime) -> None:
    options = {key: value for key, value in mw.launch_options().items() if key not in {"proxy", "args"}}
    foreign = await playwright.chromium.launch(**options, args=["--no-sandbox", "--disable-background-networking"])
    context = await foreign.new_context()
    run.wrap(context)  # a plain call, which cannot ask the browser yet: the first awaited call tells
    with pytest.raises(WireTooWeak, match="launch_options"):
        await context.new_page()
    await foreign.close()


async def test_a_ledger_that_fails_at_the_gate_lets_nothing_leave(page: Page, shop: Shop) -> None:
    await page.goto(f"{shop.url}/shop")

    def hook(point: Point, detail: str) -> None:
        if point is Point.LEDGER_BEFORE_COMMIT and detail == "dispatch_effect":
            raise LedgerUnavailable("Nothing left the browser: the disk is full.")

    arm(hook)
    try:
        with pytest.raises(LedgerUnavailable):
            await page.click("#send")
    finally:
        arm(None)
    assert shop.count(None) == 0
    assert await page.title() == "Order"
    await page.click("#send")
    assert shop.count("/order") == 1
