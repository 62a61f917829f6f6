"""Arguments for Playwright's ``launch`` that put a browser behind the gate and the relay.

Called by ``Runtime.launch_options`` once for each browser. It keeps what the caller gave and adds what guarding
needs; where the two contradict each other it refuses by name.
"""

from __future__ import annotations

import os
import socket
from typing import TYPE_CHECKING, Any

from browsermw.wire.browser_find import find_browser

if TYPE_CHECKING:
    from collections.abc import Mapping

GUARD_ARGS = (
    # Chromium leaves loopback out of a proxy unless told otherwise (field note 2).
    "--proxy-bypass-list=<-loopback>",
    # WebRTC would go around the relay. A Chromium knows one of these two names, by its age and build, and passes over
    # the other without a word.
    "--webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
    # Chromium's own traffic would cross the relay before the first page does.
    "--disable-background-networking",
)
TAKEN_SWITCHES = ("--remote-debugging-port", "--remote-debugging-pipe", "--proxy-server", "--proxy-bypass-list")


def free_port() -> int:
    """A loopback port that was free a moment ago; the browser is checked once it answers there."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def launch_arguments(given: Mapping[str, Any], *, port: int, relay_server: str) -> dict[str, Any]:
    """Arguments for ``chromium.launch`` or ``launch_persistent_context``.

    Args:
        given: What the caller wants to pass; ``proxy`` is taken out, because the relay chains it.
        port: Debugging port.
        relay_server: The relay, as Playwright's ``proxy["server"]``.

    Raises:
        ValueError: ``args`` holds a switch that guarding needs for itself; names it.
    """
    args = [str(argument) for argument in given.get("args") or ()]
    for argument in args:
        if argument.split("=")[0] in TAKEN_SWITCHES:
            raise ValueError(f"args: {argument!r} belongs to browsermw; give a proxy as proxy={{'server': …}}")
    return local_browser(
        {
            **given,
            "args": [*args, *(extra for extra in GUARD_ARGS if extra not in args), f"--remote-debugging-port={port}"],
            "proxy": {"server": relay_server},
            # Playwright would kill the browser under us on a signal (field note 26).
            "handle_sigint": False,
            "handle_sigterm": False,
            "handle_sighup": False,
        }
    )


def local_browser(given: Mapping[str, Any]) -> dict[str, Any]:
    """The caller's launch arguments and what this machine needs besides: an executable, leave to run as root."""
    options = {**given, "args": list(given.get("args") or ())}
    if "executable_path" not in given and "channel" not in given:
        found = find_browser()
        if found is not None and found.source != "playwright":
            options["executable_path"] = found.path
    if _is_root() and "chromium_sandbox" not in given and "--no-sandbox" not in options["args"]:
        # Chromium refuses to start as root with its sandbox.
        options["args"].append("--no-sandbox")
    return options


def _is_root() -> bool:
    return hasattr(os, "geteuid") and os.geteuid() == 0
