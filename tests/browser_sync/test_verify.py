"""A page is brought back and held against what the earlier boot saw last."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import browsermw
from browsermw import BrowsermwError, Identity, IdentityMismatch, Policy

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Browser, Page, Playwright

    from browsermw import Run, Runtime
    from tests.shop_site import Shop


@pytest.fixture(scope="module")
def policy() -> Policy:
    return Policy(identity=Identity(cookie="session"), settle_s=1)


def left_at(mw: Runtime, browser: Browser, shop: Shop, run_id: str) -> None:
    """What an earlier process does: sign in and type half an order."""
    with mw.run(run_id) as run:
        page = page_of(run, browser, shop, "alice")
        page.fill("#item", "pen")
        page.click("#item")
        page.context.close()


def page_of(run: Run, browser: Browser, shop: Shop, user: str, **context: Any) -> Page:
    page = run.wrap(browser.new_context(**context)).new_page()
    page.goto(f"{shop.url}/login?user={user}")
    page.goto(f"{shop.url}/form?action=/order")
    return page


def test_a_page_that_was_brought_back_is_the_same_until_it_changes(mw: Runtime, browser: Browser, shop: Shop) -> None:
    left_at(mw, browser, shop, "brought back")
    with mw.run("brought back") as run:
        page = page_of(run, browser, shop, "alice")
        found = run.verify(page)
        assert (found.same_url, found.identity, found.dom) == (True, "same", "changed")
        page.fill("#item", "pen")
        assert run.verify(page).is_same
        page.goto(f"{shop.url}/logout")
        found = run.verify(page)
        assert (found.same_url, found.identity) == (False, "signed_out")
        assert "nobody is signed in" in str(found)
        page.context.close()
    assert shop.count(None) == 0


def test_another_user_is_refused_by_name(mw: Runtime, browser: Browser, shop: Shop) -> None:
    left_at(mw, browser, shop, "another user")
    with mw.run("another user") as run:
        page = page_of(run, browser, shop, "bob")
        with pytest.raises(IdentityMismatch, match="another user is signed in") as caught:
            run.verify(page)
        assert "Sign in as the user of run 'another user'" in str(caught.value)
        assert "bob" not in str(caught.value)
        page.context.close()


def test_a_new_run_has_nothing_to_compare_with(page: Page, run: Run) -> None:
    with pytest.raises(BrowsermwError, match="no earlier process left a checkpoint"):
        run.verify(page)


def test_a_page_of_nobody_is_refused(browser: Browser, run: Run) -> None:
    with browser.new_context() as other, pytest.raises(BrowsermwError, match="is no page of a context that run"):
        run.verify(other.new_page())


def test_a_page_that_is_closed_cannot_be_compared(mw: Runtime, browser: Browser, shop: Shop) -> None:
    left_at(mw, browser, shop, "closed page")
    with mw.run("closed page") as run:
        page = page_of(run, browser, shop, "alice")
        page.close()
        found = run.verify(page)
        assert (found.same_url, found.dom) == (False, "unknown")
        page.context.close()


def test_a_routed_page_is_looked_at_through_playwright(
    playwright: Playwright, bare_browser: Browser, shop: Shop, tmp_path: Path
) -> None:
    policy = Policy(minimum_wire="routed", identity=Identity(cookie="session"))
    with browsermw.open(f"sqlite:///{tmp_path / 'agent.db'}", runtime="routed", policy=policy) as mw:
        for is_back in (False, True):
            with mw.run("r") as run:
                page = page_of(run, bare_browser, shop, "alice", service_workers="block")
                assert not is_back or run.verify(page).is_same
                page.context.close()
