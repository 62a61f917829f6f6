"""A browser that cannot be guarded as it was launched: the error is clear, and nothing gets out."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING, Any

import pytest
from playwright.sync_api import Error as PlaywrightError

import browsermw
from browsermw import Policy, WireTooWeak

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Browser, Page, Playwright, Route

    from browsermw.run import Run
    from browsermw.runtime import Runtime
    from tests.browser_kit import Journal
    from tests.shop_site import Shop


@pytest.mark.parametrize("occupant", ["a deaf program", "another website", "another browser"])
def test_a_browser_whose_debugging_port_is_taken_is_refused_and_sends_nothing(
    playwright: Playwright, shop: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, browser: Browser, occupant: str
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as deaf:
        port = {
            "a deaf program": deaf.getsockname()[1],
            "another website": int(shop.url.rpartition(":")[2]),
            "another browser": port_of(browser),
        }[occupant]
        monkeypatch.setattr("browsermw.runtime.free_port", lambda: port)
        policy = Policy(attach_timeout_s=1)
        with browsermw.open(f"sqlite:///{tmp_path / 'agent.db'}", runtime="agent-7", policy=policy) as mw:
            launched = playwright.chromium.launch(**mw.launch_options(headless=True))
            with mw.run("r") as run:
                context = launched.new_context()
                with pytest.raises(WireTooWeak, match="debugging port"):
                    run.wrap(context)
                page = context.new_page()
                with pytest.raises(PlaywrightError):
                    page.goto(f"{shop.url}/shop", timeout=1000)
            launched.close()
    assert shop.count("/shop", None) == 0


def port_of(browser: Browser) -> int:
    from browsermw.hooks.launched import debugging_port_of  # noqa: PLC0415 - the hooks load Playwright

    context = browser.new_context()
    port = debugging_port_of(context)
    context.close()
    assert port is not None
    return port


def test_https_is_guarded_like_http(run: Run, browser: Browser, tls_shop: Shop, journal: Journal) -> None:
    context = run.wrap(browser.new_context(ignore_https_errors=True))
    page = context.new_page()
    page.goto(f"{tls_shop.url}/shop")
    page.click("#send")
    assert page.inner_text("#reference") == "ORD-0001"
    page.goto(f"{tls_shop.url}/checkout")
    page.click("#pay-drop")
    page.wait_for_function("document.querySelector('#result').textContent.startsWith('failed')")
    answered, dropped = journal.settled(count=2)
    assert (answered.status, str(dropped.phase)) == (303, "NEEDS_REVIEW")
    assert (tls_shop.count("/order"), tls_shop.count("/api/drop")) == (1, 1)
    context.close()


def test_a_proxy_of_the_caller_is_chained_behind_the_relay(playwright: Playwright, shop: Shop, tmp_path: Path) -> None:
    with browsermw.open(f"sqlite:///{tmp_path / 'agent.db'}", runtime="agent-7") as mw, mw.run("r") as run:
        options: dict[str, Any] = mw.launch_options(headless=True, proxy={"server": "http://127.0.0.1:9"})
        launched = playwright.chromium.launch(**options)
        page = run.wrap(launched.new_context()).new_page()
        with pytest.raises(PlaywrightError):
            page.goto(f"{shop.url}/shop")  # that proxy is not there, and nothing goes around it
        launched.close()
    assert shop.count(None, None) == 0


def test_the_peeks_at_playwrights_inside_hold(mw: Runtime, run: Run, page: Page, shop: Shop, journal: Journal) -> None:
    """The frame of an element handle and the context of a route, which ``hooks.guards`` reads unasked."""
    from browsermw.hooks.guards import find_guard, guard_of, guard_of_route  # noqa: PLC0415

    seen: list[object] = []

    def peek(route: Route) -> None:
        seen.append(guard_of_route(route))
        route.continue_()

    page.route("**/api/poll", peek)
    page.goto(f"{shop.url}/frames?src=/checkout")
    page.evaluate("fetch('/api/poll').then(answer => answer.text())")
    guard = find_guard(page.context)
    assert guard is not None
    assert seen == [(guard, page)]
    frame = page.frame(name="frame")
    assert frame is not None
    for handle in (page.query_selector("h1"), frame.query_selector("#pay"), frame.evaluate_handle("document.body")):
        assert guard_of(type(handle).__name__, handle) == (guard, page)
    route_like = type("Route", (), {"_impl_obj": type("Inside", (), {"_context": page.context._impl_obj})()})()
    route_like.request = NoFrame()
    assert guard_of_route(route_like) == (guard, None)


class NoFrame:
    """A service worker's request, as Playwright shows it: to ask for its frame is an error."""

    @property
    def frame(self) -> object:
        raise PlaywrightError("Service Worker requests do not have an associated frame.")
