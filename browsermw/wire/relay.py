"""The relay: an in-process SOCKS5 hop that all browser traffic crosses; without us nothing can leave.

Chromium sends what a gate held when the gate dies (field note 2). It cannot when its only way out dies with
it. The relay decides who may pass, never what: it forwards nothing before `open`, cuts everything at
`shut`, and answers for each target whether it was reached. The runtime makes one per browser and runs it in
its own asyncio loop; all methods must be called there. It must never listen beyond loopback, and never open
itself.

`connection_count` and `forwarded_byte_count` (both ways) are for tests and benchmarks.
"""

from __future__ import annotations

import asyncio
import secrets
from enum import Enum
from typing import TYPE_CHECKING, Final

from browsermw.wire import socks
from browsermw.wire.dial import dial
from browsermw.wire.reach import Reach
from browsermw.wire.tunnel import Tunnel
from browsermw.wire.upstream import Upstream

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable

__all__ = ["Relay", "Upstream"]


_BARRED_WAIT_S: Final = 1.0


class _Admission(Enum):
    WAITING = "no gate yet: connections are kept waiting"
    OPEN = "the gate is attached"
    SHUT = "the gate was lost: connections are refused"


class Relay:
    """A SOCKS5 listener on loopback for one browser.

    Args:
        upstream: The proxy that connections go through; None to dial targets directly.
        connect_timeout_s: How long one dial may take, name look-up and proxy included.
    """

    def __init__(self, *, upstream: Upstream | None = None, connect_timeout_s: float = 30.0) -> None:
        self.reach = Reach()
        self.connection_count = 0
        self.forwarded_byte_count = 0
        self.shut_reason: str | None = None
        self._upstream = upstream
        self._connect_timeout_s = connect_timeout_s
        self._admission = _Admission.WAITING
        self._listener: asyncio.Server | None = None
        self._tunnels: set[Tunnel] = set()
        self._waiting: dict[Tunnel, socks.Target] = {}  # for the gate
        self._is_empty = asyncio.Event()
        self._is_empty.set()
        self._on_first_connection: Callable[[], None] | None = None
        self._host = f"127.{1 + secrets.randbelow(254)}.{secrets.randbelow(256)}.{1 + secrets.randbelow(254)}"
        self._port = 0

    # What the runtime calls.

    async def start(self) -> int:
        """Listen on a free port of a loopback address that no other relay of this machine is likely to have.

        A browser that outlived its agent still knows the address of its dead relay. On a shared 127.0.0.1 the kernel
        may give that very port to the relay of the next agent, and the orphan would send through it, past every gate.

        Returns:
            The port.
        """
        loop = asyncio.get_running_loop()
        try:
            self._listener = await loop.create_server(lambda: Tunnel(self), self._host, 0, backlog=512)
        except OSError:  # macOS has no loopback address but this one
            self._host = "127.0.0.1"
            self._listener = await loop.create_server(lambda: Tunnel(self), self._host, 0, backlog=512)
        self._port = int(self._listener.sockets[0].getsockname()[1])
        return self._port

    @property
    def port(self) -> int:
        """The port it listens on; 0 before `start`."""
        return self._port

    @property
    def server(self) -> str:
        """What to give a browser as its proxy."""
        return f"socks5://{self._host}:{self._port}"

    @property
    def host(self) -> str:
        """The loopback address it listens on."""
        return self._host

    def on_first_connection(self, callback: Callable[[], None]) -> None:
        """Have `callback` called in the loop, once, when the browser first connects (now, if it has)."""
        self._on_first_connection = callback
        if self.connection_count:
            self._announce()

    def open(self) -> None:
        """The gate is attached: forward from now on, what has waited first."""
        self._admission = _Admission.OPEN
        self.shut_reason = None
        waiting, self._waiting = self._waiting, {}
        for tunnel, target in waiting.items():
            self._admit(tunnel, target)

    def shut(self, reason: str) -> None:
        """The gate is lost: cut every connection at once, and refuse new ones until `open`.

        They are refused rather than kept waiting: what comes now may be what Chromium let go when the gate
        died, and it must not get out when the next gate is attached.

        Args:
            reason: Why, for `shut_reason` and the log.
        """
        self._admission = _Admission.SHUT
        self.shut_reason = reason
        self._waiting.clear()
        for tunnel in list(self._tunnels):
            tunnel.cut()

    def reached(self, host: str, port: int, *, since: float) -> bool:
        """Whether a request can have gone to a target since a moment.

        Args:
            host: A host name or address, as in the URL.
            port: The port.
            since: A moment of ``loop.time()``.

        Returns:
            True if a connection there carried bytes of the browser's at or after `since`, other than those by which
            TLS is agreed on or refused. Bytes that were on their way to the relay before the browser gave up count
            once they were read, which is in the loop's next turn at the latest.
        """
        return self.reach.reached(host, port, since)

    def connect_failure(self, host: str, port: int, *, since: float) -> str | None:
        """How the last failed dial to a target failed, if there was one since a moment.

        Returns:
            ``refused``, ``unreachable``, ``name_not_resolved``, ``timeout``, ``proxy``, ``failed``, or None.
        """
        return self.reach.failure(host, port, since)

    def effect_released(self, host: str, port: int) -> None:
        """Say, before it is released, that an effect is about to go to a target.

        Until it is answered, the end of a connection that may have carried it is shown to Chromium as a
        broken answer, because Chromium would send the request again after a plain one.
        """
        self.reach.effect_released(host, port, asyncio.get_running_loop().time())

    def effect_answered(self, host: str, port: int) -> None:
        """Say that one such effect has got its answer, or has failed and that is written down."""
        self.reach.effect_answered(host, port)

    def unanswered_effects(self, host: str, port: int) -> int:
        """How many effects were released to a target and not answered."""
        return self.reach.effect_count(host, port)

    async def close(self) -> None:
        """Stop listening and cut what is left. A closed relay stays closed."""
        self._admission = _Admission.SHUT
        self.shut_reason = "the relay was closed"
        if self._listener is not None:
            self._listener.close()
        for tunnel in list(self._tunnels):
            tunnel.discard()
        if self._listener is not None:
            await self._listener.wait_closed()
        await self._is_empty.wait()

    # What tunnels call.

    def began(self, tunnel: Tunnel) -> None:
        """A connection of the browser's was accepted."""
        self._tunnels.add(tunnel)
        self._is_empty.clear()
        self.connection_count += 1
        self._announce()

    def asked(self, tunnel: Tunnel, target: socks.Target) -> None:
        """A connection named its target: let it go on, wait, or be refused."""
        if self._admission is _Admission.OPEN:
            self._admit(tunnel, target)
        elif self._admission is _Admission.WAITING:
            self._waiting[tunnel] = target
        else:
            tunnel.refuse(socks.NOT_ALLOWED)

    async def dial(self, target: socks.Target) -> socket.socket:
        """Connect to a target."""
        return await dial(target.host, target.port, self._upstream, self._connect_timeout_s)

    def ended(self, tunnel: Tunnel) -> None:
        """A connection is gone."""
        self._tunnels.discard(tunnel)
        self._waiting.pop(tunnel, None)
        if not self._tunnels:
            self._is_empty.set()

    def _admit(self, tunnel: Tunnel, target: socks.Target) -> None:
        """Let a connection go on, unless it may bring an effect a second time.

        An answer that is just being written down settles that, so it gets a moment to come.
        """
        loop = asyncio.get_running_loop()
        if self.reach.is_barred(target.host, target.port, loop.time()):
            loop.call_later(_BARRED_WAIT_S, self._decide_barred, tunnel, target)
        else:
            tunnel.admit()

    def _decide_barred(self, tunnel: Tunnel, target: socks.Target) -> None:
        is_barred = self.reach.is_barred(target.host, target.port, asyncio.get_running_loop().time())
        if is_barred or self._admission is not _Admission.OPEN:
            tunnel.refuse(socks.NOT_ALLOWED)
        else:
            tunnel.admit()

    def _announce(self) -> None:
        callback, self._on_first_connection = self._on_first_connection, None
        if callback is not None:
            # Not from inside accept: an error of the callback's must not take the connection down.
            asyncio.get_running_loop().call_soon(callback)
