"""What comes back, or does not: redirects that repeat, rejections, errors, dropped and refused connections."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import Error as PlaywrightError
from playwright.sync_api import expect

from browsermw import BrowsermwError, OutcomeUnknown
from tests.browser_kit import Journal, StaleServer, closed_port

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

    from browsermw import Run
    from tests.shop_site import Shop

FETCH = "url => fetch(url, {method: 'POST', mode: 'no-cors', body: 'item=x'}).then(() => 'answered', () => 'failed')"


@pytest.mark.parametrize("status", [307, 308])
@pytest.mark.parametrize("host", ["same host", "other host"])
def test_a_redirect_that_repeats_the_form_is_one_order_and_two_effects_of_one_action(
    page: Page, shop: Shop, journal: Journal, status: int, host: str
) -> None:
    other = shop.url.replace("127.0.0.1", "localhost")
    target = "/order-page" if host == "same host" else f"{other}/order-page"
    page.goto(f"{shop.url}/form?action=/order-{status}%3Fto={target}")
    page.click("#send")
    expect(page.locator("#reference")).to_have_text("ORD-0001")
    assert (shop.count(f"/order-{status}"), shop.count("/order-page")) == (1, 1)
    first, second = journal.settled(count=2)
    assert (first.status, second.status) == (status, 200)
    assert first.action_seq == second.action_seq
    assert journal.phases() == ["OBSERVED", "OBSERVED"]


def test_a_redirect_of_what_a_page_sends_by_itself_stays_in_one_action(
    page: Page, shop: Shop, journal: Journal
) -> None:
    page.goto(f"{shop.url}/checkout")
    page.evaluate(f"setTimeout(() => ({FETCH})('/order-307?to=/api/checkout'), 300)")
    shop.wait_for("/api/checkout")
    first, second = journal.settled(count=2)
    assert (first.status, second.status) == (307, 201)
    assert first.action_seq == second.action_seq
    assert journal.action_of(first).kind == "page"


@pytest.mark.parametrize(("kind", "status", "outcome"), [("500", 500, "ambiguous"), ("reject", 422, "rejected")])
def test_an_answer_that_is_no_yes_is_recorded_for_what_it_is(
    page: Page, shop: Shop, journal: Journal, kind: str, status: int, outcome: str
) -> None:
    page.goto(f"{shop.url}/form?action=/order-{kind}")
    page.click("#send")
    [effect] = journal.settled()
    assert (effect.status, str(effect.outcome), str(effect.phase)) == (status, outcome, "OBSERVED")
    assert shop.count(f"/order-{kind}") == 1


@pytest.mark.parametrize("kind", ["drop", "close"])
def test_a_form_whose_connection_breaks_after_the_commit_is_in_doubt_and_sent_once(
    page: Page, shop: Shop, journal: Journal, kind: str
) -> None:
    page.goto(f"{shop.url}/form?action=/order-{kind}")
    with suppress(PlaywrightError, BrowsermwError):  # Playwright may report the failed navigation, or not wait for it
        page.click("#send")
    [effect] = journal.settled()
    assert (str(effect.phase), str(effect.outcome)) == ("NEEDS_REVIEW", "unknown")
    assert shop.count(f"/order-{kind}") == 1
    assert len(shop.orders()) == 1


@pytest.mark.parametrize("kind", ["drop", "close"])
def test_a_fetch_whose_connection_breaks_after_the_commit_is_in_doubt_and_sent_once(
    page: Page, shop: Shop, journal: Journal, kind: str
) -> None:
    page.goto(f"{shop.url}/checkout")
    page.click(f"#pay-{kind}")
    expect(page.locator("#result")).to_contain_text("failed")
    [effect] = journal.settled()
    assert (str(effect.phase), str(effect.outcome)) == ("NEEDS_REVIEW", "unknown")
    assert shop.count(f"/api/{kind}") == 1


@pytest.mark.parametrize("reset", [True, False], ids=["reset", "closed"])
def test_chromium_does_not_send_again_on_a_stale_connection(page: Page, journal: Journal, *, reset: bool) -> None:
    server = StaleServer(reset=reset)
    page.goto(server.url)
    assert page.evaluate(FETCH, f"{server.url}/pay") == "failed"
    assert server.count("POST") == 1
    assert journal.phases() == ["NEEDS_REVIEW"]
    server.close()


def test_what_reached_nobody_is_not_sent_and_may_be_sent_again(page: Page, shop: Shop, journal: Journal) -> None:
    page.goto(f"{shop.url}/checkout")
    with closed_port() as port:
        for _ in range(2):
            assert page.evaluate(FETCH, f"http://127.0.0.1:{port}/pay") == "failed"
    assert journal.phases() == ["ABANDONED", "ABANDONED"]
    assert {str(effect.outcome) for effect in journal.effects()} == {"not_sent"}
    page.click("#pay")
    expect(page.locator("#result")).to_contain_text("201")


def test_a_form_that_reached_nobody_is_not_sent(page: Page, shop: Shop, journal: Journal) -> None:
    with closed_port() as port:
        page.goto(f"{shop.url}/form?action=http://127.0.0.1:{port}/order")
        with suppress(PlaywrightError):
            page.click("#send")
        journal.settled()
    assert journal.phases() == ["ABANDONED"]


def test_a_name_that_does_not_resolve_is_not_sent(page: Page, shop: Shop, journal: Journal) -> None:
    page.goto(f"{shop.url}/checkout")
    for _ in range(2):
        assert page.evaluate(FETCH, "http://shop.invalid/pay") == "failed"
    assert journal.phases() == ["ABANDONED", "ABANDONED"]


def test_what_met_a_certificate_that_nobody_vouches_for_is_not_sent(
    page: Page, shop: Shop, tls_shop: Shop, journal: Journal
) -> None:
    page.goto(f"{shop.url}/form?action={tls_shop.url}/order")
    for _ in range(2):
        assert page.evaluate(FETCH, f"{tls_shop.url}/api/checkout") == "failed"
    with pytest.raises(PlaywrightError) as refused:
        page.context.request.post(f"{tls_shop.url}/api/checkout", data={"item": "book"})
    assert not isinstance(refused.value, OutcomeUnknown)
    with suppress(PlaywrightError):
        page.click("#send")
    effects = journal.settled(count=4)
    assert [(str(effect.phase), str(effect.outcome)) for effect in effects] == [("ABANDONED", "not_sent")] * 4
    assert tls_shop.count(None, None) == 0


@pytest.mark.parametrize("sent", ["by the page", "by the driver"])
def test_what_broke_after_a_tls_server_had_it_is_in_doubt(
    browser: Browser, run: Run, tls_shop: Shop, journal: Journal, sent: str
) -> None:
    context = run.wrap(browser.new_context(ignore_https_errors=True))
    page = context.new_page()
    page.goto(f"{tls_shop.url}/checkout")
    if sent == "by the page":
        assert page.evaluate(FETCH, f"{tls_shop.url}/api/drop") == "failed"
    else:
        with pytest.raises(OutcomeUnknown):
            context.request.post(f"{tls_shop.url}/api/drop", data={"item": "book"})
    [effect] = journal.settled()
    assert (str(effect.phase), str(effect.outcome)) == ("NEEDS_REVIEW", "unknown")
    assert tls_shop.count("/api/drop") == 1
    context.close()
