"""One browser connection through the relay: handshake, admission, dial, bytes both ways, end.

Made by `Relay` for each connection that the browser opens, in the runtime's loop. It must never forward a
byte before it is admitted or after it is cut, and never a byte of the browser's after the server has
closed: the browser re-sends what it wrote into such a connection, so forwarding it as well would send it
twice.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
from typing import TYPE_CHECKING, Final, Protocol, cast

from browsermw.wire import socks
from browsermw.wire.dial import DialError
from browsermw.wire.resend import Exchange

if TYPE_CHECKING:
    from browsermw.wire.reach import Reach

HANDSHAKE_TIMEOUT_S: Final = 10.0
_MAX_EARLY_SIZE: Final = 64 * 1024  # of bytes that a client sends before it is connected
_WRITE_BUFFER_SIZE: Final = 256 * 1024
_ABANDONED_AFTER_S: Final = 60.0  # the browser has closed and the server says nothing
_LINGER_S: Final = 5.0  # for the browser to read the end and close


class Owner(Protocol):
    """What a tunnel needs of the relay."""

    reach: Reach
    forwarded_byte_count: int

    def began(self, tunnel: Tunnel) -> None:
        """The browser connected."""

    def asked(self, tunnel: Tunnel, target: socks.Target) -> None:
        """The target is known: `admit`, `refuse`, or leave it waiting."""

    async def dial(self, target: socks.Target) -> socket.socket:
        """Connect to the target, or raise `DialError`."""

    def ended(self, tunnel: Tunnel) -> None:
        """Both sides are closed."""


class Tunnel(asyncio.Protocol):
    """The side that faces the browser, and the owner of the side that faces the server."""

    def __init__(self, owner: Owner) -> None:
        self._owner = owner
        self._loop = asyncio.get_running_loop()
        self._handshake = socks.Handshake()
        self._exchange = Exchange()
        self._is_asked = False
        self._is_over = False  # nothing is forwarded any more
        self._dialling: asyncio.Task[None] | None = None
        self._server: asyncio.Transport | None = None
        self._server_spoke_at = 0.0
        self._timer: asyncio.TimerHandle | None = None

    # What the relay decides.

    def admit(self) -> None:
        """Dial the target and forward from then on."""
        if self._is_over:
            return
        self._dialling = self._loop.create_task(self._dial())

    def refuse(self, code: int) -> None:
        """Answer the browser's request with a SOCKS reply code and close."""
        if self._is_over:
            return
        self._browser.write(socks.reply(code))
        self._close_browser()

    def cut(self) -> None:
        """Stop at once: what is buffered for the server is dropped, and the browser sees a reset."""
        if self._is_over:
            return
        if self._server is None:
            self._drop_browser()
        else:
            self._server_ended(is_reset=True)

    def discard(self) -> None:
        """Stop at once and leave nothing open, not even to let the browser read an end."""
        self.cut()
        _reset(self._browser)

    # The browser's side.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Start the clock of the handshake."""
        self._browser = cast("asyncio.Transport", transport)
        self._browser.set_write_buffer_limits(high=_WRITE_BUFFER_SIZE)
        self._timer = self._loop.call_later(HANDSHAKE_TIMEOUT_S, self._drop_browser)
        self._owner.began(self)

    def data_received(self, data: bytes) -> None:
        """Forward, or go on with the handshake, or discard."""
        if self._is_over:
            return
        if self._server is not None:
            self._forward_to_server(data)
            return
        answer = self._handshake.feed(data)
        if answer:
            self._browser.write(answer)
        if self._handshake.failed:
            self._close_browser()
        elif self._handshake.target is not None and not self._is_asked:
            self._is_asked = True
            self._stop_timer()
            self._owner.asked(self, self._handshake.target)
        if len(self._handshake.surplus) > _MAX_EARLY_SIZE:
            self._browser.pause_reading()

    def eof_received(self) -> bool:
        """The browser will send no more; the server may still answer."""
        if self._is_over or self._server is None:
            self._drop_browser()
            return False
        self._browser_left()
        with contextlib.suppress(OSError):  # the server is gone too; its end has not been read yet
            self._server.write_eof()
        self._server_spoke_at = self._loop.time()
        self._stop_timer()
        self._watch_for_abandonment()
        return True

    def connection_lost(self, exc: Exception | None) -> None:
        """The browser's side is closed, by either of us."""
        if self._server is not None and not self._is_over:
            self._browser_left()
        self._is_over = True
        self._stop_timer()
        if self._dialling is not None:
            self._dialling.cancel()
        if self._server is not None:
            _reset(self._server) if exc is not None else self._server.abort()
        self._owner.ended(self)

    def pause_writing(self) -> None:
        """The browser reads slower than the server writes."""
        if self._server is not None:
            self._server.pause_reading()

    def resume_writing(self) -> None:
        """The browser has caught up."""
        if self._server is not None:
            self._server.resume_reading()

    def _browser_left(self) -> None:
        """The browser gave this connection up, while the server did not."""
        target = self._handshake.target
        assert target is not None
        if self._exchange.would_be_resent(self._doubt_since()):
            self._owner.reach.bar(target.host, target.port, self._loop.time())

    def _forward_to_server(self, chunk: bytes) -> None:
        server, target = self._server, self._handshake.target
        assert server is not None
        assert target is not None
        at = self._loop.time()
        self._exchange.sent(chunk, at)
        if self._exchange.may_hold_request:
            self._owner.reach.touched(target.host, target.port, at)
        self._owner.forwarded_byte_count += len(chunk)
        server.write(chunk)

    # The server's side.

    async def _dial(self) -> None:
        target = self._handshake.target
        assert target is not None
        try:
            connected = await self._owner.dial(target)
        except DialError as error:
            self._owner.reach.failed(target.host, target.port, error.kind, self._loop.time())
            self.refuse(error.reply_code)
            return
        try:
            await self._loop.create_connection(lambda: _ServerSide(self), sock=connected)
        except BaseException:
            connected.close()
            raise

    def server_connected(self, transport: asyncio.Transport) -> None:
        """The way is open: tell the browser, and send what it could not wait to say."""
        if self._is_over:
            _reset(transport)
            return
        self._server = transport
        transport.set_write_buffer_limits(high=_WRITE_BUFFER_SIZE)
        self._browser.write(socks.reply(socks.GRANTED))
        if self._handshake.surplus:
            self._forward_to_server(self._handshake.surplus)
            self._handshake.surplus = b""
        self._browser.resume_reading()

    def server_sent(self, chunk: bytes) -> None:
        """Pass the server's bytes on, as far as they may go."""
        if self._is_over:
            return
        self._server_spoke_at = self._loop.time()
        passed = self._exchange.received(chunk, self._doubt_since())
        if passed:
            self._owner.forwarded_byte_count += len(passed)
            self._browser.write(passed)
        if self._exchange.over:
            self._server_ended(is_reset=False)

    def server_closed(self, *, is_reset: bool) -> None:
        """The server will send no more."""
        if not self._is_over:
            self._server_ended(is_reset=is_reset)

    def server_is_full(self, is_full: bool) -> None:
        """The server reads slower than the browser writes, or has caught up."""
        if self._is_over:
            return
        if is_full:
            self._browser.pause_reading()
        else:
            self._browser.resume_reading()

    def _server_ended(self, *, is_reset: bool) -> None:
        """Show the browser the end as it came, or a broken answer where its request must not come again."""
        server = self._server
        assert server is not None
        tail = self._exchange.ending(self._doubt_since(), is_reset=is_reset)
        if is_reset:
            _reset(server)
        else:
            server.close()
        if tail:
            self._browser.write(tail)
        if is_reset and not tail:
            self._drop_browser()
        else:
            self._close_browser()

    def _doubt_since(self) -> float | None:
        target = self._handshake.target
        assert target is not None
        return self._owner.reach.doubt_since(target.host, target.port)

    # Ends.

    def _close_browser(self) -> None:
        """Close in good order: read on and discard, as a close over unread bytes resets what was written."""
        self._is_over = True
        self._stop_timer()
        if self._browser.can_write_eof() and not self._browser.is_closing():
            with contextlib.suppress(OSError):  # the browser was killed; its end has not been read yet
                self._browser.write_eof()
        self._browser.resume_reading()
        self._timer = self._loop.call_later(_LINGER_S, self._stop_lingering)

    def _stop_lingering(self) -> None:
        if self._browser.get_write_buffer_size():  # a slow reader still gets all of its answer
            self._timer = self._loop.call_later(_LINGER_S, self._stop_lingering)
        else:
            self._browser.abort()

    def _drop_browser(self) -> None:
        """Close with a reset, after what is buffered: a body cut short must not look like one that ended."""
        self._is_over = True
        self._stop_timer()
        _arm_reset(self._browser)
        self._browser.close()
        self._timer = self._loop.call_later(_LINGER_S, self._browser.abort)

    def _watch_for_abandonment(self) -> None:
        silent_s = self._loop.time() - self._server_spoke_at
        if silent_s >= _ABANDONED_AFTER_S:
            self.cut()
        elif not self._is_over:
            self._timer = self._loop.call_later(_ABANDONED_AFTER_S - silent_s + 0.1, self._watch_for_abandonment)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


class _ServerSide(asyncio.Protocol):
    """The side that faces the server; tells its tunnel what happens there."""

    def __init__(self, tunnel: Tunnel) -> None:
        self._tunnel = tunnel

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._tunnel.server_connected(cast("asyncio.Transport", transport))

    def data_received(self, data: bytes) -> None:
        self._tunnel.server_sent(data)

    def eof_received(self) -> bool:
        self._tunnel.server_closed(is_reset=False)
        return True

    def connection_lost(self, exc: Exception | None) -> None:
        self._tunnel.server_closed(is_reset=exc is not None)

    def pause_writing(self) -> None:
        self._tunnel.server_is_full(True)

    def resume_writing(self) -> None:
        self._tunnel.server_is_full(False)


def _arm_reset(transport: asyncio.BaseTransport) -> None:
    """Make the close of this connection a reset, which drops what the kernel still holds for the peer."""
    transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def _reset(transport: asyncio.Transport) -> None:
    if not transport.is_closing():
        _arm_reset(transport)
    transport.abort()
