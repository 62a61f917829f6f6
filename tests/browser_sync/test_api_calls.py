"""Requests that Playwright's driver sends itself never pass the browser: they are guarded at the call."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import Error as PlaywrightError
from playwright.sync_api import TimeoutError as PlaywrightTimeoutError
from playwright.sync_api import expect

from browsermw import InFlightDuplicate, OutcomeUnknown
from tests.browser_kit import Journal, closed_port

if TYPE_CHECKING:
    from playwright.sync_api import BrowserContext, Page, Route

    from tests.shop_site import Shop

ORDER: dict[str, str | float | bool] = {"item": "book"}


@pytest.mark.parametrize("method", ["post", "put", "patch", "delete"])
def test_a_call_is_journaled_and_acknowledged(
    context: BrowserContext, shop: Shop, journal: Journal, method: str
) -> None:
    answer = getattr(context.request, method)(f"{shop.url}/api/checkout", data=ORDER)
    [arrival] = shop.arrivals("/api/checkout", method.upper())
    [effect] = journal.effects()
    assert (effect.method, effect.channel, effect.status) == (method.upper(), "api", answer.status)
    assert effect.external_request_id == f"x-request-id=req-{arrival['n']}"
    assert effect.dispatched_at.isoformat() < arrival["arrived_at"]
    action = journal.action_of(effect)
    assert (action.kind, action.method) == ("api", f"APIRequestContext.{method}")
    assert str(action.phase) == "OBSERVED"


def test_fetch_is_what_its_method_says(context: BrowserContext, shop: Shop, journal: Journal) -> None:
    assert context.request.fetch(f"{shop.url}/api/checkout", method="POST", data=ORDER).status == 201
    assert context.request.fetch(f"{shop.url}/api/poll").status == 200
    assert context.request.get(f"{shop.url}/api/poll").status == 200
    assert context.request.head(f"{shop.url}/api/poll").status == 200
    assert [effect.method for effect in journal.effects()] == ["POST"]
    assert len(journal.actions()) == 1


def test_a_request_of_the_page_may_be_sent_on_by_fetch(page: Page, shop: Shop, journal: Journal) -> None:
    page.goto(f"{shop.url}/checkout")
    with page.expect_request("**/api/checkout") as seen:
        page.click("#pay")
    expect(page.locator("#result")).to_contain_text("201")
    assert page.context.request.fetch(seen.value).status == 201
    assert shop.count("/api/checkout") == 2
    assert [effect.channel for effect in journal.settled(count=2)] == [
        "XHR",
        "api",
    ]  # so the browser names a page's fetch


def test_the_same_call_in_flight_is_refused(context: BrowserContext, shop: Shop, journal: Journal) -> None:
    with pytest.raises(OutcomeUnknown) as caught:
        context.request.post(f"{shop.url}/api/never", data=ORDER, timeout=700)
    assert isinstance(caught.value, PlaywrightTimeoutError)
    with pytest.raises(InFlightDuplicate):
        context.request.post(f"{shop.url}/api/never", data=ORDER, timeout=700)
    assert shop.count("/api/never") == 1
    assert journal.phases() == ["NEEDS_REVIEW", "REFUSED"]


def test_a_call_that_reached_nobody_may_be_made_again(context: BrowserContext, journal: Journal) -> None:
    with closed_port() as port:
        for _ in range(2):
            with pytest.raises(PlaywrightError) as caught:
                context.request.post(f"http://127.0.0.1:{port}/api/checkout", data=ORDER)
            assert not isinstance(caught.value, OutcomeUnknown)
    assert journal.phases() == ["ABANDONED", "ABANDONED"]


def test_a_call_whose_connection_dropped_is_in_doubt(context: BrowserContext, shop: Shop, journal: Journal) -> None:
    with pytest.raises(OutcomeUnknown):
        context.request.post(f"{shop.url}/api/drop", data=ORDER)
    assert shop.count("/api/drop") == 1
    assert journal.phases() == ["NEEDS_REVIEW"]


@pytest.mark.parametrize(("kind", "status", "outcome"), [("reject", 422, "rejected"), ("500", 500, "ambiguous")])
def test_fail_on_status_code_is_an_answer_and_no_doubt(
    context: BrowserContext, shop: Shop, journal: Journal, kind: str, status: int, outcome: str
) -> None:
    with pytest.raises(PlaywrightError, match=str(status)) as caught:
        context.request.post(f"{shop.url}/api/{kind}", data=ORDER, fail_on_status_code=True)
    assert not isinstance(caught.value, OutcomeUnknown)
    [effect] = journal.effects()
    assert (effect.status, str(effect.outcome), str(effect.phase)) == (status, outcome, "OBSERVED")
    assert shop.count(f"/api/{kind}") == 1


@pytest.mark.parametrize("status", [307, 308])
@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_a_redirect_that_repeats_the_call_is_one_effect(
    context: BrowserContext, shop: Shop, journal: Journal, status: int, host: str
) -> None:
    other = shop.url.replace("127.0.0.1", host)
    answer = context.request.post(f"{shop.url}/order-{status}?to={other}/api/checkout", data=ORDER)
    assert (answer.status, answer.url) == (201, f"{other}/api/checkout")
    assert (shop.count(f"/order-{status}"), shop.count("/api/checkout")) == (1, 1)
    [effect] = journal.effects()
    assert (effect.status, effect.url.partition("?")[0]) == (201, f"{shop.url}/order-{status}")
    assert str(journal.action_of(effect).phase) == "OBSERVED"


def test_a_redirect_that_does_not_repeat_is_followed_and_is_no_effect(
    context: BrowserContext, shop: Shop, journal: Journal
) -> None:
    answer = context.request.post(f"{shop.url}/order", form=ORDER)
    assert (answer.status, answer.url) == (200, f"{shop.url}/orders/ORD-0001")
    assert (shop.count("/order"), shop.count("/orders/ORD-0001", "GET")) == (1, 1)
    assert [(effect.method, effect.status) for effect in journal.effects()] == [("POST", 200)]


@pytest.mark.parametrize("status", [303, 307])
def test_a_redirect_that_the_call_does_not_follow_is_its_answer(
    context: BrowserContext, shop: Shop, journal: Journal, status: int
) -> None:
    path = "/order" if status == 303 else "/order-307?to=/api/checkout"
    assert context.request.post(f"{shop.url}{path}", form=ORDER, max_redirects=0).status == status
    [effect] = journal.effects()
    assert (effect.status, str(effect.phase)) == (status, "OBSERVED")
    assert len(shop.arrivals()) == 1


def test_a_redirect_to_a_host_that_nobody_reaches_is_in_doubt(
    context: BrowserContext, shop: Shop, journal: Journal
) -> None:
    """The first host has read the order; only its answer, which the driver keeps to itself, would tell more."""
    with closed_port() as port, pytest.raises(OutcomeUnknown):
        context.request.post(f"{shop.url}/order-307?to=http://127.0.0.1:{port}/", data=ORDER)
    assert shop.count("/order-307") == 1
    assert journal.phases() == ["NEEDS_REVIEW"]


def test_a_route_that_keeps_a_redirect_ends_what_the_page_did(page: Page, shop: Shop, journal: Journal) -> None:
    page.route("**/order-307*", lambda route: route.fulfill(status=201, body=str(route.fetch(max_redirects=0).status)))
    page.goto(f"{shop.url}/checkout")
    page.evaluate("setTimeout(() => fetch('/order-307', {method: 'POST', body: 'x'}).then(() => noop.click()), 200)")
    expect(page.locator("#noop")).to_have_text("noop done")
    [effect] = journal.settled()
    assert (effect.status, journal.action_of(effect).kind) == (307, "page")
    journal.closed()


def test_route_fetch_is_journaled_and_its_answer_recorded(page: Page, shop: Shop, journal: Journal) -> None:
    def through(route: Route) -> None:
        route.fulfill(response=route.fetch())

    page.route("**/api/checkout", through)
    page.goto(f"{shop.url}/checkout")
    page.click("#pay")
    expect(page.locator("#result")).to_contain_text("201")
    [arrival] = shop.arrivals("/api/checkout", "POST")
    [effect] = journal.settled()
    assert (effect.channel, effect.status) == ("api", 201)
    assert effect.dispatched_at.isoformat() < arrival["arrived_at"]


def test_what_a_route_aborts_or_fulfils_never_leaves_and_is_no_effect(page: Page, shop: Shop, journal: Journal) -> None:
    page.route("**/api/checkout", lambda route: route.abort())
    page.route("**/api/slow", lambda route: route.fulfill(status=201, body="made up"))
    page.route("**/api/500", lambda route: route.continue_())
    page.route("**/api/reject", lambda route: route.fallback())
    page.goto(f"{shop.url}/checkout")
    for name, shown in (("pay", "failed"), ("pay-slow", "made up"), ("pay-500", "500"), ("pay-reject", "422")):
        page.click(f"#{name}")
        expect(page.locator("#result")).to_contain_text(shown)
    assert (shop.count("/api/checkout"), shop.count("/api/slow")) == (0, 0)
    assert (shop.count("/api/500"), shop.count("/api/reject")) == (1, 1)
    assert [effect.url.rpartition("/")[2] for effect in journal.settled(count=2)] == ["500", "reject"]


def test_a_slow_route_does_not_deadlock_with_our_hooks(page: Page, shop: Shop, journal: Journal) -> None:
    took = threading.Event()

    def slow(route: Route) -> None:
        page.wait_for_timeout(400)
        route.continue_()
        took.set()

    page.context.route("**/order", slow)
    page.goto(f"{shop.url}/shop")
    page.click("#send")
    expect(page.locator("#reference")).to_have_text("ORD-0001")
    assert took.is_set()
    assert shop.count("/order") == 1
    assert [effect.status for effect in journal.settled()] == [303]


def test_a_route_that_acts_on_the_page_does_not_deadlock(page: Page, shop: Shop, journal: Journal) -> None:
    def counting(route: Route) -> None:
        page.evaluate("document.title = 'counted'")
        page.context.request.post(f"{shop.url}/api/checkout", data=ORDER)
        route.continue_()

    page.goto(f"{shop.url}/checkout")
    page.route("**/api/slow", counting)
    page.click("#pay-slow")
    expect(page.locator("#result")).to_contain_text("201")
    assert page.title() == "counted"
    assert (shop.count("/api/slow"), shop.count("/api/checkout")) == (1, 1)
    assert len(journal.settled(count=2)) == 2
