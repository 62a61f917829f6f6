"""The proxy behind the relay: how Playwright's setting is read, and which hosts go round it.

The caller's own proxy is taken from the browser, which talks to the relay instead, and given to `dial`.
Pure; it must never show a password, and never accept a setting that it would then not honour.
"""

from __future__ import annotations

import fnmatch
import ipaddress
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from collections.abc import Mapping

_DEFAULT_PORTS: Final = {"http": 80, "socks5": 1080}


@dataclass(frozen=True)
class Upstream:
    """A proxy behind the relay, as Playwright's ``proxy`` setting describes it."""

    scheme: str
    host: str
    port: int
    username: str | None = None
    password: str | None = field(default=None, repr=False)
    bypass: tuple[str, ...] = ()

    @classmethod
    def from_playwright(cls, proxy: Mapping[str, str]) -> Upstream:
        """Read ``{"server": ..., "username": ..., "password": ..., "bypass": "a.com, .b.com"}``.

        Raises:
            ValueError: The server or a bypass entry is malformed or asks for what the relay cannot do.
        """
        server = proxy.get("server", "").strip()
        shown = server.rsplit("@", 1)[-1]  # credentials inside the URL are refused, and not repeated
        parts = urlsplit(server if "://" in server else f"http://{server}")
        if parts.scheme not in _DEFAULT_PORTS:
            raise ValueError(
                f"proxy server {shown!r}: scheme {parts.scheme!r} is not supported behind the relay; "
                "http:// and socks5:// are (https:// proxies and socks4 are not)."
            )
        try:
            port = parts.port if parts.port is not None else _DEFAULT_PORTS[parts.scheme]
        except ValueError as error:
            raise ValueError(f"proxy server {shown!r}: the port is not a number below 65536.") from error
        if not parts.hostname or port == 0 or parts.path.strip("/") or parts.query or parts.fragment:
            raise ValueError(f"proxy server {shown!r}: expected host:port, http://host:port or socks5://host:port.")
        if parts.username is not None:
            raise ValueError(f"proxy server {shown!r}: give credentials as 'username' and 'password', not in the URL.")
        username, password = proxy.get("username"), proxy.get("password")
        _check_credentials(parts.scheme, username, password)
        bypass = tuple(entry.strip().lower() for entry in proxy.get("bypass", "").split(",") if entry.strip())
        for entry in bypass:
            if "://" in entry:
                raise ValueError(f"proxy bypass {entry!r}: the relay sees no URL schemes; name the host alone.")
        return cls(parts.scheme, parts.hostname, port, username, password, bypass)

    def bypasses(self, host: str, port: int) -> bool:
        """Whether this target goes round the proxy, by Chromium's bypass rules.

        Loopback goes through the proxy like the rest, as it does under Playwright, unless an entry names it.
        """
        return any(_bypass_matches(entry, host, port) for entry in self.bypass)


def _check_credentials(scheme: str, username: str | None, password: str | None) -> None:
    """Refuse at the start what the proxy's protocol cannot carry, before a browser hangs on it."""
    try:
        username_size, password_size = len((username or "").encode()), len((password or "").encode())
        if scheme == "socks5":
            (username or "").encode("ascii")
            (password or "").encode("ascii")
    except UnicodeEncodeError as error:
        raise ValueError("proxy credentials: a SOCKS5 user name or password must be plain ASCII.") from error
    if scheme == "socks5" and max(username_size, password_size) > 255:  # noqa: PLR2004  # one length byte
        raise ValueError("proxy credentials: a SOCKS5 user name or password may have 255 bytes at most.")
    if scheme == "http" and ":" in (username or ""):
        raise ValueError("proxy credentials: a user name for an HTTP proxy cannot hold a colon.")


def _bypass_matches(entry: str, host: str, port: int) -> bool:
    if entry == "<loopback>":
        return is_loopback(host)
    if entry == "<-loopback>":
        return False
    if entry == "<local>":
        return "." not in host and ":" not in host
    with suppress(ValueError):
        return ipaddress.ip_address(host) in ipaddress.ip_network(entry.strip("[]"), strict=False)
    name, colon, wanted_port = entry.rpartition(":")
    if colon and wanted_port.isdigit() and not name.endswith(":"):
        entry = name
        if int(wanted_port) != port:
            return False
    entry = entry.strip("[]")
    return fnmatch.fnmatchcase(host, f"*{entry}" if entry.startswith(".") else entry)


def is_loopback(host: str) -> bool:
    """Whether a name or address means this machine, as browsers read it."""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    with suppress(ValueError):
        return ipaddress.ip_address(host).is_loopback
    return False
