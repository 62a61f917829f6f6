"""The WebSocket under the CDP connection: each message is handed on in the turn of the loop in which it came in.

``websockets`` speaks the protocol (its sans-I/O half); this moves the bytes. Its own asyncio connection puts a queue
and a task between the two, which cost a quarter of our processor time per click: a page's fetch alone is a dozen
messages. Knows nothing of CDP.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from typing import TYPE_CHECKING, cast

from websockets.client import ClientProtocol
from websockets.exceptions import WebSocketException
from websockets.frames import Frame, Opcode
from websockets.protocol import State
from websockets.uri import parse_uri

if TYPE_CHECKING:
    from collections.abc import Callable

OPEN_LIMIT_S = 10.0
"""A port that takes the connection and says nothing is given up then."""

CLOSE_LIMIT_S = 5.0
"""A browser that does not answer our goodbye by then is hung up on."""

MESSAGE_OPCODES = frozenset({Opcode.TEXT, Opcode.BINARY, Opcode.CONT})


Data = bytes | bytearray
"""A message as it came in: one of 200 MB is not copied to be handed on."""


class SocketFailed(Exception):
    """Nobody answers there, or what answers speaks no WebSocket."""


class CdpSocket(asyncio.Protocol):
    """A client's WebSocket; made by ``open``.

    Attributes:
        closed: Set once the connection is gone.
    """

    def __init__(self, speech: ClientProtocol, on_message: Callable[[Data], None], on_lost: Callable[[], None]) -> None:
        self._speech = speech
        self._on_message = on_message
        self._on_lost = on_lost
        self._parts: list[Data] = []
        self._opened: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._transport: asyncio.Transport | None = None
        self.closed = asyncio.Event()

    @classmethod
    async def open(cls, url: str, on_message: Callable[[Data], None], on_lost: Callable[[], None]) -> CdpSocket:
        """Connect to a ``ws://`` or ``wss://`` URL.

        Args:
            url: Where.
            on_message: Gets each message, in order.
            on_lost: Is told of the end, once.

        Raises:
            SocketFailed: Nobody answers there.
        """
        try:
            where = parse_uri(url)
            # Pause messages carry upload bodies, hence no size limit.
            speech = ClientProtocol(where, max_size=None)
            secure = ssl.create_default_context() if where.secure else None
            async with asyncio.timeout(OPEN_LIMIT_S):
                loop = asyncio.get_running_loop()
                _, socket = await loop.create_connection(
                    lambda: cls(speech, on_message, on_lost), where.host, where.port, ssl=secure
                )
                await socket._shaken_hands()  # noqa: SLF001 - its own
        except (OSError, WebSocketException) as error:
            raise SocketFailed(f"no browser answers at {url}: {str(error) or 'no answer'}") from error
        return socket

    async def _shaken_hands(self) -> None:
        try:
            await self._opened
        except BaseException:
            if self._transport is not None:
                self._transport.abort()
            raise

    def send(self, message: bytes) -> None:
        """Send a text message. On a connection that is gone it is dropped; ``on_lost`` tells."""
        if self._speech.state is State.OPEN:
            self._speech.send_text(message)
            self._flush()

    async def close(self) -> None:
        """Say goodbye and wait for the end."""
        if self._transport is None or self.closed.is_set():
            return
        with contextlib.suppress(WebSocketException):  # the browser said it first
            self._speech.send_close()
        self._flush()
        try:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(CLOSE_LIMIT_S):
                    await self.closed.wait()
        finally:  # whoever waited may have given up
            self._transport.abort()
        await self.closed.wait()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Ask for the WebSocket."""
        self._transport = cast("asyncio.Transport", transport)
        self._speech.send_request(self._speech.connect())
        self._flush()

    def data_received(self, data: bytes) -> None:
        """Take what came in. An exception of whoever listens ends the connection: a fault of ours must not go on."""
        self._speech.receive_data(data)
        events = self._speech.events_received()
        self._flush()  # answers to pings and to a goodbye
        if not self._opened.done():
            if self._speech.handshake_exc is not None:
                self._refused(self._speech.handshake_exc)
                return
            if events:
                events = events[1:]
                self._opened.set_result(None)
        for event in events:
            if isinstance(event, Frame) and event.opcode in MESSAGE_OPCODES:
                self._frame(event)
        if self._speech.close_rcvd is not None or self._speech.parser_exc is not None:
            # No message will come any more. A browser that kept the connection all the same would keep the relay open.
            self._hang_up()

    def _frame(self, frame: Frame) -> None:
        data = frame.data if isinstance(frame.data, Data) else bytes(frame.data)
        if frame.fin and not self._parts:
            self._on_message(data)
            return
        self._parts.append(data)
        if frame.fin:
            whole, self._parts = b"".join(self._parts), []
            self._on_message(whole)

    def eof_received(self) -> None:
        """Nothing more comes. What was not written yet is not waited for: it might never be taken."""
        self._speech.receive_eof()
        self._hang_up()

    def connection_lost(self, exc: Exception | None) -> None:
        """Tell everybody who waits."""
        self._speech.receive_eof()
        self.closed.set()
        if not self._opened.done():
            gone = ConnectionError("the connection was closed during the handshake")
            self._refused(exc or self._speech.handshake_exc or gone)
        self._on_lost()

    def _refused(self, error: Exception) -> None:
        self._opened.set_exception(error)
        self._opened.exception()  # asyncio logs what nobody reads, and ``open`` may have been cancelled

    def _hang_up(self) -> None:
        assert self._transport is not None
        self._transport.abort()

    def _flush(self) -> None:
        assert self._transport is not None
        for data in self._speech.data_to_send():
            if data:
                self._transport.write(data)
            elif self._transport.can_write_eof():
                self._transport.write_eof()
            else:
                self._transport.close()  # TLS knows no half-closed connection
