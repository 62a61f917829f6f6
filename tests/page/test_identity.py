from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from browsermw.page.identity import (
    COOKIE_HINT,
    Identity,
    identity_from_cookie,
    identity_from_selector,
    identity_hash,
    identity_hint,
)
from browsermw.page.probe import IdentityReading, PageProbe

KEY = b"k" * 32


def probe(reading: IdentityReading, text: str | None = None) -> PageProbe:
    return PageProbe("https://shop.test/", "dom1:0", text, reading, 1, None)


def test_a_cookie_with_a_value_is_signed_in() -> None:
    identity = identity_from_cookie([{"name": "a", "value": "x"}, {"name": "sid", "value": "s3cret"}], "sid")
    assert identity == Identity("signed_in", "s3cret", is_secret=True)
    assert identity.hint == COOKIE_HINT
    assert "s3cret" not in repr(identity)


@pytest.mark.parametrize("cookies", [[], [{"name": "SID", "value": "x"}], [{"name": "sid", "value": ""}]])
def test_a_missing_or_empty_cookie_is_signed_out(cookies: list[dict[str, object]]) -> None:
    assert identity_from_cookie(cookies, "sid").state == "signed_out"


def test_cookies_that_disagree_are_unreadable() -> None:
    cookies = [{"name": "sid", "value": "x", "path": "/"}, {"name": "sid", "value": "y", "path": "/a"}]
    assert identity_from_cookie(cookies, "sid").state == "unreadable"
    assert identity_from_cookie([{"name": "sid", "value": None}], "sid").state == "unreadable"


@pytest.mark.parametrize(
    ("reading", "state"),
    [("absent", "signed_out"), ("unreadable", "unreadable"), ("not_asked", "unreadable")],
)
def test_only_a_proven_absence_is_signed_out(reading: IdentityReading, state: str) -> None:
    assert identity_from_selector(probe(reading)).state == state


def test_the_selector_s_text_is_the_identity() -> None:
    identity = identity_from_selector(probe("read", "ada@example.com"))
    assert (identity.state, identity.text, identity.hint) == ("signed_in", "ada@example.com", "a…@e…")


def test_the_hash_depends_on_the_key_and_on_the_text() -> None:
    hashes = {
        identity_hash(KEY, "ada"),
        identity_hash(KEY, "Ada"),
        identity_hash(b"q" * 32, "ada"),
        identity_hash(KEY, "\ud800"),
    }
    assert len(hashes) == 4
    assert all(value.startswith("id1:") and len(value) == 36 for value in hashes)
    assert identity_hash(KEY, "ada") in hashes


@pytest.mark.parametrize("key", [b"", b"short", b"k" * 65])
def test_a_key_that_protects_nothing_is_refused(key: bytes) -> None:
    with pytest.raises(ValueError, match="identity key"):
        identity_hash(key, "ada")


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("ada@example.com", "a…@e…"),
        ("user-1", "us…1"),
        ("Ada Lovelace", "Ad…e"),
        ("ada", ""),
        ("", ""),
        ("a@b.c", ""),
        ("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abc", COOKIE_HINT),
        ("0123456789abcdef0123456789abcdef", COOKIE_HINT),
        ("s%3Aq8Zk2-Yt7LxkA0", COOKIE_HINT),
    ],
)
def test_a_hint_lets_the_owner_recognise_it(text: str, hint: str) -> None:
    assert identity_hint(text) == hint


@given(st.text())
def test_a_hint_never_shows_more_than_three_characters(text: str) -> None:
    hint = identity_hint(text)
    assert hint == COOKIE_HINT or len(hint.replace("…", "")) <= 3


@given(st.text(min_size=1))
def test_the_hint_of_a_cookie_says_nothing_of_its_value(value: str) -> None:
    assert identity_from_cookie([{"name": "sid", "value": value}], "sid").hint == COOKIE_HINT
