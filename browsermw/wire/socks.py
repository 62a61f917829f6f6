"""The listening side of SOCKS5, as a pure parser: bytes in, a reply and at most one target out.

Decides what a browser's opening bytes ask for. Fed by `tunnel`, chunk by chunk, however the chunks fall. It
never raises on what a peer sends, never reads a clock or a socket, and never accepts anything but a well-
formed CONNECT.

The listener asks for no credentials because Chromium cannot send any: its SOCKS5 client offers "no
authentication" only, and ignores a user name in the proxy's URL. Being bound to loopback is the whole
protection.
"""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from typing import Final

_VERSION: Final = 5
_NO_AUTH: Final = 0
_CONNECT: Final = 1
_IPV4: Final = 1
_DOMAIN: Final = 3
_IPV6: Final = 4
_GREETING_SIZE: Final = 2
_REQUEST_HEAD_SIZE: Final = 5  # up to the first byte of the address, which is a name's length
_PORT_SIZE: Final = 2

GRANTED: Final = 0x00
GENERAL_FAILURE: Final = 0x01
NOT_ALLOWED: Final = 0x02
NETWORK_UNREACHABLE: Final = 0x03
HOST_UNREACHABLE: Final = 0x04
CONNECTION_REFUSED: Final = 0x05
TTL_EXPIRED: Final = 0x06
COMMAND_NOT_SUPPORTED: Final = 0x07
ADDRESS_NOT_SUPPORTED: Final = 0x08


def reply(code: int) -> bytes:
    """The answer to a request; the bound address is left empty, as browsers do not read it."""
    return bytes([_VERSION, code, 0, _IPV4, 0, 0, 0, 0, 0, 0])


@dataclass(frozen=True)
class Target:
    """Where a CONNECT wants to go: a name or an address literal without brackets, and a port."""

    host: str
    port: int


class Handshake:
    """One connection's opening, fed as it arrives.

    Attributes:
        target: What was asked for, once the request is complete and sound.
        failed: The peer does not speak SOCKS5 as we do; send what `feed` returned and close.
        surplus: Bytes that came after the request; they belong to the target.
    """

    def __init__(self) -> None:
        self.target: Target | None = None
        self.failed = False
        self.surplus = b""
        self._buffer = bytearray()
        self._greeted = False

    def feed(self, chunk: bytes) -> bytes:
        """Take the next bytes and return what must be sent back now (often nothing)."""
        if self.failed:
            return b""
        if self.target is not None:
            self.surplus += chunk
            return b""
        self._buffer += chunk
        answer = b""
        if not self._greeted:
            answer = self._greet()
        if self._greeted and not self.failed:
            answer += self._request()
        return answer

    def _greet(self) -> bytes:
        buffer = self._buffer
        if buffer and buffer[0] != _VERSION:
            self.failed = True  # not SOCKS5, so no answer that it would understand
            return b""
        if len(buffer) < _GREETING_SIZE or len(buffer) < _GREETING_SIZE + buffer[1]:
            return b""
        methods = buffer[_GREETING_SIZE : _GREETING_SIZE + buffer[1]]
        del buffer[: _GREETING_SIZE + len(methods)]
        if _NO_AUTH not in methods:
            self.failed = True
            return bytes([_VERSION, 0xFF])
        self._greeted = True
        return bytes([_VERSION, _NO_AUTH])

    def _request(self) -> bytes:
        buffer = self._buffer
        self.failed = bool(buffer) and buffer[0] != _VERSION
        if self.failed or len(buffer) < _REQUEST_HEAD_SIZE:
            return b""
        _, command, _, kind, name_size = buffer[:_REQUEST_HEAD_SIZE]
        if command != _CONNECT:
            return self._refuse(COMMAND_NOT_SUPPORTED)
        spans = {_IPV4: (4, 8), _IPV6: (4, 20), _DOMAIN: (5, 5 + name_size)}
        if kind not in spans:
            return self._refuse(ADDRESS_NOT_SUPPORTED)
        start, end = spans[kind]
        if len(buffer) >= end + _PORT_SIZE:
            return self._aim(_host(kind, bytes(buffer[start:end])), end)
        return b""

    def _aim(self, host: str | None, end: int) -> bytes:
        port = int.from_bytes(self._buffer[end : end + _PORT_SIZE], "big")
        if host is None or port == 0:
            return self._refuse(GENERAL_FAILURE)
        self.surplus = bytes(self._buffer[end + _PORT_SIZE :])
        self._buffer.clear()
        self.target = Target(host, port)
        return b""

    def _refuse(self, code: int) -> bytes:
        self.failed = True
        return reply(code)


def _host(kind: int, raw: bytes) -> str | None:
    """The address as text, or None when it is no host name that could be asked for.

    Chromium sends address literals as names too, IPv6 without brackets.
    """
    if kind != _DOMAIN:
        return str(ipaddress.ip_address(raw))
    if not raw or any(byte <= 0x20 or byte >= 0x7F for byte in raw):  # noqa: PLR2004  # printable ASCII
        return None
    host = raw.decode("ascii").lower()
    if any(mark in host for mark in "/@\\?#"):
        return None
    return host
