"""A click's whole walk: admitted, planned, held, sent once, answered, observed; and what its checkpoints say."""

from __future__ import annotations

from typing import TYPE_CHECKING

from playwright.sync_api import Page, expect

from browsermw import Policy
from browsermw.policy import Identity
from tests.browser_kit import Journal

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager
    from pathlib import Path

    from playwright.sync_api import Browser

    from browsermw import Runtime
    from tests.shop_site import Shop


def test_a_click_without_effect_is_observed_and_sends_nothing(page: Page, shop: Shop, journal: Journal) -> None:
    page.goto(f"{shop.url}/checkout")
    page.click("#noop")
    assert page.inner_text("#noop") == "noop done"
    click = journal.actions()[-1]
    assert (click.kind, click.method, click.target, str(click.phase)) == ("click", "Page.click", "#noop", "OBSERVED")
    assert click.effects == ()
    assert click.wire == "sealed"
    assert shop.count(None) == 0


def test_a_form_is_sent_once_and_its_redirect_is_followed(page: Page, shop: Shop, journal: Journal) -> None:
    page.goto(f"{shop.url}/shop")
    page.click("#send")
    assert isinstance(page, Page)
    expect(page.locator("#reference")).to_have_text("ORD-0001")
    assert page.url == f"{shop.url}/orders/ORD-0001"
    [arrival] = shop.arrivals("/order", "POST")
    [effect] = journal.effects()
    assert (effect.method, effect.url, effect.channel) == ("POST", f"{shop.url}/order", "Document")
    assert (effect.status, str(effect.outcome), str(effect.phase)) == (303, "accepted", "OBSERVED")
    assert effect.external_request_id == f"x-request-id=req-{arrival['n']}"
    assert effect.location == "/orders/ORD-0001"
    assert effect.dispatched_at.isoformat() < arrival["arrived_at"]
    assert str(journal.action_of(effect).phase) == "OBSERVED"


def test_a_fetch_is_sent_once_and_acknowledged_before_the_page_has_the_answer(
    page: Page, shop: Shop, journal: Journal
) -> None:
    page.goto(f"{shop.url}/checkout")
    page.click("#pay")
    page.wait_for_function("document.querySelector('#result').textContent.startsWith('201')")
    [effect] = journal.effects()
    assert str(effect.phase) in {"ACKNOWLEDGED", "OBSERVED"}
    assert effect.status == 201
    assert shop.count("/api/checkout") == 1


def test_checkpoints_stand_before_and_after_each_action(page: Page, shop: Shop, journal: Journal) -> None:
    page.goto(f"{shop.url}/shop")
    page.click("#send")
    page.click("h1")
    points = journal.checkpoints()
    assert [(point.action_seq, point.moment) for point in points] == [
        *((1, "before"), (1, "after")),
        *((2, "before"), (2, "after")),
        *((3, "before"), (3, "after")),
    ]
    form, order = f"{shop.url}/shop", f"{shop.url}/orders/ORD-0001"
    assert [point.url for point in points[1:]] == [form, form, order, order, order]
    hashes = [point.dom_hash for point in points[1:]]
    assert None not in hashes
    assert hashes[0] == hashes[1] != hashes[2] == hashes[3] == hashes[4]
    assert [point.last_action_seq for point in points] == [None, None, None, 2, 2, 2]
    [arrival] = shop.arrivals("/order", "POST")
    assert [point.external_request_id for point in points[2:4]] == [None, f"x-request-id=req-{arrival['n']}"]
    assert len({point.digest for point in points}) == len(points)
    assert [point.at for point in points] == sorted(point.at for point in points)


def test_the_same_page_loaded_again_has_the_same_hash_and_a_typed_word_another(
    page: Page, shop: Shop, journal: Journal
) -> None:
    page.goto(f"{shop.url}/shop")
    page.reload()
    page.fill("#item", "another book")
    page.click("h1")
    after = [point.dom_hash for point in journal.checkpoints() if point.moment == "after"]
    assert after[0] == after[1]
    assert after[2] not in {None, after[1]}


def ledger_bytes(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())


def test_an_identity_by_cookie_is_a_keyed_hash_and_never_the_cookie(
    opening: Callable[..., AbstractContextManager[tuple[Runtime, Browser]]], shop: Shop, tmp_path: Path
) -> None:
    with opening(Policy(identity=Identity(cookie="session"))) as (mw, browser), mw.run("r") as run:
        page = run.wrap(browser.new_context()).new_page()
        page.goto(f"{shop.url}/shop")
        page.goto(f"{shop.url}/login?user=kx81-cookie-of-ann")
        page.goto(f"{shop.url}/login?user=kx81-cookie-of-bob")
        page.goto(f"{shop.url}/login?user=kx81-cookie-of-ann")
        page.goto(f"{shop.url}/logout")
        after = [point for point in Journal(mw, "r").checkpoints() if point.moment == "after"]
        held = ledger_bytes(tmp_path)
    assert [point.identity_state for point in after] == [*["signed_in"] * 4, "signed_out"]
    first, ann, bob, ann_again, nobody = (point.identity_hash for point in after)
    assert ann == ann_again
    assert len({first, ann, bob, nobody}) == 4
    assert ann is not None
    assert ann.startswith("id1:")
    assert nobody is None
    assert b"kx81-cookie" not in held + ledger_bytes(tmp_path)
    assert ann.encode() in held


def test_an_identity_by_selector_is_a_keyed_hash_and_a_masked_hint(
    opening: Callable[..., AbstractContextManager[tuple[Runtime, Browser]]], shop: Shop, tmp_path: Path
) -> None:
    with opening(Policy(identity=Identity(selector="#user"))) as (mw, browser), mw.run("r") as run:
        page = run.wrap(browser.new_context()).new_page()
        page.goto(f"{shop.url}/login?user=annabel.lee")
        page.goto(f"{shop.url}/login?user=roderick.usher")
        after = [point for point in Journal(mw, "r").checkpoints() if point.moment == "after"]
        held = ledger_bytes(tmp_path)
    assert [point.identity_state for point in after] == ["signed_in", "signed_in"]
    assert after[0].identity_hash != after[1].identity_hash
    assert after[0].identity_hint == "an…e"
    assert b"annabel.lee" not in held + ledger_bytes(tmp_path)
