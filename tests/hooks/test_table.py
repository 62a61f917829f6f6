"""The table of Playwright's methods is complete: a release that adds one fails here until somebody classifies it."""

from __future__ import annotations

import inspect
from types import ModuleType, SimpleNamespace

import playwright.async_api
import playwright.sync_api
import pytest

from browsermw.hooks import table

HOOKED = (table.ACTIONS, table.CALLS, table.CLOSES, table.OPENS, table.LAUNCHES, table.RELEASES, table.UNROUTES)
FLAVOURS = [playwright.sync_api, playwright.async_api]
IMPLEMENTATION = "playwright._impl"
"""Classes that the public modules only import from there: assertions, errors, bases."""


def public_methods(cls: type) -> set[str]:
    """Methods that a user may call; properties and what every class inherits (``on``, ``once``) do not count."""
    return {name for name, member in vars(cls).items() if not name.startswith("_") and inspect.isfunction(member)}


def public_classes(api: ModuleType | SimpleNamespace) -> dict[str, type]:
    """Playwright's public classes with methods."""
    return {
        thing.__name__: thing
        for thing in vars(api).values()
        if inspect.isclass(thing)
        and not thing.__module__.startswith(IMPLEMENTATION)
        and not thing.__name__.endswith("ContextManager")
        and public_methods(thing)
    }


def classified(class_name: str) -> set[str]:
    """All method names that the table has for a class."""
    groups = (*HOOKED, table.PASSIVE)
    return {name for group in groups for name in group.get(class_name, ())}


def unclassified(api: ModuleType | SimpleNamespace) -> list[str]:
    """``Class`` or ``Class.method`` for everything public that the table does not name."""
    found = []
    for name, cls in public_classes(api).items():
        if name in table.OUTSIDE:
            continue
        known = classified(name)
        found += [f"{name}.{method}" for method in public_methods(cls) - known] if known else [name]
    return sorted(found)


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
    groups = (*HOOKED, table.PASSIVE)
    names = [(owner, name) for group in groups for owner, methods in group.items() for name in methods]
    assert sorted(names) == sorted(set(names))


@pytest.mark.parametrize("api", FLAVOURS, ids=lambda api: api.__name__)
def test_every_hooked_method_exists_in_the_installed_playwright(api: ModuleType) -> None:
    """A name that is mistyped would be passed over in silence: ``install`` skips what is not there."""
    hooked = {(owner, name) for group in HOOKED for owner, methods in group.items() for name in methods}
    missing = {f"{owner}.{name}" for owner, name in hooked if name not in vars(getattr(api, owner))}
    assert missing == set()
