"""Digests: the same for ever for the same facts, another one for any other fact."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from browsermw.protocol.digests import GENESIS, digest

if TYPE_CHECKING:
    from collections.abc import Mapping

FACTS: Mapping[str, str | int | None] = {
    "run_id": "invoice-8472",
    "seq": 3,
    "url": "https://billing.example/invoices/8472",
    "dom_hash": None,
    "identity_hint": "a…e@billing.example",
    "at": "2026-01-02T03:04:05.678901+00:00",
}
some_facts = st.dictionaries(st.text(max_size=8), st.one_of(st.none(), st.integers(), st.text(max_size=20)), max_size=6)


def test_the_digest_of_given_facts_is_the_same_in_every_version() -> None:
    """A changed value here means that every ledger in the field reads as damaged."""
    assert digest(GENESIS, FACTS) == "5f5d2b7123fd31d29c5d75c6d0909fa3a47725c16a482d02e47322831b2d589a"


def test_the_order_of_the_facts_does_not_count() -> None:
    assert digest(GENESIS, dict(reversed(list(FACTS.items())))) == digest(GENESIS, FACTS)


@pytest.mark.parametrize("name", FACTS)
@pytest.mark.parametrize("value", ["", "0", 0, 4, None, "None", "null"])
def test_any_changed_fact_changes_the_digest(name: str, value: str | int | None) -> None:
    changed = {**FACTS, name: value}
    assert (digest(GENESIS, changed) == digest(GENESIS, FACTS)) == (changed == FACTS)


@pytest.mark.parametrize("name", FACTS)
def test_a_missing_fact_changes_the_digest(name: str) -> None:
    fewer = {key: value for key, value in FACTS.items() if key != name}
    assert digest(GENESIS, fewer) != digest(GENESIS, FACTS)


def test_the_digest_before_counts() -> None:
    first = digest(GENESIS, FACTS)
    assert digest(first, FACTS) != first


def test_a_fact_named_previous_does_not_hide_the_digest_before() -> None:
    facts: dict[str, str | int | None] = {"previous": "x"}
    assert digest(GENESIS, facts) != digest("1" * 64, facts)


@given(some_facts, some_facts)
def test_digests_are_equal_exactly_when_the_facts_are(
    left: dict[str, str | int | None], right: dict[str, str | int | None]
) -> None:
    assert (digest(GENESIS, left) == digest(GENESIS, right)) == (left == right)


@given(st.text(st.characters(), max_size=30))
def test_any_text_has_a_digest_lone_surrogates_too(text: str) -> None:
    found = digest(GENESIS, {"target": text, "lone": "\ud800"})
    assert len(found) == len(GENESIS)
    assert set(found) <= set("0123456789abcdef")
