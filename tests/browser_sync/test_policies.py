"""What the user decides by URL pattern, asked at the shop: what is an effect, what is not, and with which key."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from browsermw import InFlightDuplicate, OutcomeUnknown, Policy

if TYPE_CHECKING:
    from playwright.sync_api import Page, Route

    from tests.browser_kit import Journal
    from tests.shop_site import Shop

POLICY = Policy(
    settle_s=1,
    effects=("GET **/api/poll*",),
    ignore=("POST **/api/beacon", "POST **/api/autosave"),
    idempotency_headers={"POST **/{order,api}*/**": "Idempotency-Key", "POST **/order*": "Idempotency-Key"},
    accepted_statuses={"POST **/api/reject": frozenset({422})},
    ambiguous_statuses={"POST **/api/checkout": frozenset({201})},
    rejected_statuses={"POST **/api/500?policy=**": frozenset({500})},
    max_body_bytes=2000,
)
SEND = "([url, more]) => fetch(url, {method: 'POST', ...more}).then(answer => answer.status, () => 'failed')"
TEXT = {"Content-Type": "text/plain"}


@pytest.fixture(scope="module")
def policy() -> Policy:
    return POLICY


def keys(shop: Shop, path: str) -> list[str | None]:
    return [arrival["headers"].get("idempotency-key") for arrival in shop.arrivals(path, "POST")]


def test_a_form_is_sent_with_its_cookies_and_the_key_on_record(page: Page, shop: Shop, journal: Journal) -> None:
    page.goto(f"{shop.url}/login?user=ada")
    page.goto(f"{shop.url}/form")
    page.click("#send")
    expect(page.locator("#reference")).to_have_text("ORD-0001")
    [effect] = journal.settled()
    assert effect.idempotency_key == effect.effect_id
    [order] = shop.look_up(idempotency_key=effect.idempotency_key)
    assert (order["id"], order["user"], order["item"]) == ("ORD-0001", "ada", "book")
    [arrival] = shop.arrivals("/order", "POST")
    assert arrival["headers"]["referer"] == f"{shop.url}/form"
    assert arrival["headers"]["content-type"] == "application/x-www-form-urlencoded"


def test_each_fetch_has_a_key_of_its_own(page: Page, shop: Shop, journal: Journal) -> None:
    page.goto(f"{shop.url}/checkout")
    for count in (1, 2):
        page.click("#pay")
        expect(page.locator("#result")).to_contain_text(f"ORD-000{count}")
    effects = journal.settled(count=2)
    assert keys(shop, "/api/checkout") == [effect.idempotency_key for effect in effects]
    assert len({effect.idempotency_key for effect in effects}) == 2


def test_the_pages_own_key_is_kept_and_recorded(page: Page, shop: Shop, journal: Journal) -> None:
    page.goto(f"{shop.url}/checkout?key=mine")
    page.click("#pay")
    expect(page.locator("#result")).to_contain_text("201")
    assert keys(shop, "/api/checkout") == ["mine"]
    assert [effect.idempotency_key for effect in journal.settled()] == ["mine"]


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_each_hop_of_a_redirect_has_the_same_key(page: Page, shop: Shop, journal: Journal, host: str) -> None:
    other = shop.url.replace("127.0.0.1", host)
    page.goto(f"{shop.url}/form?action=/order-307%3Fto={other}/order-page")
    page.click("#send")
    expect(page.locator("#reference")).to_have_text("ORD-0001")
    first, second = journal.settled(count=2)
    assert first.idempotency_key == second.idempotency_key == first.effect_id
    assert keys(shop, "/order-307") + keys(shop, "/order-page") == [first.effect_id] * 2


def test_a_request_to_another_origin_has_its_key_and_asks_for_no_leave_because_of_it(
    page: Page, shop: Shop, journal: Journal
) -> None:
    page.goto(f"{shop.url}/checkout")
    other = shop.url.replace("127.0.0.1", "localhost")
    assert page.evaluate(SEND, [f"{other}/api/checkout", {"body": "item=x"}]) == 201
    [effect] = journal.settled()
    assert keys(shop, "/api/checkout") == [effect.idempotency_key] == [effect.effect_id]
    assert shop.count("/api/checkout", "OPTIONS") == 0


def test_what_no_pattern_names_is_sent_as_it_is(page: Page, shop: Shop, journal: Journal) -> None:
    page.goto(f"{shop.url}/shop")
    assert page.evaluate(SEND, ["/upload", {"body": "x"}]) == 200
    assert keys(shop, "/upload") == [None]
    assert [effect.idempotency_key for effect in journal.settled()] == [None]


def test_calls_of_the_driver_have_keys_too(page: Page, shop: Shop, journal: Journal) -> None:
    request, url = page.context.request, f"{shop.url}/api/checkout"
    assert request.post(url, data={"item": "a"}, headers={"X-Mine": "1"}).status == 201
    assert request.post(url, data={"item": "b"}, headers={"idempotency-key": "mine"}).status == 201
    page.goto(f"{shop.url}/checkout")
    page.route("**/api/slow", _through)
    page.click("#pay-slow")
    expect(page.locator("#result")).to_contain_text("201")
    first, second, third = journal.settled(count=3)
    assert keys(shop, "/api/checkout") == [first.idempotency_key, second.idempotency_key]
    assert (first.idempotency_key, second.idempotency_key) == (first.effect_id, "mine")
    assert keys(shop, "/api/slow") == [third.idempotency_key] == [third.effect_id]
    assert shop.arrivals("/api/checkout")[0]["headers"]["x-mine"] == "1"
    assert shop.arrivals("/api/slow", "POST")[0]["headers"]["content-type"] == "application/json"


def _through(route: Route) -> None:
    route.fulfill(response=route.fetch())


def test_a_get_that_policy_names_is_an_effect_also_at_the_call(page: Page, shop: Shop, journal: Journal) -> None:
    page.goto(f"{shop.url}/checkout")
    assert page.evaluate("fetch('/api/poll?buy=1').then(answer => answer.status)") == 200
    assert page.context.request.get(f"{shop.url}/api/poll?buy=2").status == 200
    page.evaluate("fetch('/asset/1.js').then(answer => answer.text())")
    effects = journal.settled(count=2)
    assert [(effect.method, effect.status) for effect in effects] == [("GET", 200), ("GET", 200)]
    for effect, arrival in zip(effects, shop.arrivals("/api/poll", "GET"), strict=True):
        assert effect.dispatched_at.isoformat() < arrival["arrived_at"]


def test_telemetry_that_policy_names_leaves_unrecorded(page: Page, shop: Shop, journal: Journal) -> None:
    page.goto(f"{shop.url}/checkout")
    assert page.evaluate("navigator.sendBeacon('/api/beacon', 'x')")
    assert page.evaluate(SEND, ["/api/autosave", {"body": "x"}]) == 204
    assert page.context.request.post(f"{shop.url}/api/autosave", data="x").status == 204
    shop.wait_for("/api/beacon")
    assert shop.count("/api/autosave") == 2
    assert journal.effects() == []


@pytest.mark.parametrize("sent", ["page", "call"])
def test_a_graphql_query_is_read_by_its_body_and_a_mutation_is_an_effect(
    page: Page, shop: Shop, journal: Journal, sent: str
) -> None:
    page.goto(f"{shop.url}/checkout")
    for query in ("query Orders { orders { id } }", "{ orders { id } }", "mutation Buy { buy(id: 1) { id } }"):
        body = json.dumps({"query": query})
        headers = {"Content-Type": "application/json"}
        if sent == "page":
            page.evaluate(SEND, ["/graphql", {"headers": headers, "body": body}])
        else:
            page.context.request.post(f"{shop.url}/graphql", headers=headers, data=body)
    assert shop.count("/graphql") == 3
    [effect] = journal.settled("/graphql")
    third = shop.arrivals("/graphql", "POST")[2]
    assert "mutation" in third["body"]
    assert effect.external_request_id == f"x-request-id=req-{third['n']}"


def test_a_status_means_what_policy_says_there(page: Page, shop: Shop, journal: Journal) -> None:
    page.goto(f"{shop.url}/checkout")
    for path in ("/api/reject", "/api/checkout", "/api/500?policy=mine", "/api/500"):
        page.evaluate(SEND, [path, {"body": f"item={path}"}])
        page.context.request.post(f"{shop.url}{path}", data={"item": path})
    effects = journal.settled(count=8)
    assert [str(effect.outcome) for effect in effects[0::2]] == ["accepted", "ambiguous", "rejected", "ambiguous"]
    assert [str(effect.outcome) for effect in effects[1::2]] == ["accepted", "ambiguous", "rejected", "ambiguous"]


@pytest.mark.parametrize("size", [2000, 2001])
def test_a_body_that_is_larger_than_policy_reads_is_never_the_same_as_another(
    page: Page, shop: Shop, size: int
) -> None:
    page.goto(f"{shop.url}/checkout")
    body = json.dumps({"item": "x" * (size - len('{"item": ""}'))})
    assert len(body) == size
    post = f"fetch('/api/never', {{method: 'POST', body: {body!r}}}).catch(() => 0)"
    page.evaluate(f"void {post}")
    shop.wait_for("/api/never")
    with suppress(InFlightDuplicate):
        page.evaluate(f"void {post}")
    page.evaluate("fetch('/asset/1.js').then(answer => answer.text())")
    with suppress(InFlightDuplicate, OutcomeUnknown):
        page.context.request.post(f"{shop.url}/api/never", data=body, headers=TEXT, timeout=500)
    assert shop.count("/api/never") == (1 if size == 2000 else 3)
