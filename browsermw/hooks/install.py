"""Put the hooks on Playwright's public classes, once for each process, with ``wrapt``.

Called by ``Runtime`` before the first browser is launched. The objects that users hold stay Playwright's own, so
``expect()``, ``isinstance`` and type checkers are content; a context that nobody wrapped pays a dictionary look-up.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import playwright.async_api
import playwright.sync_api
import wrapt

from browsermw.hooks import async_hooks, sync_hooks
from browsermw.hooks.table import ACTIONS, CALLS, CLOSES, LAUNCHES, OPENS, RELEASES, UNROUTES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from types import ModuleType

_lock = threading.Lock()
_done: list[bool] = []


def install() -> None:
    """Install all hooks; a second call does nothing."""
    with _lock:
        if _done:
            return
        _install_on(playwright.sync_api, sync_hooks)
        _install_on(playwright.async_api, async_hooks)
        _done.append(True)


def _install_on(api: ModuleType, hooks: Any) -> None:
    for class_name, methods in ACTIONS.items():
        for name, entry in methods.items():
            _put(api, class_name, name, hooks.action(class_name, name, entry))
    for class_name, name in _pairs(CALLS):
        _put(api, class_name, name, hooks.call(class_name, name))
    for class_name, name in _pairs(CLOSES):
        _put(api, class_name, name, hooks.close(class_name))
    for class_name, name in _pairs(OPENS):
        _put(api, class_name, name, hooks.opens(class_name))
    for class_name, name in _pairs(RELEASES):
        _put(api, class_name, name, hooks.release)
    for class_name, name in _pairs(UNROUTES):
        _put(api, class_name, name, hooks.unroute)
    for class_name, name in _pairs(LAUNCHES):
        _put(api, class_name, name, hooks.launch if class_name == "BrowserType" else hooks.making)


def _pairs(table: Mapping[str, Iterable[str]]) -> Iterator[tuple[str, str]]:
    return ((class_name, name) for class_name, names in table.items() for name in names)


def _put(api: ModuleType, class_name: str, name: str, hook: Callable[..., Any]) -> None:
    if name in vars(getattr(api, class_name)):  # an older Playwright has fewer methods
        wrapt.wrap_function_wrapper(api, f"{class_name}.{name}", hook)
