"""Playwright's context and launch options behind the gate: as without us, and each POST on record once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from playwright.sync_api import Error as PlaywrightError

import browsermw
from browsermw import Policy
from browsermw.loop_thread import LoopThread
from browsermw.wire.launch import free_port
from tests.browser_sync.sides import Both
from tests.wire.proxies import HttpProxy

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from playwright.sync_api import Browser, Page, Playwright

    from tests.browser_sync.sides import Side
    from tests.shop_site import Shop

POST = """path => fetch(path, {method: "POST", body: '{"item":"book"}'}).then(
    async answer => [answer.status, await answer.text()], error => error.message)"""
KNOWN = {"username": "agent-7", "password": "s3cret"}


def order(page: Page, address: str) -> str:
    """Send the form on a page; the reference that comes back."""
    page.goto(address)
    page.click("#send")
    return page.inner_text("#reference")


def test_a_state_is_stored_and_taken_up_by_a_new_context(both: Both, shop: Shop) -> None:
    def work(side: Side) -> list[Any]:
        first = side.context()
        page = first.new_page()
        page.goto(f"{shop.url}/login?user=alice")
        page.evaluate("localStorage.setItem('cart', 'book')")
        kept = first.storage_state(path=side.folder / "state.json")
        first.close()
        page = side.context(storage_state=side.folder / "state.json").new_page()
        reference = order(page, f"{shop.url}/shop")
        return [kept, reference, page.inner_text("#user"), page.evaluate("localStorage.getItem('cart')")]

    seen, _ = both(shop, work)
    assert seen[1:] == ["ORD-0001", "alice", "book"]
    assert [cookie["name"] for cookie in seen[0]["cookies"]] == ["session"]


@pytest.mark.parametrize("level", ["page", "context", "option"])
def test_extra_headers_are_sent(both: Both, shop: Shop, level: str) -> None:
    extra = {"X-Agent": "agent-7"}
    options: dict[str, Any] = {"extra_http_headers": extra} if level == "option" else {}

    def work(side: Side) -> str:
        context = side.context(**options)
        page = context.new_page()
        if level != "option":
            (page if level == "page" else context).set_extra_http_headers(extra)
        return order(page, f"{shop.url}/shop")

    both(shop, work)
    assert [arrival["headers"]["x-agent"] for arrival in shop.arrivals("/order")] == ["agent-7"]


def test_what_is_sent_offline_never_left_and_may_be_sent_online(both: Both, shop: Shop) -> None:
    def work(side: Side) -> list[Any]:
        context = side.context()
        page = context.new_page()
        page.goto(f"{shop.url}/checkout")
        context.set_offline(True)
        seen: list[Any] = [page.evaluate(POST, "/api/checkout")]
        with pytest.raises(PlaywrightError, match="ERR_INTERNET_DISCONNECTED"):
            page.goto(f"{shop.url}/checkout?again")
        context.set_offline(False)
        page.goto(f"{shop.url}/checkout")
        return [*seen, page.evaluate(POST, "/api/checkout")[0]]

    seen, _ = both(shop, work)
    assert seen == ["Failed to fetch", 201]
    assert both.journal.phases() == ["ABANDONED", "OBSERVED"]


def test_a_form_behind_basic_authentication(both: Both, shop: Shop) -> None:
    def work(side: Side) -> str:
        page = side.context(http_credentials=KNOWN).new_page()
        return order(page, f"{shop.url}/private/form?action=/private/order")

    assert both(shop, work)[0] == "ORD-0001"


def test_wrong_credentials_are_refused_by_the_application(both: Both, shop: Shop) -> None:
    def work(side: Side) -> Any:
        page = side.context(http_credentials={**KNOWN, "password": "wrong"}).new_page()
        page.goto(f"{shop.url}/checkout")
        return page.evaluate(POST, "/private/api/checkout")

    seen, [effect] = both(shop, work, posts=2, records=1)
    assert seen == [401, "who are you?"]
    assert (effect.status, effect.outcome) == (401, "rejected")


def test_a_post_that_is_asked_for_credentials_is_sent_again_with_them(both: Both, shop: Shop) -> None:
    """The browser does that inside one request, which no interception sees; the application has refused the first."""

    def work(side: Side) -> Any:
        page = side.context(http_credentials=KNOWN).new_page()
        page.goto(f"{shop.url}/checkout")
        return page.evaluate(POST, "/private/api/checkout")

    seen, [effect] = both(shop, work, posts=2, records=1)
    assert (seen[0], effect.status) == (201, 201)
    assert len(shop.orders()) == 1


def test_a_certificate_that_nobody_vouches_for(both: Both, tls_shop: Shop) -> None:
    def work(side: Side) -> list[Any]:
        with pytest.raises(PlaywrightError, match="ERR_CERT_AUTHORITY_INVALID"):
            side.context().new_page().goto(f"{tls_shop.url}/shop")
        return [order(side.context(ignore_https_errors=True).new_page(), f"{tls_shop.url}/shop")]

    assert both(tls_shop, work)[0] == ["ORD-0001"]


def test_a_persistent_context_keeps_what_it_had(both: Both, shop: Shop, playwright: Playwright) -> None:
    def work(side: Side) -> list[Any]:
        seen = []
        for address in ("/login?user=alice", "/shop"):
            options = side.launch_options(extra_http_headers={"X-Agent": "agent-7"})
            made = playwright.chromium.launch_persistent_context(side.folder / "profile", **options)
            context = side.taken(made)
            page = context.pages[0]
            page.goto(shop.url + address)
            if address == "/shop":
                page.click("#send")
                seen.append(page.inner_text("#reference"))
            else:
                page.evaluate("document.cookie = 'session=alice; max-age=1000; path=/'")
                page.evaluate("localStorage.setItem('cart', 'book')")
            seen += [page.inner_text("#user"), page.evaluate("localStorage.getItem('cart')")]
            context.close()
        return seen

    assert both(shop, work)[0] == ["alice", "book", "ORD-0001", "alice", "book"]


@pytest.fixture
def proxy() -> Iterator[HttpProxy]:
    thread = LoopThread("proxy", 1)
    made = HttpProxy(asks=False)  # to answer it, Playwright would switch the bare browser's cache off
    thread.submit(made.__aenter__()).result()
    yield made
    thread.submit(made.__aexit__()).result()
    thread.close()


def test_an_upstream_proxy_carries_all(both: Both, tls_shop: Shop, proxy: HttpProxy) -> None:
    def work(side: Side) -> list[Any]:
        proxy.asked.clear()
        browser = side.launch(proxy={"server": f"http://127.0.0.1:{proxy.port}"})
        context = side.context(browser, ignore_https_errors=True)
        reference = order(context.new_page(), f"{tls_shop.url}/shop")
        return [reference, ("127.0.0.1", int(tls_shop.url.rpartition(":")[2])) in proxy.asked]

    assert both(tls_shop, work)[0] == ["ORD-0001", True]


def test_a_browser_of_somebody_else_over_cdp(
    playwright: Playwright, bare_browser: Browser, shop: Shop, tmp_path: Path
) -> None:
    with (
        browsermw.open(
            f"sqlite:///{tmp_path / 'agent.db'}", runtime="agent-7", policy=Policy(minimum_wire="attached")
        ) as mw,
        mw.run("r") as run,
    ):
        both = Both(playwright, bare_browser, bare_browser, (mw, run), tmp_path)

        def work(side: Side) -> list[Any]:
            port = free_port()
            foreign = side.launch_bare(args=[f"--remote-debugging-port={port}"])
            if side.run is not None:
                mw.attach(f"http://127.0.0.1:{port}")
            browser = playwright.chromium.connect_over_cdp(f"http://127.0.0.1:{port}")
            page = side.taken(browser.contexts[0]).new_page()
            seen = [order(page, f"{shop.url}/shop"), len(foreign.contexts)]
            page.close()
            browser.close()
            return seen

        _, [effect] = both(shop, work)
        assert both.journal.action_of(effect).wire == "attached"


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_a_streamed_answer_comes_chunk_by_chunk(both: Both, shop: Shop, tls_shop: Shop, scheme: str) -> None:
    asked = shop if scheme == "http" else tls_shop

    def work(side: Side) -> list[str]:
        page = side.context(ignore_https_errors=True).new_page()
        page.goto(f"{asked.url}/checkout")
        page.evaluate("""async () => {
            const answer = await fetch("/api/stream?chunks=4", {method: "POST", body: "x"});
            window.reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
        }""")
        chunks = []
        for _ in range(4):
            assert asked.send_chunk("/api/stream") == 1
            chunks.append(page.evaluate("reader.read().then(it => it.value)"))
        return [*chunks, page.evaluate("reader.read().then(it => it.done)")]

    seen, _ = both(asked, work)
    assert seen == ["chunk 0\n", "chunk 1\n", "chunk 2\n", "chunk 3\n", True]
