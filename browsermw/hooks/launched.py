"""Which browser did a context come from? Noted when it is launched, so that ``wrap`` can say no at once.

Fed by the hooks on ``BrowserType.launch`` and ``Browser.new_context``, asked by ``Run.wrap``. Reads Playwright's
public arguments only.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary, WeakSet

if TYPE_CHECKING:
    from collections.abc import Mapping

_port_of: WeakKeyDictionary[Any, int] = WeakKeyDictionary()
_own_proxy: WeakSet[Any] = WeakSet()
_base_url_of: WeakKeyDictionary[Any, str] = WeakKeyDictionary()
_PORT = re.compile(r"--remote-debugging-port=(\d+)")


def note_launch(made: object, kwargs: Mapping[str, Any]) -> None:
    """Note a browser, or the context of a persistent launch, with its debugging port."""
    _note_base_url(made, kwargs)
    for argument in kwargs.get("args") or ():
        found = _PORT.fullmatch(str(argument))
        if found is not None:
            _port_of[made] = int(found.group(1))


def note_context(made: object, kwargs: Mapping[str, Any]) -> None:
    """Note of a context, or of the page of ``Browser.new_page``, its own proxy and its base URL."""
    made = getattr(made, "context", made)
    _note_base_url(made, kwargs)
    if kwargs.get("proxy"):
        _own_proxy.add(made)


def _note_base_url(made: object, kwargs: Mapping[str, Any]) -> None:
    if kwargs.get("base_url"):
        _base_url_of[made] = str(kwargs["base_url"])


def base_url_of(context: object) -> str:
    """What relative URLs of ``context.request`` are resolved against; empty where nothing was given."""
    return _base_url_of.get(context, "")


def debugging_port_of(context: object) -> int | None:
    """Debugging port of the browser that a context lives in; ``None`` where it was not launched here."""
    if context in _port_of:
        return _port_of[context]
    browser = getattr(context, "browser", None)
    return _port_of.get(browser) if browser is not None else None


def has_own_proxy(context: object) -> bool:
    """Whether a context was made with a proxy of its own."""
    return context in _own_proxy
