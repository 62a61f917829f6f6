"""Makes the relay's connections: straight to the target, or through the caller's own proxy.

Decides how names are resolved, which address wins, and what kind of failure a dial ended in. Called for each
admitted CONNECT. It must never fall back to a direct connection when the proxy fails: the caller chose the
proxy, perhaps because the direct way is forbidden. python-socks stays inside this file.
"""

from __future__ import annotations

import asyncio
import base64
import errno
import socket
from typing import TYPE_CHECKING, Any, Final

from python_socks import ProxyConnectionError, ProxyError, ProxyTimeoutError, ProxyType
from python_socks.async_.asyncio import Proxy

from browsermw.wire import socks

if TYPE_CHECKING:
    from browsermw.wire.upstream import Upstream

_HAPPY_EYEBALLS_DELAY_S: Final = 0.25  # RFC 8305's advice, and what asyncio takes
_MAX_CONNECT_REPLY_SIZE: Final = 64 * 1024

_REPLY_CODES: Final = {
    "refused": socks.CONNECTION_REFUSED,
    "unreachable": socks.NETWORK_UNREACHABLE,
    "name_not_resolved": socks.HOST_UNREACHABLE,
    "timeout": socks.TTL_EXPIRED,
    "proxy": socks.GENERAL_FAILURE,
    "failed": socks.GENERAL_FAILURE,
}


class DialError(Exception):
    """No connection to the target came about, so nothing was sent there.

    Attributes:
        kind: ``refused``, ``unreachable``, ``name_not_resolved``, ``timeout``, ``proxy`` (the proxy itself
            failed or refused us) or ``failed``.
    """

    def __init__(self, kind: str) -> None:
        super().__init__(f"Nothing was sent: the connection could not be made ({kind}).")
        self.kind = kind

    @property
    def reply_code(self) -> int:
        """The SOCKS reply code that says the same."""
        return _REPLY_CODES[self.kind]


async def dial(host: str, port: int, upstream: Upstream | None, timeout_s: float) -> socket.socket:
    """Connect to the target, through the proxy where one applies.

    Returns:
        A connected, non-blocking socket with nothing read from it that belongs to the target.

    Raises:
        DialError: It did not come about; nothing was sent to the target.
    """
    try:
        async with asyncio.timeout(timeout_s):
            if upstream is None or upstream.bypasses(host, port):
                return await _connect(host, port)
            if upstream.scheme == "http":
                return await _through_http(host, port, upstream)
            return await _through_socks5(host, port, upstream, timeout_s)
    except TimeoutError as error:
        raise DialError("timeout") from error
    except OSError as error:
        raise DialError(_kind(error)) from error


def _kind(error: OSError) -> str:
    if isinstance(error, socket.gaierror):
        return "name_not_resolved"
    if error.errno == errno.ECONNREFUSED:
        return "refused"
    if error.errno == errno.ETIMEDOUT:
        return "timeout"
    if error.errno in {errno.ENETUNREACH, errno.EHOSTUNREACH, errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT}:
        return "unreachable"
    return "failed"


async def _through_socks5(host: str, port: int, upstream: Upstream, timeout_s: float) -> socket.socket:
    proxy = Proxy(ProxyType.SOCKS5, upstream.host, upstream.port, upstream.username, upstream.password, rdns=True)
    try:
        connected: socket.socket = await proxy.connect(host, port, timeout=timeout_s)
    except ProxyTimeoutError as error:
        raise DialError("timeout") from error
    except ProxyError as error:
        kinds = {
            socks.CONNECTION_REFUSED: "refused",
            socks.NETWORK_UNREACHABLE: "unreachable",
            socks.HOST_UNREACHABLE: "unreachable",
            socks.TTL_EXPIRED: "timeout",
        }
        raise DialError(kinds.get(error.error_code or 0, "proxy")) from error
    except (ProxyConnectionError, OSError, ValueError) as error:  # ValueError: a name that IDNA cannot carry
        raise DialError("proxy") from error
    return connected


async def _through_http(host: str, port: int, upstream: Upstream) -> socket.socket:
    """Ask an HTTP proxy for a tunnel.

    Not with python-socks: it takes whatever its first read returns for the whole reply, so the rest of a
    reply that comes in two pieces would reach the browser as the target's first bytes.
    """
    try:
        connected = await _connect(upstream.host, upstream.port)
    except OSError as error:
        raise DialError("proxy") from error
    try:
        status = await _ask_for_tunnel(connected, host, port, upstream)
    except OSError as error:
        connected.close()
        raise DialError("proxy") from error
    except BaseException:
        connected.close()
        raise
    if not 200 <= status < 300:  # noqa: PLR2004
        connected.close()
        raise DialError("proxy")
    return connected


async def _ask_for_tunnel(connected: socket.socket, host: str, port: int, upstream: Upstream) -> int:
    """Send CONNECT and read exactly its reply; the proxy's status, or 0 when it was none."""
    loop = asyncio.get_running_loop()
    authority = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    lines = [f"CONNECT {authority} HTTP/1.1", f"Host: {authority}"]
    if upstream.username is not None:
        token = base64.b64encode(f"{upstream.username}:{upstream.password or ''}".encode()).decode()
        lines.append(f"Proxy-Authorization: Basic {token}")
    await loop.sock_sendall(connected, "\r\n".join([*lines, "", ""]).encode("ascii"))
    head = bytearray()
    while not head.endswith(b"\r\n\r\n"):
        # Byte for byte: what follows the blank line is the target's, and a socket cannot be un-read.
        byte = await loop.sock_recv(connected, 1)
        head += byte
        if not byte or len(head) > _MAX_CONNECT_REPLY_SIZE:
            return 0
    fields = bytes(head).split(b"\r\n", 1)[0].split(None, 2)
    if len(fields) < 2 or not fields[0].startswith(b"HTTP/") or not fields[1].isdigit():  # noqa: PLR2004
        return 0
    return int(fields[1])


async def _connect(host: str, port: int) -> socket.socket:
    """Resolve here and try the addresses as RFC 8305 says: each a little after the last, the first wins.

    asyncio's own race (`create_connection(happy_eyeballs_delay=)`) folds several failures into one error
    without a number, and the number is what tells "refused" from "unreachable".
    """
    addresses = await _resolve(host, port)
    attempts: set[asyncio.Task[socket.socket]] = set()
    failures: list[OSError] = []
    try:
        for address in addresses:
            attempts.add(asyncio.create_task(_connect_address(*address)))
            is_last = address is addresses[-1]
            while attempts:
                done, attempts = await asyncio.wait(
                    attempts,
                    timeout=None if is_last else _HAPPY_EYEBALLS_DELAY_S,
                    return_when=asyncio.FIRST_COMPLETED,
                )
                winner = _first_connected(done, failures)
                if winner is not None:
                    return winner
                if not is_last:
                    break
        raise _most_telling(failures)
    finally:
        for attempt in attempts:
            attempt.cancel()
            attempt.add_done_callback(_close_late)


def _first_connected(done: set[asyncio.Task[socket.socket]], failures: list[OSError]) -> socket.socket | None:
    winner: socket.socket | None = None
    for attempt in done:
        error = attempt.exception()
        if isinstance(error, OSError):
            failures.append(error)
        elif error is not None:
            raise error
        elif winner is None:
            winner = attempt.result()
        else:
            attempt.result().close()
    return winner


def _close_late(attempt: asyncio.Task[socket.socket]) -> None:
    if not attempt.cancelled() and attempt.exception() is None:
        attempt.result().close()


def _most_telling(failures: list[OSError]) -> OSError:
    """A refusal says more than an address family that this machine does not have."""
    refusals = [error for error in failures if error.errno == errno.ECONNREFUSED]
    return (refusals or failures)[0]


_Address = tuple[int, tuple[Any, ...]]


async def _resolve(host: str, port: int) -> list[_Address]:
    """The target's addresses, families taking turns.

    Browsers send ``anything.localhost`` to this machine by rule; the system's resolver may not know that.
    """
    name = "localhost" if host.endswith(".localhost") else host
    try:
        found = _as_address(name, port) or await asyncio.get_running_loop().getaddrinfo(
            name, port, type=socket.SOCK_STREAM
        )
    except UnicodeError as error:  # a label that is empty or too long
        raise socket.gaierror(socket.EAI_NONAME, "not a host name") from error
    families: dict[int, list[_Address]] = {}
    for family, _, _, _, address in found:
        families.setdefault(family, []).append((family, address))
    longest = max(len(addresses) for addresses in families.values())
    return [group[turn] for turn in range(longest) for group in families.values() if turn < len(group)]


def _as_address(host: str, port: int) -> list[Any]:
    """What an address stands for; nothing for a name.

    The loop looks names up in a few threads, and a name that no server answers for keeps one for many seconds. An
    address must not wait behind it.
    """
    try:
        return socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST)
    except (socket.gaierror, UnicodeError):
        return []


async def _connect_address(family: int, address: tuple[Any, ...]) -> socket.socket:
    attempt = socket.socket(family, socket.SOCK_STREAM)
    try:
        attempt.setblocking(False)
        await asyncio.get_running_loop().sock_connect(attempt, address)
    except BaseException:
        attempt.close()
        raise
    return attempt
