"""Which browser did a context come from? Noted when it is launched, so that ``wrap`` can say no at once.

Fed by the hooks on ``BrowserType.launch`` and ``Browser.new_context``, asked by ``Run.wrap``. Reads Playwright's
public arguments only. A launch returns with the gate in place: what a page that is older than the gate sends by
``sendBeacon`` or ``ping`` passes it (field note 16).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary, WeakSet

from browsermw.errors import BrowsermwError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from concurrent.futures import Future

_port_of: WeakKeyDictionary[Any, int] = WeakKeyDictionary()
_own_proxy: WeakSet[Any] = WeakSet()
_without_workers: WeakSet[Any] = WeakSet()
_without_relay: WeakSet[Any] = WeakSet()
_base_url_of: WeakKeyDictionary[Any, str] = WeakKeyDictionary()
_attaching_at: dict[int, Callable[[], Future[None]]] = {}
_PORT = re.compile(r"--remote-debugging-port=(\d+)")


def note_launch(made: object, kwargs: Mapping[str, Any]) -> None:
    """Note a browser, or the context of a persistent launch, with its debugging port."""
    _note_context(made, kwargs)
    port = _port_in(kwargs)
    if port is not None:
        _port_of[made] = port
    if kwargs.get("client_certificates"):  # of a persistent launch; new_context() keeps the relay behind its proxy
        _without_relay.add(made)


def _port_in(kwargs: Mapping[str, Any]) -> int | None:
    found = [_PORT.fullmatch(str(argument)) for argument in kwargs.get("args") or ()]
    return next((int(match.group(1)) for match in reversed(found) if match is not None), None)


def on_launch(port: int, attach: Callable[[], Future[None]]) -> None:
    """Have the gate attached before the launch of a browser with that debugging port returns, once."""
    _attaching_at[port] = attach


def attaching(kwargs: Mapping[str, Any]) -> Future[None] | None:
    """The gate's attaching to a browser that was just launched; ``None`` for a browser that is none of ours."""
    attach = _attaching_at.pop(_port_in(kwargs) or 0, None)
    try:
        return None if attach is None else attach()
    except BrowsermwError:
        return None  # the runtime is closed; its relay lets nothing pass


def note_context(made: object, kwargs: Mapping[str, Any]) -> None:
    """Note of a context, or of the page of ``Browser.new_page``, its own proxy, base URL and service workers."""
    made = getattr(made, "context", made)
    _note_context(made, kwargs)
    if kwargs.get("proxy"):
        _own_proxy.add(made)


def _note_context(made: object, kwargs: Mapping[str, Any]) -> None:
    if kwargs.get("base_url"):
        _base_url_of[made] = str(kwargs["base_url"])
    if kwargs.get("service_workers") == "block":
        _without_workers.add(made)


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


def blocks_service_workers(context: object) -> bool:
    """Whether a context is known to have been made with ``service_workers="block"``."""
    return context in _without_workers


def is_chromium(context: object) -> bool:
    """Whether a context is one of Chromium, as far as its browser says; that of a persistent launch has none."""
    browser = getattr(context, "browser", None)
    return browser is None or browser.browser_type.name == "chromium"


def lost_relay(context: object) -> bool:
    """Whether Playwright started a context's browser with a proxy of its own in the relay's place."""
    return context in _without_relay
