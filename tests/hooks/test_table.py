"""The table of Playwright's methods is complete: a release that adds one fails here until somebody classifies it."""

from __future__ import annotations

from types import ModuleType, SimpleNamespace

import pytest

from browsermw.hooks.classified import FLAVOURS, GROUPS, missing, public_classes, unclassified


@pytest.mark.parametrize("api", FLAVOURS, ids=lambda api: api.__name__)
def test_every_public_method_is_classified(api: ModuleType) -> None:
    assert len(public_classes(api)) > 30
    assert unclassified(api) == []


@pytest.mark.parametrize("api", FLAVOURS, ids=lambda api: api.__name__)
def test_a_method_and_a_class_that_a_release_adds_are_found(api: ModuleType) -> None:
    class Page(api.Page):  # type: ignore[misc, name-defined]
        def triple_click(self) -> None:
            """Made up."""

    class Wand:
        def wave(self) -> None:
            """Made up."""

    newer = SimpleNamespace(**{**vars(api), "Page": Page, "Wand": Wand})
    assert unclassified(newer) == ["Page.triple_click", "Wand"]


def test_no_method_is_in_two_groups() -> None:
    names = [(owner, name) for group in GROUPS for owner, methods in group.items() for name in methods]
    assert sorted(names) == sorted(set(names))


@pytest.mark.parametrize("api", FLAVOURS, ids=lambda api: api.__name__)
def test_every_hooked_method_exists_in_the_installed_playwright(api: ModuleType) -> None:
    """A name that is mistyped would be passed over in silence: ``install`` skips what is not there."""
    assert missing(api) == []


@pytest.mark.parametrize("api", FLAVOURS, ids=lambda api: api.__name__)
def test_a_hooked_method_that_a_release_took_away_is_found(api: ModuleType) -> None:
    class Touchscreen:
        """Without a tap."""

    older = SimpleNamespace(**{**vars(api), "Touchscreen": Touchscreen})
    assert missing(older) == ["Touchscreen.tap"]
