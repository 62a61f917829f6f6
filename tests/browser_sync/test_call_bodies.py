"""A call that was cut short is known again by its body, however the body was given."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from playwright.sync_api import FormData

from browsermw import InFlightDuplicate, OutcomeUnknown, Quarantined

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import BrowserContext, Page

    from tests.browser_kit import Journal
    from tests.shop_site import Shop

SHORT_MS = 500
JSON = {"Content-Type": "application/json"}


def form(*fields: tuple[str, Any]) -> FormData:
    made = FormData()
    for name, value in fields:
        made.append(name, value)
    return made


def upload(content: bytes) -> Any:
    return {"name": "order.csv", "mimeType": "text/csv", "buffer": content}


SAME_AND_OTHER: dict[str, tuple[dict[str, Any], dict[str, Any], dict[str, Any]]] = {
    "dict": ({"data": {"a": 1, "b": 2}}, {"data": {"b": 2, "a": 1}}, {"data": {"a": 1, "b": 3}}),
    "text": ({"data": "book"}, {"data": "book"}, {"data": "books"}),
    "JSON in words": (
        {"data": '{"a": 1, "b": 2}', "headers": JSON},
        {"data": '{"b":2,"a":1}', "headers": JSON},
        {"data": '{"a": 2}', "headers": JSON},
    ),
    "JSON in bytes": ({"data": b'{"a": 1}'}, {"data": b'{"a":1}'}, {"data": b'{"a": 2}'}),
    "form": ({"form": {"a": 1, "b": True}}, {"form": {"b": True, "a": 1}}, {"form": {"a": 1, "b": False}}),
    "FormData": (
        {"form": form(("a", "1"), ("a", "2"))},
        {"form": form(("a", "1"), ("a", "2"))},
        {"form": form(("a", "2"), ("a", "1"))},
    ),
    "multipart": (
        {"multipart": {"a": "1", "file": upload(b"x")}},
        {"multipart": {"file": upload(b"x"), "a": "1"}},
        {"multipart": {"a": "1", "file": upload(b"y")}},
    ),
    "multipart FormData": (
        {"multipart": form(("a", "1"), ("csrf_token", "p"), ("file", upload(b"x")))},
        {"multipart": form(("a", "1"), ("csrf_token", "q"), ("file", upload(b"x")))},
        {"multipart": form(("a", "2"), ("csrf_token", "p"), ("file", upload(b"x")))},
    ),
    "nothing": ({}, {}, {"data": "x"}),
}


@pytest.mark.parametrize("kind", SAME_AND_OTHER)
def test_the_same_body_is_a_duplicate_and_another_is_not(
    context: BrowserContext, shop: Shop, journal: Journal, kind: str
) -> None:
    first, same, other = SAME_AND_OTHER[kind]
    url = f"{shop.url}/api/never"
    with pytest.raises(OutcomeUnknown):
        context.request.post(url, **first, timeout=SHORT_MS)
    with pytest.raises(InFlightDuplicate):
        context.request.post(url, **same, timeout=SHORT_MS)
    with pytest.raises(Quarantined):
        context.request.post(url, **other, timeout=SHORT_MS)
    assert shop.count("/api/never") == 1
    assert journal.phases() == ["NEEDS_REVIEW", "REFUSED", "REFUSED"]


@pytest.mark.parametrize("what", ["bytes that are no JSON", "a file that the driver reads"])
def test_a_body_that_nobody_can_read_is_no_duplicate_and_still_refused(
    context: BrowserContext, shop: Shop, what: str, tmp_path: Path
) -> None:
    path = tmp_path / "order.csv"
    path.write_bytes(b"x")
    given: dict[str, Any] = {"multipart": form(("file", path))} if "file" in what else {"data": b"\xff\x00"}
    with pytest.raises(OutcomeUnknown):
        context.request.post(f"{shop.url}/api/never", **given, timeout=SHORT_MS)
    with pytest.raises(Quarantined):
        context.request.post(f"{shop.url}/api/never", **given, timeout=SHORT_MS)
    assert shop.count("/api/never") == 1


@pytest.mark.parametrize(
    "given",
    [{}, {"headers": {}}, {"data": "mine"}, {"form": {"item": "mine"}}],
    ids=["as it is", "bare", "data", "form"],
)
def test_a_request_sent_on_goes_by_the_body_that_it_is_given(
    page: Page, shop: Shop, journal: Journal, given: dict[str, Any]
) -> None:
    page.goto(f"{shop.url}/checkout")
    with page.expect_request("**/api/checkout") as seen:
        page.click("#pay")
    page.wait_for_function("document.querySelector('#result').textContent.startsWith('201')")
    for _ in range(2):
        page.context.request.fetch(seen.value, **given)
    first, *again = [effect.fingerprint for effect in journal.settled(count=3)]
    assert again[0] == again[1]
    assert (again[0] == first) is (given in ({}, {"headers": {}}))
    arrived = shop.arrivals("/api/checkout", "POST")
    assert (arrived[1]["body"] == arrived[0]["body"]) is (given in ({}, {"headers": {}}))
