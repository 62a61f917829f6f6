"""What the user decides by URL pattern, asked at the shop: what is an effect, what is not, and with which key."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from browsermw import Policy
from tests.browser_kit import Journal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

    from playwright.sync_api import Browser, Page, Route

    from browsermw import Runtime
    from tests.shop_site import Shop

    Opening = Callable[..., AbstractContextManager[tuple[Runtime, Browser]]]

KEYED = {"POST **/{order,api}*/**": "Idempotency-Key", "POST **/order*": "Idempotency-Key"}
SEND = "([url, more]) => fetch(url, {method: 'POST', ...more}).then(answer => answer.status, () => 'failed')"


def keys(shop: Shop, path: str) -> list[str | None]:
    return [arrival["headers"].get("idempotency-key") for arrival in shop.arrivals(path, "POST")]


class TestIdempotencyHeaders:
    """An effect leaves with a key that its record has, and the application can be asked by it."""

    @pytest.fixture
    def opened(self, opening: Opening, shop: Shop) -> Iterator[tuple[Page, Journal]]:
        with opening(Policy(settle_s=1, idempotency_headers=KEYED)) as (mw, browser), mw.run("r") as run:
            page = run.wrap(browser.new_context()).new_page()
            page.goto(f"{shop.url}/login?user=ada")
            yield page, Journal(mw, "r")
            page.context.close()

    def test_a_form_is_sent_with_its_cookies_and_the_key_on_record(
        self, opened: tuple[Page, Journal], shop: Shop
    ) -> None:
        page, journal = opened
        page.goto(f"{shop.url}/form")
        page.click("#send")
        expect(page.locator("#reference")).to_have_text("ORD-0001")
        [effect] = journal.settled()
        [order] = shop.look_up(idempotency_key=effect.idempotency_key)
        assert (order["id"], order["user"], order["item"]) == ("ORD-0001", "ada", "book")
        [arrival] = shop.arrivals("/order", "POST")
        assert arrival["headers"]["referer"] == f"{shop.url}/form"
        assert arrival["headers"]["content-type"] == "application/x-www-form-urlencoded"

    def test_each_fetch_has_a_key_of_its_own(self, opened: tuple[Page, Journal], shop: Shop) -> None:
        page, journal = opened
        page.goto(f"{shop.url}/checkout")
        for count in (1, 2):
            page.click("#pay")
            expect(page.locator("#result")).to_contain_text(f"ORD-000{count}")
        effects = journal.settled(count=2)
        assert keys(shop, "/api/checkout") == [effect.idempotency_key for effect in effects]
        assert len({effect.idempotency_key for effect in effects}) == 2

    def test_the_pages_own_key_is_kept_and_recorded(self, opened: tuple[Page, Journal], shop: Shop) -> None:
        page, journal = opened
        page.goto(f"{shop.url}/checkout?key=mine")
        page.click("#pay")
        expect(page.locator("#result")).to_contain_text("201")
        assert keys(shop, "/api/checkout") == ["mine"]
        assert [effect.idempotency_key for effect in journal.settled()] == ["mine"]

    @pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
    def test_each_hop_of_a_redirect_has_the_same_key(self, opened: tuple[Page, Journal], shop: Shop, host: str) -> None:
        page, journal = opened
        other = shop.url.replace("127.0.0.1", host)
        page.goto(f"{shop.url}/form?action=/order-307%3Fto={other}/order-page")
        page.click("#send")
        expect(page.locator("#reference")).to_have_text("ORD-0001")
        first, second = journal.settled(count=2)
        assert first.idempotency_key == second.idempotency_key == first.effect_id
        assert keys(shop, "/order-307") + keys(shop, "/order-page") == [first.effect_id] * 2

    def test_a_request_to_another_origin_has_its_key_and_asks_for_no_leave_because_of_it(
        self, opened: tuple[Page, Journal], shop: Shop
    ) -> None:
        page, journal = opened
        page.goto(f"{shop.url}/checkout")
        other = shop.url.replace("127.0.0.1", "localhost")
        assert page.evaluate(SEND, [f"{other}/api/checkout", {"body": "item=x"}]) == 201
        [effect] = journal.settled()
        assert keys(shop, "/api/checkout") == [effect.idempotency_key] == [effect.effect_id]
        assert shop.count("/api/checkout", "OPTIONS") == 0

    def test_what_no_pattern_names_is_sent_as_it_is(self, opened: tuple[Page, Journal], shop: Shop) -> None:
        page, journal = opened
        page.goto(f"{shop.url}/shop")
        assert page.evaluate(SEND, ["/upload", {"body": "x"}]) == 200
        assert keys(shop, "/upload") == [None]
        assert [effect.idempotency_key for effect in journal.settled()] == [None]

    def test_calls_of_the_driver_have_keys_too(self, opened: tuple[Page, Journal], shop: Shop) -> None:
        page, journal = opened
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
