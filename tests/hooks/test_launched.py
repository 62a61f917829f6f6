"""What is noted of a context when it is made, and what its browser is."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from browsermw.hooks.launched import blocks_service_workers, is_chromium, note_context, note_launch


class Made:
    """Stands for a context: a key in a weak dictionary is all that is asked of it."""


@pytest.mark.parametrize("note", [note_context, note_launch])
@pytest.mark.parametrize(
    ("given", "blocks"), [({"service_workers": "block"}, True), ({"service_workers": "allow"}, False), ({}, False)]
)
def test_only_a_context_that_was_made_so_is_known_to_block_its_service_workers(
    note: object, given: dict[str, str], blocks: bool
) -> None:
    made = Made()
    assert not blocks_service_workers(made)
    note(made, given)  # type: ignore[operator]
    assert blocks_service_workers(made) is blocks


@pytest.mark.parametrize("name", ["chromium", "firefox", "webkit"])
def test_only_chromium_can_have_a_gate(name: str) -> None:
    browser = SimpleNamespace(browser_type=SimpleNamespace(name=name))
    assert is_chromium(SimpleNamespace(browser=browser)) is (name == "chromium")


def test_a_persistent_context_has_no_browser_to_ask() -> None:
    assert is_chromium(SimpleNamespace(browser=None))
