from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from browsermw.page.probe import probe_expression, read_probe

SEEN: dict[str, object] = {
    "url": "https://shop.test/",
    "text": "<html>",
    "elements": 1,
    "reason": None,
    "identity": {"state": "read", "text": "ada"},
}


def test_an_answer_becomes_a_record() -> None:
    probe = read_probe(SEEN)
    assert probe.url == "https://shop.test/"
    assert probe.dom_hash is not None
    assert probe.dom_hash.startswith("dom1:")
    assert len(probe.dom_hash) == len("dom1:") + 32
    assert (probe.identity_reading, probe.identity_text) == ("read", "ada")
    assert probe.not_available is None


def test_lone_surrogates_are_hashed_and_told_apart() -> None:
    one, other = (read_probe({**SEEN, "text": text}).dom_hash for text in ("a\ud800", "a\ud801"))
    assert one is not None
    assert other is not None
    assert one != other


def test_a_reason_is_kept_and_no_hash_is_made() -> None:
    probe = read_probe({**SEEN, "text": None, "reason": "too large"})
    assert (probe.dom_hash, probe.not_available) == (None, "too large")


def test_the_identity_is_not_shown_by_repr() -> None:
    assert "ada" not in repr(read_probe(SEEN))


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["url", "text", "elements", "reason", "identity", "state"]), inner)
    ),
    max_leaves=8,
)


@given(JSON_VALUES)
def test_whatever_comes_back_reading_it_never_raises(value: object) -> None:
    probe = read_probe(value)
    assert (probe.dom_hash is None) == (probe.not_available is not None)
    assert (probe.identity_text is not None) == (probe.identity_reading == "read")


@pytest.mark.parametrize("selector", ["", "  \t ", "a\nb", "a\x00", "x" * 2001])
def test_a_selector_that_no_browser_takes_is_not_put_into_the_expression(selector: str) -> None:
    with pytest.raises(ValueError, match="selector"):
        probe_expression([selector], None, [])
    with pytest.raises(ValueError, match="selector"):
        probe_expression([], selector, [])


@given(st.lists(st.text(min_size=1).filter(str.isprintable).filter(str.strip)), st.lists(st.text()))
def test_options_cannot_break_out_of_the_expression(selectors: list[str], names: list[str]) -> None:
    expression = probe_expression(selectors, None, names)
    options = json.loads(expression[expression.rindex("})())(") + len("})())(") : -1])
    assert options["ignore"] == [selector.strip() for selector in selectors]
    assert options["volatile"] == names
