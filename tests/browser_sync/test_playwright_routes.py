"""Playwright's own routes, HAR files and tracing behind the gate: as without us, and each POST on record once."""

from __future__ import annotations

import json
import zipfile
from typing import TYPE_CHECKING, Any

import pytest
from playwright.sync_api import Error as PlaywrightError
from playwright.sync_api import expect

if TYPE_CHECKING:
    from collections.abc import Callable

    from playwright.sync_api import Page, Route

    from tests.browser_kit import Journal
    from tests.browser_sync.sides import Both, Side
    from tests.shop_site import Shop

POST = """(path, item) => fetch(path, {method: "POST", body: JSON.stringify({item})}).then(
    async answer => [answer.status, await answer.text()], error => error.message)"""
SEND = f"([path, item]) => ({POST})(path, item)"


OURS = {"newCDPSession", "waitForTimeout"}
"""Calls of the hooks' own: they ask once for a page's name, and let the user's handlers run while they wait."""


def pay(page: Page, shop: Shop) -> str:
    """Order on the checkout page; what the page shows then."""
    page.goto(f"{shop.url}/checkout")
    page.click("#pay")
    expect(page.locator("#result")).to_contain_text("201")
    return page.inner_text("#result")


def changed(route: Route) -> None:
    headers = {**route.request.headers, "x-changed": "by the route"}
    route.continue_(post_data='{"item":"pear"}', headers=headers)


@pytest.mark.parametrize("level", ["page", "context"])
def test_a_route_that_changes_body_and_headers(both: Both, shop: Shop, level: str) -> None:
    def work(side: Side) -> str:
        context = side.context()
        page = context.new_page()
        (page if level == "page" else context).route("**/api/checkout", changed)
        return pay(page, shop)

    both(shop, work)
    [arrival] = shop.arrivals("/api/checkout", "POST")
    assert arrival["body"] == '{"item":"pear"}'
    assert arrival["headers"]["x-changed"] == "by the route"


def test_what_is_recorded_is_the_changed_request(page: Page, shop: Shop, journal: Journal) -> None:
    """Two that the route makes different are two orders in flight, and not one sent twice."""
    items = iter(("pear", "plum"))
    page.route("**/api/slow**", lambda route: route.continue_(post_data=json.dumps({"item": next(items)})))
    page.goto(f"{shop.url}/checkout")
    answers = page.evaluate(f"() => Promise.all([1, 2].map(() => ({POST})('/api/slow?ms=300', 'the same')))")
    assert [status for status, _ in answers] == [201, 201]
    bodies = sorted(arrival["body"] for arrival in shop.arrivals("/api/slow"))
    assert bodies == ['{"item": "pear"}', '{"item": "plum"}']
    assert len({effect.fingerprint for effect in journal.settled(count=2)}) == 2


def test_a_route_that_sends_to_another_address(both: Both, shop: Shop) -> None:
    def work(side: Side) -> str:
        page = side.context().new_page()
        page.route("**/api/checkout", lambda route: route.continue_(url=f"{shop.url}/api/slow?ms=1"))
        return pay(page, shop)

    _, [effect] = both(shop, work)
    assert shop.count("/api/slow") == 1
    assert "/api/slow?" in effect.url


def test_routes_that_fulfil_abort_and_fall_back(both: Both, shop: Shop) -> None:
    def work(side: Side) -> list[Any]:
        context = side.context()
        page = context.new_page()
        asked: list[str] = []

        def passed_on(level: str) -> Callable[[Route], None]:
            def pass_on(route: Route) -> None:
                asked.append(level)
                route.fallback()

            return pass_on

        context.route("**/api/**", passed_on("context"))
        page.route("**/api/never", lambda route: route.fulfill(status=299, body="made up", headers={"x-made": "up"}))
        page.route("**/api/drop", lambda route: route.abort("connectionreset"))
        page.route("**/api/checkout", passed_on("page"))
        page.route("**/order", lambda route: route.fulfill(status=200, content_type="text/html", body="<h1>no</h1>"))
        page.goto(f"{shop.url}/shop")
        answers = [page.evaluate(SEND, [f"/api/{kind}", "book"]) for kind in ("never", "drop", "checkout")]
        page.click("#send")
        return [*answers, asked, page.inner_text("h1")]

    seen, effects = both(shop, work)
    assert seen[0] == [299, "made up"]
    assert seen[-2:] == [["page", "context"], "no"]
    assert [effect.url.rpartition("/")[2] for effect in effects] == ["checkout"]


def test_a_route_may_take_its_time_in_sync_code(both: Both, shop: Shop) -> None:
    """It runs on the thread that the click holds, so a wait of ours that blocked it would starve it."""

    def work(side: Side) -> str:
        page = side.context().new_page()

        def slow(route: Route) -> None:
            page.wait_for_timeout(100)
            route.continue_()

        page.route("**/order", slow)
        page.goto(f"{shop.url}/shop")
        page.click("#send")
        return page.inner_text("#reference")

    assert both(shop, work)[0] == "ORD-0001"


def requests_of(entries: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    """What a HAR, or a trace, says of each request, without moments and numbers."""
    return [
        (
            entry["request"]["method"],
            entry["request"]["url"],
            entry["response"]["status"],
            entry["response"]["content"]["mimeType"],
            "postData" in entry["request"],
        )
        for entry in entries
    ]


def test_a_har_is_recorded_and_served_from(both: Both, shop: Shop) -> None:
    def record(side: Side) -> list[tuple[Any, ...]]:
        har = side.folder / "shop.har"
        context = side.context(record_har_path=har)
        pay(context.new_page(), shop)
        context.close()
        return requests_of(json.loads(har.read_text())["log"]["entries"])

    entries, _ = both(shop, record)
    assert ("POST", f"{shop.url}/api/checkout", 201, "application/json", True) in entries


@pytest.mark.parametrize("level", ["page", "context"])
def test_pages_are_served_from_a_har(both: Both, shop: Shop, level: str) -> None:
    def work(side: Side) -> list[Any]:
        har = side.folder / "shop.har"
        recording = side.context(record_har_path=har)
        pay(recording.new_page(), shop)
        recording.close()
        context = side.context()
        page = context.new_page()
        (page if level == "page" else context).route_from_har(har, not_found="fallback")
        shown = pay(page, shop)
        return [shown, page.evaluate(SEND, ["/api/slow?ms=1", "not in the file"])]

    _, effects = both(shop, work, posts=2)
    assert (shop.count("/api/checkout"), shop.count("/api/slow")) == (1, 1)
    assert [effect.status for effect in effects] == [201, 201]


def test_a_har_is_made_by_route_from_har(both: Both, shop: Shop) -> None:
    def work(side: Side) -> list[tuple[Any, ...]]:
        har = side.folder / "made.har"
        context = side.context()
        context.route_from_har(har, update=True)
        pay(context.new_page(), shop)
        context.close()
        return requests_of(json.loads(har.read_text())["log"]["entries"])

    both(shop, work)


def test_a_trace_holds_the_requests(both: Both, shop: Shop) -> None:
    def work(side: Side) -> list[Any]:
        context = side.context()
        context.tracing.start(screenshots=True, snapshots=True, sources=True)
        pay(context.new_page(), shop)
        context.tracing.stop(path=side.folder / "trace.zip")
        with zipfile.ZipFile(side.folder / "trace.zip") as zipped:
            network = [json.loads(line)["snapshot"] for line in zipped.read("trace.network").splitlines()]
            events = [json.loads(line) for line in zipped.read("trace.trace").splitlines()]
        calls = [event["method"] for event in events if event["type"] == "before" and event["method"] not in OURS]
        return [requests_of(network), calls, any(event["type"] == "screencast-frame" for event in events)]

    seen, _ = both(shop, work)
    assert ("POST", f"{shop.url}/api/checkout", 201, "application/json", True) in seen[0]


def test_a_video_is_made(both: Both, shop: Shop) -> None:
    def work(side: Side) -> bool:
        context = side.context(record_video_dir=side.folder)
        try:
            page = context.new_page()
        except PlaywrightError as error:
            if "ffmpeg" in str(error):
                pytest.skip("Playwright's ffmpeg is not installed")
            raise
        pay(page, shop)
        context.close()
        assert page.video is not None
        return (side.folder / page.video.path()).stat().st_size > 0

    assert both(shop, work)[0]
