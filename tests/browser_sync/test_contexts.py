"""Whose context is it? Runs side by side, contexts that nobody wrapped, contexts that cannot be guarded."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from playwright.sync_api import BrowserContext, Page, expect

import browsermw
from browsermw import BrowsermwError, Policy, WireTooWeak
from tests.browser_kit import Journal

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager
    from pathlib import Path

    from playwright.sync_api import Browser, Playwright

    from browsermw import Run, Runtime
    from tests.shop_site import Shop


def test_two_runs_in_two_contexts_of_one_browser_do_not_mix(mw: Runtime, browser: Browser, shop: Shop) -> None:
    with mw.run("left") as left, mw.run("right") as right:
        pages = [run.wrap(browser.new_context()).new_page() for run in (left, right)]
        for page, item in zip(pages, ("apple", "pear"), strict=True):
            page.goto(f"{shop.url}/checkout")
            page.fill("#item", item)
        for page in pages:
            page.click("#pay")
        for page in pages:
            expect(page.locator("#result")).to_contain_text("201")
        for run in ("left", "right"):
            [effect] = Journal(mw, run).settled()
            assert (effect.run_id, effect.status) == (run, 201)
        for page in pages:
            page.context.close()
    assert (left.phase, right.phase) == ("FINISHED", "FINISHED")
    assert [order["item"] for order in shop.orders()] == ["apple", "pear"]


def test_the_same_order_in_another_run_is_no_duplicate(mw: Runtime, browser: Browser, shop: Shop) -> None:
    with mw.run("one") as one, mw.run("two") as two:
        pages = [run.wrap(browser.new_context()).new_page() for run in (one, two)]
        for page in pages:
            page.goto(f"{shop.url}/checkout")
            page.click("#pay-never")
        shop.wait_for("/api/never", 2)
        shop.release()
        for page in pages:
            page.context.close()


def test_a_context_that_nobody_wrapped_may_read_but_not_send(run: Run, browser: Browser, shop: Shop) -> None:
    page = browser.new_context().new_page()
    page.goto(f"{shop.url}/shop")
    page.click("#send")
    assert page.title() == "Order"
    page.evaluate("fetch('/api/checkout', {method: 'POST', body: 'x'}).catch(() => 0)")
    assert shop.count(None) == 0
    page.context.close()


def test_a_context_that_nobody_wrapped_may_send_where_policy_allows(
    opening: Callable[..., AbstractContextManager[tuple[Runtime, Browser]]], shop: Shop
) -> None:
    with opening(Policy(unowned="allow")) as (mw, browser), mw.run("r"):
        page = browser.new_context().new_page()
        page.goto(f"{shop.url}/shop")
        page.click("#send")
        expect(page.locator("#reference")).to_have_text("ORD-0001")
        assert not Journal(mw, "r").actions()
    assert shop.count("/order") == 1


def test_a_context_whose_run_was_left_is_no_foreign_one(
    opening: Callable[..., AbstractContextManager[tuple[Runtime, Browser]]], shop: Shop
) -> None:
    with opening(Policy(unowned="allow", settle_s=1)) as (mw, browser):
        with mw.run("r") as run:
            page = run.wrap(browser.new_context()).new_page()
            page.goto(f"{shop.url}/checkout")
        assert page.evaluate("fetch('/api/checkout', {method: 'POST'}).catch(error => `${error}`)") == (
            "TypeError: Failed to fetch"
        )
    assert shop.count("/api/checkout") == 0


def test_a_context_whose_run_was_left_may_read_but_not_send(mw: Runtime, browser: Browser, shop: Shop) -> None:
    with mw.run("over") as run:
        page = run.wrap(browser.new_context()).new_page()
    page.goto(f"{shop.url}/shop")
    assert page.title() == "Order"
    with pytest.raises(BrowsermwError, match="is closed in this process"):
        page.click("#send")
    page.evaluate("document.forms[0].submit()")
    with pytest.raises(BrowsermwError):
        page.context.request.post(f"{shop.url}/api/checkout", data={})
    assert shop.count(None) == 0
    with mw.run("after") as run:
        assert run.wrap(page.context) is page.context
        page.goto(f"{shop.url}/shop")
        page.click("#send")
        page.context.close()
    assert shop.count("/order") == 1


def test_wrapping_twice_for_one_run_is_fine_and_for_another_an_error(
    mw: Runtime, run: Run, context: BrowserContext
) -> None:
    assert run.wrap(context) is context
    with mw.run("another") as another, pytest.raises(BrowsermwError, match=run.run_id):
        another.wrap(context)


def test_wrap_takes_contexts_only(run: Run, page: Page, browser: Browser) -> None:
    for wrong in (page, browser, None, "context"):
        with pytest.raises(TypeError, match="no Playwright BrowserContext"):
            run.wrap(wrong)


def test_a_closed_context_cannot_be_wrapped(run: Run, browser: Browser) -> None:
    context = browser.new_context()
    context.close()
    with pytest.raises(BrowsermwError, match="closed"):
        run.wrap(context)


def test_wrap_needs_an_open_run(mw: Runtime, browser: Browser) -> None:
    context = browser.new_context()
    run = mw.run("not-yet")
    with pytest.raises(BrowsermwError, match="enter it first"):
        run.wrap(context)
    with run:
        pass
    with pytest.raises(BrowsermwError, match="enter it first"):
        run.wrap(context)
    context.close()


def test_a_browser_of_somebody_else_is_too_weak_and_the_ways_out_are_named(
    run: Run, playwright: Playwright, mw: Runtime
) -> None:
    options = {key: value for key, value in mw.launch_options().items() if key not in {"proxy", "args"}}
    foreign = playwright.chromium.launch(**options, args=["--no-sandbox", "--disable-background-networking"])
    with pytest.raises(WireTooWeak) as caught:
        run.wrap(foreign.new_context())
    assert "mw.launch_options()" in str(caught.value)
    assert "mw.attach(" in str(caught.value)
    assert "minimum_wire='routed'" in str(caught.value)
    foreign.close()


def test_a_context_with_a_proxy_of_its_own_is_too_weak(run: Run, browser: Browser) -> None:
    context = browser.new_context(proxy={"server": "http://127.0.0.1:9"})
    with pytest.raises(WireTooWeak, match="proxy of its own"):
        run.wrap(context)
    context.close()


def test_a_persistent_context_is_guarded(playwright: Playwright, shop: Shop, tmp_path: Path) -> None:
    with browsermw.open(f"sqlite:///{tmp_path / 'agent.db'}", runtime="agent-7") as mw, mw.run("r") as run:
        options: dict[str, Any] = mw.launch_options(headless=True)
        context = playwright.chromium.launch_persistent_context(str(tmp_path / "profile"), **options)
        run.wrap(context)
        page = context.pages[0]
        page.goto(f"{shop.url}/shop")
        page.click("#send")
        expect(page.locator("#reference")).to_have_text("ORD-0001")
        [effect] = Journal(mw, "r").settled()
        assert (effect.status, shop.count("/order")) == (303, 1)
        context.close()


def test_wrap_leaves_no_cookie_behind(context: BrowserContext, page: Page, shop: Shop) -> None:
    page.goto(f"{shop.url}/checkout")
    assert context.cookies() == []
