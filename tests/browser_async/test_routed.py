"""The wire ``routed`` in the async flavour; what differs from the sync one is who waits for whom."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
import pytest_asyncio
from playwright.async_api import expect

import browsermw
from browsermw import BrowsermwError, EffectRefused, InFlightDuplicate, LedgerUnavailable, OutcomeUnknown, Policy
from browsermw.errors import WireTooWeak
from browsermw.faults import Point, arm
from tests.browser_kit import Journal, plain_launch
from tests.socket_server import SocketServer

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from pathlib import Path

    from playwright.async_api import Browser, BrowserContext, Page, Playwright, Route

    from browsermw import Run, Runtime
    from browsermw.protocol.phases import RunPhase
    from tests.shop_site import Shop

SHORT_MS = 1200
ROUTED = Policy(minimum_wire="routed", settle_s=1)
POST = "fetch('/api/checkout', {method: 'POST', body: 'x'}).then(answer => answer.status, () => 'failed')"
OPEN_SOCKET = """url => new Promise(done => {
  window.heard = [];
  window.socket = new WebSocket(url);
  socket.onmessage = event => heard.push(event.data);
  socket.onclose = event => heard.push(`closed ${event.code}`);
  socket.onopen = () => done();
})"""


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def mw(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Runtime]:
    url = f"sqlite:///{tmp_path_factory.mktemp('ledger') / 'agent.db'}"
    async with browsermw.open(url, runtime="agent-7", policy=ROUTED) as opened:
        yield opened


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def browser(mw: Runtime, playwright: Playwright) -> AsyncIterator[Browser]:
    launched = await playwright.chromium.launch(**plain_launch())
    yield launched
    await launched.close()


async def unworked(browser: Browser) -> BrowserContext:
    """A context whose service workers are blocked."""
    return await browser.new_context(service_workers="block")


@pytest_asyncio.fixture(loop_scope="session")
async def context(browser: Browser, run: Run, shop: Shop) -> AsyncIterator[BrowserContext]:
    made = run.wrap(await unworked(browser))
    made.set_default_timeout(15_000)
    yield made
    shop.release()
    await made.close()


@pytest.fixture
def socket_server() -> Iterator[SocketServer]:
    with SocketServer() as started:
        yield started


@pytest.fixture
def _disarmed() -> Iterator[None]:
    yield
    arm(None)


async def test_a_form_is_recorded_before_it_arrives(page: Page, shop: Shop, journal: Journal) -> None:
    await page.goto(f"{shop.url}/shop")
    await page.click("#send")
    await expect(page.locator("#reference")).to_have_text("ORD-0001")
    [effect] = journal.settled()
    [arrival] = shop.arrivals("/order", "POST")
    assert effect.dispatched_at.isoformat() < arrival["arrived_at"]
    action = journal.action_of(effect)
    assert (effect.status, action.kind, action.wire, action.phase) == (303, "click", "routed", "OBSERVED")
    assert all(str(checkpoint.dom_hash).startswith("dom1:") for checkpoint in journal.checkpoints())


@pytest.mark.parametrize("button", ["#pay", "#pay-xhr"])
async def test_what_a_script_sends_is_recorded_before_it_arrives(
    page: Page, shop: Shop, journal: Journal, button: str
) -> None:
    await page.goto(f"{shop.url}/checkout")
    await page.click(button)
    await expect(page.locator("#result")).to_contain_text("201")
    [effect] = journal.settled()
    [arrival] = shop.arrivals("/api/checkout", "POST")
    assert effect.dispatched_at.isoformat() < arrival["arrived_at"]
    assert (effect.status, journal.action_of(effect).kind) == (201, "click")


async def test_a_form_into_a_popup_belongs_to_the_click(page: Page, shop: Shop, journal: Journal) -> None:
    await page.goto(f"{shop.url}/popup-opener")
    async with page.expect_popup() as opening:
        await page.click("#open-form")
    await expect((await opening.value).locator("#reference")).to_have_text("ORD-0001")
    [effect] = journal.settled()
    assert (journal.action_of(effect).target, shop.count("/order")) == ("#open-form", 1)


async def test_the_hop_of_a_redirect_is_the_same_effect(page: Page, shop: Shop, journal: Journal) -> None:
    await page.goto(f"{shop.url}/form?action=/order-307")
    await page.click("#send")
    await expect(page.locator("#reference")).to_have_text("ORD-0001")
    [effect] = journal.settled()
    assert (effect.url, effect.status) == (f"{shop.url}/order-307", 303)
    assert (shop.count("/order-307"), shop.count("/order")) == (1, 1)


async def test_a_timeout_after_the_request_left_says_that_its_outcome_is_unknown(
    page: Page, shop: Shop, journal: Journal
) -> None:
    await page.goto(f"{shop.url}/form?action=/order-never")
    with pytest.raises(OutcomeUnknown, match="do not repeat"):
        await page.click("#send", timeout=SHORT_MS)
    assert journal.phases() == ["DISPATCHED"]
    with pytest.raises(InFlightDuplicate):
        await page.press("#item", "Enter", timeout=SHORT_MS)
    assert (shop.count("/order-never"), page.url) == (1, f"{shop.url}/form?action=/order-never")


async def test_a_cancelled_click_whose_request_left_is_not_sent_again(page: Page, shop: Shop, journal: Journal) -> None:
    await page.goto(f"{shop.url}/form?action=/order-never")
    click = asyncio.create_task(page.click("#send"))
    await asyncio.to_thread(shop.wait_for, "/order-never")
    click.cancel()
    with pytest.raises(asyncio.CancelledError):
        await click
    journal.closed()
    assert journal.phases() == ["DISPATCHED"]
    with pytest.raises(InFlightDuplicate):
        await page.press("#item", "Enter", timeout=SHORT_MS)
    assert shop.count("/order-never") == 1


async def test_a_second_fetch_while_the_first_is_unanswered_does_not_leave(
    page: Page, shop: Shop, journal: Journal
) -> None:
    await page.goto(f"{shop.url}/checkout")
    await page.click("#pay-never")
    with pytest.raises(InFlightDuplicate):
        await page.click("#pay-never")
    await expect(page.locator("#result")).to_contain_text("failed")
    assert await page.title() == "Checkout"
    assert (shop.count("/api/never"), journal.phases()) == (1, ["DISPATCHED", "REFUSED"])


async def test_a_reload_that_would_send_the_form_again_is_refused(page: Page, shop: Shop, journal: Journal) -> None:
    await page.goto(f"{shop.url}/form?action=/order-page")
    await page.click("#send")
    await expect(page.locator("#reference")).to_have_text("ORD-0001")
    with pytest.raises(EffectRefused, match="reload"):
        await page.reload()
    assert (shop.count("/order-page"), journal.phases()) == (1, ["OBSERVED", "REFUSED"])
    await page.goto(f"{shop.url}/form?action=/order-page")
    await page.click("#send")
    await expect(page.locator("#reference")).to_have_text("ORD-0002")


@pytest.mark.usefixtures("_disarmed")
@pytest.mark.parametrize(("path", "button", "title"), [("/shop", "#send", "Order"), ("/checkout", "#pay", "Checkout")])
async def test_a_ledger_that_fails_lets_nothing_leave(
    page: Page, shop: Shop, path: str, button: str, title: str
) -> None:
    await page.goto(f"{shop.url}{path}")

    def fail(point: Point, detail: str) -> None:
        if point is Point.LEDGER_BEFORE_COMMIT and detail == "dispatch_effect":
            raise LedgerUnavailable

    arm(fail)
    with pytest.raises(LedgerUnavailable):
        await page.click(button)
    arm(None)
    assert (shop.count(None), await page.title()) == (0, title)


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("where", ["context", "page"])
async def test_what_a_route_of_the_user_fulfils_is_never_recorded(
    browser: Browser, run: Run, shop: Shop, journal: Journal, when: str, where: str
) -> None:
    context = await unworked(browser)
    page = await context.new_page()
    if when == "after":
        run.wrap(context)
        await page.goto(f"{shop.url}/checkout")
    routed = context if where == "context" else page
    await routed.route("**/api/checkout", lambda route: route.fulfill(status=299))
    if when == "before":
        run.wrap(context)
        await page.goto(f"{shop.url}/checkout")
    assert await page.evaluate(POST) == 299
    assert (shop.count(None), journal.effects()) == (0, [])
    await context.close()


@pytest.mark.parametrize("way", ["continue", "fallback"])
async def test_what_a_route_of_the_user_sends_on_is_recorded_as_it_is_sent(
    page: Page, shop: Shop, journal: Journal, way: str
) -> None:
    async def send_on(route: Route) -> None:
        go = route.continue_ if way == "continue" else route.fallback
        await go(url=route.request.url.replace("checkout", "reject"))

    await page.route("**/api/checkout", send_on)
    await page.goto(f"{shop.url}/checkout")
    assert await page.evaluate(POST) == 422
    [effect] = journal.settled()
    assert (effect.url, effect.outcome) == (f"{shop.url}/api/reject", "rejected")
    assert shop.arrivals("/api/checkout") == []


async def test_taking_all_routes_away_leaves_ours(
    context: BrowserContext, page: Page, shop: Shop, journal: Journal
) -> None:
    await context.unroute_all()
    await page.goto(f"{shop.url}/checkout")
    assert await page.evaluate(POST) == 201
    assert len(journal.settled("/api/checkout")) == shop.count("/api/checkout") == 1


async def test_two_runs_at_once_do_not_mix(mw: Runtime, browser: Browser, shop: Shop) -> None:
    async def order(run_id: str, item: str) -> RunPhase | None:
        async with mw.run(run_id) as run:
            page = await run.wrap(await unworked(browser)).new_page()
            await page.goto(f"{shop.url}/checkout")
            await page.fill("#item", item)
            await page.click("#pay")
            await expect(page.locator("#result")).to_contain_text("201")
            await page.context.close()
        return run.phase

    phases = await asyncio.gather(order("left", "apple"), order("right", "pear"))
    assert list(phases) == ["FINISHED", "FINISHED"]
    for run_id in ("left", "right"):
        [effect] = Journal(mw, run_id).effects()
        assert (effect.run_id, effect.status) == (run_id, 201)
    assert sorted(made["item"] for made in shop.orders()) == ["apple", "pear"]


async def test_after_the_runtime_is_closed_nothing_leaves_and_nothing_hangs(
    browser: Browser, shop: Shop, tmp_path: Path
) -> None:
    url = f"sqlite:///{tmp_path / 'agent.db'}"
    async with browsermw.open(url, runtime="a", policy=ROUTED) as mw, mw.run("r") as run:
        page = await run.wrap(await unworked(browser)).new_page()
        await page.goto(f"{shop.url}/checkout")
    assert await page.evaluate(POST) == "failed"
    with pytest.raises(BrowsermwError, match="Nothing left the browser"):
        await page.click("#pay")
    assert shop.count(None) == 0
    await page.context.close()


async def test_messages_on_a_socket_are_recorded_before_they_arrive_and_keep_their_order(
    page: Page, shop: Shop, journal: Journal, socket_server: SocketServer
) -> None:
    await page.goto(f"{shop.url}/checkout")
    await page.evaluate(OPEN_SOCKET, socket_server.feed_url)
    await page.evaluate("for (const word of ['one', 'two', 'three']) socket.send(word)")
    await page.wait_for_function("heard.length === 3")
    effects = journal.settled("/feed", 3)
    assert [word for word, _ in socket_server.came] == ["one", "two", "three"]
    for effect, (_, came_at) in zip(effects, socket_server.came, strict=True):
        assert effect.dispatched_at.isoformat() < came_at
        assert (effect.method, effect.channel, effect.outcome) == ("SEND", "WebSocket", "accepted")


@pytest.mark.usefixtures("_disarmed")
async def test_a_message_that_cannot_be_recorded_is_dropped_and_its_socket_closed(
    page: Page, shop: Shop, socket_server: SocketServer
) -> None:
    await page.goto(f"{shop.url}/checkout")
    await page.evaluate(OPEN_SOCKET, socket_server.feed_url)

    def fail(point: Point, detail: str) -> None:
        if point is Point.LEDGER_BEFORE_COMMIT and detail == "dispatch_effect":
            arm(None)
            raise LedgerUnavailable

    arm(fail)
    await page.evaluate("for (const word of ['one', 'two', 'three']) socket.send(word)")
    await page.wait_for_function("heard.length === 1")
    assert await page.evaluate("heard") == ["closed 1008"]
    assert socket_server.came == []


async def test_a_context_whose_service_workers_are_not_blocked_is_refused(run: Run, browser: Browser) -> None:
    context = await browser.new_context()
    with pytest.raises(WireTooWeak, match="service_workers='block'"):
        run.wrap(context)
    await context.close()
