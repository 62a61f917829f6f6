"""Client certificates: Playwright puts a proxy of its own before the relay, and all else stays as it is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from playwright.sync_api import expect

from browsermw import OutcomeUnknown, WireTooWeak
from browsermw.hooks.launched import debugging_port_of
from tests.browser_kit import Journal, make_certificates, make_client_certificate
from tests.shop_site import Shop

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager
    from pathlib import Path

    from playwright.sync_api import Browser, Playwright

    from browsermw import Run, Runtime
    from tests.browser_sync.sides import Both, Side

POST = """path => fetch(path, {method: "POST", body: '{"item":"book"}'}).then(
    async answer => answer.status, error => error.message)"""


@pytest.fixture(scope="module")
def _folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("client")


@pytest.fixture(scope="module")
def strict_shop(_folder: Path) -> Iterator[Shop]:
    """A shop that asks for a client's certificate."""
    pair, ca = make_certificates(_folder)
    _, client_ca = make_client_certificate(_folder, "agent-7")
    with Shop.start(pair, ca=ca, client_ca=client_ca) as started:
        yield started


@pytest.fixture
def known(strict_shop: Shop, _folder: Path) -> dict[str, Any]:
    """Options of a context that shows the certificate to the shop."""
    strict_shop.reset()
    pair = str(_folder / "client.pem")
    shown = {"origin": strict_shop.url, "certPath": pair, "keyPath": pair}
    return {"client_certificates": [shown], "ignore_https_errors": True}


def test_the_certificate_is_shown_and_the_order_recorded(both: Both, strict_shop: Shop, known: dict[str, Any]) -> None:
    def work(side: Side) -> list[Any]:
        context = side.context(**known)
        page = context.new_page()
        page.goto(f"{strict_shop.url}/shop")
        page.click("#send")
        called = context.request.post(f"{strict_shop.url}/api/checkout", data={"item": "pear"}).status
        return [page.inner_text("#reference"), called]

    seen, effects = both(strict_shop, work, posts=2)
    assert seen == ["ORD-0001", 201]
    assert [arrival["client_certificate"] for arrival in strict_shop.arrivals(None, "POST")] == ["agent-7"] * 2
    assert [effect.channel for effect in effects] == ["Document", "api"]


def test_all_of_it_passes_the_relay(
    opening: Callable[..., AbstractContextManager[tuple[Runtime, Browser]]], strict_shop: Shop, known: dict[str, Any]
) -> None:
    with opening() as (mw, browser), mw.run("r") as run:
        context = run.wrap(browser.new_context(**known))
        page = context.new_page()
        page.goto(f"{strict_shop.url}/checkout")
        [guarded] = mw.browsers_for(debugging_port_of(context))
        relay = guarded._relay
        assert relay is not None
        before = relay.forwarded_byte_count
        assert page.evaluate(POST, "/api/checkout") == 201
        assert relay.forwarded_byte_count > before

        async def shut() -> None:
            relay.shut("as if the agent had been killed")

        mw.submit(shut()).result()
        page.evaluate(POST, "/api/slow?ms=1")
        assert strict_shop.count("/api/slow") == 0
        context.close()


@pytest.mark.parametrize("kind", ["drop", "close"])
def test_a_connection_that_breaks_brings_the_order_once(
    run: Run, journal: Journal, browser: Browser, strict_shop: Shop, known: dict[str, Any], kind: str
) -> None:
    context = run.wrap(browser.new_context(**known))
    page = context.new_page()
    page.goto(f"{strict_shop.url}/checkout")
    page.click(f"#pay-{kind}")
    expect(page.locator("#result")).not_to_have_text("sending")
    assert strict_shop.count(f"/api/{kind}") == 1
    assert journal.phases() == ["NEEDS_REVIEW"]
    context.close()


def test_a_call_that_breaks_is_in_doubt(run: Run, browser: Browser, strict_shop: Shop, known: dict[str, Any]) -> None:
    context = run.wrap(browser.new_context(**known))
    with pytest.raises(OutcomeUnknown):
        context.request.post(f"{strict_shop.url}/api/drop", data={"item": "book"})
    assert strict_shop.count("/api/drop") == 1
    context.close()


def test_a_persistent_context_with_them_is_refused_by_name(
    playwright: Playwright, mw: Runtime, run: Run, strict_shop: Shop, known: dict[str, Any], tmp_path: Path
) -> None:
    context = playwright.chromium.launch_persistent_context(tmp_path, **mw.launch_options(headless=True), **known)
    with pytest.raises(WireTooWeak, match=r"client_certificates.*browser\.new_context\(\)"):
        run.wrap(context)
    context.close()
    assert strict_shop.count(None, None) == 0
