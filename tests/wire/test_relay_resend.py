"""Real Chromium, real connections: what it sends again by itself, and that the relay keeps it from doing so.

The server's count is the oracle. Each case is first seen to arrive twice without the relay's help.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest
from playwright.async_api import async_playwright

from browsermw.wire import relay as relay_module
from browsermw.wire.launch import local_browser
from browsermw.wire.relay import Relay, Upstream
from tests.wire.counting import CountingServer, server_pem, server_tls
from tests.wire.proxies import PASSWORD, USERNAME, HttpProxy

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from playwright.async_api import Browser, Page

_POST = """path => fetch(path, {method: "POST", body: "x=1"}).then(
    async answer => answer.status + " " + await answer.text(), () => "failed")"""
_ROUND_COUNT = int(os.environ.get("RESEND_ROUNDS", "5"))
_CONTROL_LIMIT = 8


def _behind(relay: Relay, *args: str) -> dict[str, Any]:
    return local_browser({"proxy": {"server": relay.server}, "args": [*args, "--disable-background-networking"]})


@pytest.fixture
async def browser(relay: Relay) -> AsyncIterator[Browser]:
    relay.open()
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(**_behind(relay, "--proxy-bypass-list=<-loopback>"))
        yield browser
        await browser.close()


@pytest.fixture
async def page(browser: Browser) -> Page:
    return await browser.new_page(ignore_https_errors=True)


@pytest.fixture(params=["http", "https"])
async def shop(request: pytest.FixtureRequest) -> AsyncIterator[CountingServer]:
    async with CountingServer(server_tls() if request.param == "https" else None) as shop:
        yield shop


async def post(page: Page, relay: Relay, origin: tuple[str, int], path: str, *, guarded: bool = True) -> str:
    """Send an effect as the gate would; its outcome as the page sees it."""
    if guarded:
        relay.effect_released(*origin)
    outcome: str = await page.evaluate(_POST, path)
    if guarded:
        relay.effect_answered(*origin)
    return outcome


async def arrivals(page: Page, relay: Relay, shop: CountingServer, manner: str) -> tuple[Counter[int], set[str]]:
    """How often each round's POST arrived at the server, over a kept-alive connection, and what pages saw."""
    outcomes = set()
    paths = [f"/{manner}/{number}" for number in range(_ROUND_COUNT)]
    for path in paths:
        await page.goto(shop.url)
        outcomes.add(await post(page, relay, ("127.0.0.1", shop.port), path))
    return Counter(shop.arrivals[f"POST {path}"] for path in paths), outcomes


async def sent_again(page: Page, relay: Relay, shop: CountingServer, manner: str) -> str:
    """What the page saw of a POST that Chromium sent twice, because nothing told it not to.

    On a busy machine it may have taken a new connection, on which nothing is sent again.
    """
    for number in range(_CONTROL_LIMIT):
        path = f"/{manner}/unguarded/{number}"
        await page.goto(shop.url)
        outcome = await post(page, relay, ("127.0.0.1", shop.port), path, guarded=False)
        if shop.arrivals[f"POST {path}"] == 2:
            return outcome
    raise AssertionError(f"Chromium sent no POST again in {_CONTROL_LIMIT} tries")


@pytest.mark.parametrize("manner", ["fin", "rst", "bare", "late-fin"])
async def test_a_post_whose_connection_ends_unanswered_arrives_once(
    page: Page, relay: Relay, shop: CountingServer, manner: str
) -> None:
    assert await sent_again(page, relay, shop, manner) == "200 ok"
    assert await arrivals(page, relay, shop, manner) == (Counter({1: _ROUND_COUNT}), {"failed"})


async def test_a_torn_answer_is_neither_sent_again_nor_taken_for_success(
    page: Page, relay: Relay, shop: CountingServer
) -> None:
    """Unguarded, https sends it again, and http takes "HTTP/1.1 200 OK" without the rest for an answer."""
    if shop.is_tls:
        assert await sent_again(page, relay, shop, "torn-rst") == "200 ok"
    else:
        await page.goto(shop.url)
        origin = ("127.0.0.1", shop.port)
        assert await post(page, relay, origin, "/torn-rst/unguarded/0", guarded=False) == "200 "
    assert await arrivals(page, relay, shop, "torn-rst") == (
        Counter({1: _ROUND_COUNT}),
        {"failed"},
    )


async def test_a_408_is_not_followed_by_a_second_post_on_plain_http(page: Page, relay: Relay) -> None:
    """Chromium sends again after a 408 too. Inside TLS the relay cannot see one."""
    async with CountingServer() as shop:
        await sent_again(page, relay, shop, "now-408")
        assert (await arrivals(page, relay, shop, "now-408"))[0] == Counter({1: _ROUND_COUNT})


@pytest.mark.parametrize("manner", ["ok", "body-fin"])
async def test_answers_pass_untouched(page: Page, relay: Relay, shop: CountingServer, manner: str) -> None:
    """Also one whose body ends with the connection, while the effect still counts as unanswered."""
    counts, outcomes = await arrivals(page, relay, shop, manner)
    assert counts == Counter({1: _ROUND_COUNT})
    assert outcomes == {"200 ok" if manner == "ok" else "200 until the end"}


async def test_an_idle_connection_that_the_server_closed_costs_nothing(
    page: Page, relay: Relay, shop: CountingServer
) -> None:
    """Closed before the effect is written: Chromium dials again, or sends again what never went on."""
    for number in range(_ROUND_COUNT):
        await page.goto(shop.url)
        relay.effect_released("127.0.0.1", shop.port)
        shop.close_connections()
        assert await page.evaluate(_POST, f"/ok/{number}") == "200 ok"
        relay.effect_answered("127.0.0.1", shop.port)
        assert shop.arrivals[f"POST /ok/{number}"] == 1


async def test_gets_keep_their_retry_when_no_effect_is_in_flight(
    page: Page, relay: Relay, shop: CountingServer
) -> None:
    await page.goto(shop.url)
    assert await page.evaluate("fetch('/get-fin/1').then(answer => answer.status)") == 200
    assert shop.arrivals["GET /get-fin/1"] == 2


async def test_a_cut_does_not_send_again_after_the_gate_is_back(page: Page, relay: Relay, shop: CountingServer) -> None:
    for number in range(_ROUND_COUNT):
        await page.goto(shop.url)
        path = f"/never/{number}"
        sending = asyncio.create_task(post(page, relay, ("127.0.0.1", shop.port), path))
        await shop.arrived(f"POST {path}")
        relay.shut("gate lost")
        relay.open()
        assert await sending == "failed"
        assert shop.arrivals[f"POST {path}"] == 1


async def test_on_port_80_the_broken_answer_is_not_taken_for_http_0_9() -> None:
    """There Chromium takes any bytes for a page with status 200."""
    async with CountingServer() as shop, HttpProxy(reroute_port=shop.port) as proxy:
        upstream = Upstream.from_playwright(
            {"server": f"127.0.0.1:{proxy.port}", "username": USERNAME, "password": PASSWORD}
        )
        relay = Relay(upstream=upstream)
        await relay.start()
        relay.open()
        async with async_playwright() as playwright:
            browser = await playwright.chromium.launch(**_behind(relay))
            page = await browser.new_page()
            await page.goto("http://shop.test/")
            assert await post(page, relay, ("shop.test", 80), "/fin/1") == "failed"
            assert await post(page, relay, ("shop.test", 80), "/torn-fin/1") == "failed"
            await browser.close()
        await relay.close()
        assert (shop.arrivals["POST /fin/1"], shop.arrivals["POST /torn-fin/1"]) == (1, 1)


# HTTP/2.


class Http2Shop:
    """The server of h2_server.cjs and its count of POSTs."""

    def __init__(self, running: asyncio.subprocess.Process, port: int) -> None:
        self.running = running
        self.port = port
        self.url = f"https://127.0.0.1:{port}/"
        self.arrivals: Counter[str] = Counter()

    async def read_arrivals(self) -> None:
        assert self.running.stdout is not None
        async for line in self.running.stdout:
            self.arrivals[line.decode().strip()] += 1


@pytest.fixture
async def http2_shop(tmp_path: Path) -> AsyncIterator[Http2Shop]:
    from playwright._impl._driver import compute_driver_executable  # noqa: PLC0415  # its node

    pem = tmp_path / "shop.pem"
    pem.write_bytes(server_pem())
    script = os.path.join(os.path.dirname(__file__), "h2_server.cjs")  # noqa: PTH118, PTH120
    running = await asyncio.create_subprocess_exec(
        compute_driver_executable()[0], script, str(pem), stdout=asyncio.subprocess.PIPE
    )
    assert running.stdout is not None
    shop = Http2Shop(running, int(await running.stdout.readline()))
    counting = asyncio.create_task(shop.read_arrivals())
    yield shop
    running.kill()
    await running.wait()
    await counting


@pytest.mark.parametrize("is_busy", [False, True], ids=["alone", "beside-another-answer"])
@pytest.mark.parametrize("manner", ["fin", "end", "rst"])
async def test_an_http2_post_whose_connection_ends_unanswered_arrives_once(
    page: Page, relay: Relay, http2_shop: Http2Shop, manner: str, is_busy: bool
) -> None:
    origin = ("127.0.0.1", http2_shop.port)
    for number in range(_ROUND_COUNT):
        await page.goto(http2_shop.url)
        assert await page.evaluate("performance.getEntriesByType('navigation')[0].nextHopProtocol") == "h2"
        if is_busy:
            await page.evaluate("n => fetch('/news/' + n).then(a => a.body.getReader().read())", number)
        path = f"/{manner}/{number}"
        if number == 0:
            assert await post(page, relay, origin, path, guarded=False) == "200 ok"
            assert http2_shop.arrivals[path] == 2
        else:
            assert await post(page, relay, origin, path) == "failed"
            assert http2_shop.arrivals[path] == 1


async def test_an_http2_post_is_not_sent_again_when_the_server_stalls(
    page: Page, relay: Relay, http2_shop: Http2Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Chromium gives an HTTP/2 connection up when its ping is not answered, and sends again on another."""
    monkeypatch.setattr(relay_module, "_BARRED_WAIT_S", 0.2)
    origin = ("127.0.0.1", http2_shop.port)
    await page.goto(http2_shop.url)
    await asyncio.sleep(12)  # Chromium's own clock: it pings a connection that has been silent this long
    http2_shop.running.send_signal(signal.SIGSTOP)
    outcome = await post(page, relay, origin, "/stalled/1")
    http2_shop.running.send_signal(signal.SIGCONT)
    assert outcome == "failed"
    assert await post(page, relay, origin, "/after/1") == "200 ok"
    assert http2_shop.arrivals["/stalled/1"] == 1
