"""A page against a checkpoint: nothing that was not seen counts as the same."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from browsermw.ledger.contract import Sighting
from browsermw.models import Checkpoint
from browsermw.verifying import compare

SEEN = {
    "url": "https://shop.example/orders/7",
    "dom_hash": "dom1:" + "a" * 32,
    "dom_note": None,
    "identity_state": "signed_in",
    "identity_hash": "id1:" + "b" * 32,
    "identity_hint": "a…@e…",
}
SIGNED_OUT = {"identity_state": "signed_out", "identity_hash": None, "identity_hint": None}
UNDECLARED = {**SIGNED_OUT, "identity_state": "undeclared"}
UNREADABLE = {**SIGNED_OUT, "identity_state": "unreadable"}


def checkpoint(**changed: object) -> Checkpoint:
    beside = {"run_id": "invoice-8472", "seq": 4, "action_seq": 2, "moment": "after", "last_action_seq": 2}
    beside |= {"external_request_id": None, "at": datetime(2026, 12, 1, tzinfo=UTC), "digest": "x"}
    return Checkpoint.model_validate({**SEEN, **beside, **changed})


def now(**changed: object) -> Sighting:
    return Sighting(**{**SEEN, **changed})  # type: ignore[arg-type]


def test_the_same_page_is_the_same() -> None:
    found = compare(checkpoint(), now())
    assert (found.same_url, found.identity, found.dom, found.differences) == (True, "same", "same", ())
    assert found.is_same
    assert str(found) == "as at checkpoint 4 of run invoice-8472"


@pytest.mark.parametrize(
    ("then", "changed", "expected"),
    [
        ({}, {"identity_hash": "id1:" + "c" * 32, "identity_hint": "b…@e…"}, "another"),
        ({}, SIGNED_OUT, "signed_out"),
        (SIGNED_OUT, {}, "signed_in"),
        (SIGNED_OUT, SIGNED_OUT, "same"),
        ({}, UNREADABLE, "unreadable"),
        (UNREADABLE, {}, "unreadable"),
        (UNREADABLE, UNREADABLE, "unreadable"),
        (UNDECLARED, UNDECLARED, "undeclared"),
        (UNDECLARED, {}, "undeclared"),
        ({}, UNDECLARED, "undeclared"),
        (UNDECLARED, UNREADABLE, "undeclared"),
    ],
)
def test_who_is_signed_in_is_told_apart(then: dict[str, object], changed: dict[str, object], expected: str) -> None:
    found = compare(checkpoint(**then), now(**changed))
    assert found.identity == expected
    assert found.is_same == (expected in {"same", "undeclared"})


@pytest.mark.parametrize(
    ("then", "changed", "expected"),
    [
        ({}, {"dom_hash": "dom1:" + "f" * 32}, "changed"),
        ({"dom_hash": None, "dom_note": "crashed"}, {}, "unknown"),
        ({}, {"dom_hash": None, "dom_note": "no answer within 2 s"}, "unknown"),
        ({"dom_hash": None}, {"dom_hash": None}, "unknown"),
    ],
)
def test_what_the_page_shows_is_told_apart(then: dict[str, object], changed: dict[str, object], expected: str) -> None:
    found = compare(checkpoint(**then), now(**changed))
    assert (found.dom, found.is_same) == (expected, False)


def test_another_url_is_named_and_all_differences_are_listed() -> None:
    found = compare(
        checkpoint(), now(url="https://shop.example/login", dom_hash=None, dom_note="crashed", **SIGNED_OUT)
    )
    assert str(found) == (
        "not as at checkpoint 4 of run invoice-8472: "
        "the page is https://shop.example/login, it was https://shop.example/orders/7; "
        "nobody is signed in, the run's user (a…@e…) was; the page's state cannot be compared: crashed"
    )


def test_it_can_be_stored_and_read_again() -> None:
    found = compare(checkpoint(), now(url=""))
    assert type(found).model_validate_json(found.model_dump_json()) == found
    assert found.differences == ("the page is nowhere, it was https://shop.example/orders/7",)
