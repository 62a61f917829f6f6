"""Holds the table of hooks against the installed Playwright: what a release added that nobody has classified.

A test asks for the Playwright that we develop with, ``browsermw doctor`` for the user's. Changes nothing.
"""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING

import playwright.async_api
import playwright.sync_api

from browsermw.hooks import table

if TYPE_CHECKING:
    from types import ModuleType, SimpleNamespace

FLAVOURS = (playwright.sync_api, playwright.async_api)
HOOKED = (table.ACTIONS, table.CALLS, table.CLOSES, table.OPENS, table.LAUNCHES, table.RELEASES, table.UNROUTES)
GROUPS = (*HOOKED, table.PASSIVE)
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


def unclassified(api: ModuleType | SimpleNamespace) -> list[str]:
    """``Class`` or ``Class.method`` for everything public that the table does not name."""
    found = []
    for name, cls in public_classes(api).items():
        if name in table.OUTSIDE:
            continue
        known = {method for group in GROUPS for method in group.get(name, ())}
        found += [f"{name}.{method}" for method in public_methods(cls) - known] if known else [name]
    return sorted(found)


def missing(api: ModuleType | SimpleNamespace) -> list[str]:
    """Hooked methods that this Playwright does not have; ``install`` passes them over."""
    hooked = {(owner, name) for group in HOOKED for owner, methods in group.items() for name in methods}
    return sorted(f"{owner}.{name}" for owner, name in hooked if name not in vars(getattr(api, owner)))
