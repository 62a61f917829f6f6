"""One connection to a browser's debugging port, on the runtime's loop.

The gate and the page probe speak through it. It correlates commands with answers and hands events on, in order; it
decides nothing. When it closes, every waiting command fails with ``CdpClosed`` and ``closed`` is set.
"""

from __future__ import annotations

import asyncio
import itertools
import json
from typing import TYPE_CHECKING, Any

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, WebSocketException

from browsermw.wire.endpoint import reason, shown

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

Json = dict[str, Any]


class CdpError(Exception):
    """The browser refused a command; the message is the browser's."""


class CdpClosed(CdpError):
    """The connection to the browser is gone."""


class CdpConnection:
    """A flat-session CDP client.

    Attributes:
        closed: Set once the connection is gone.
    """

    def __init__(
        self, socket: ClientConnection, on_event: Callable[[str, Json, str | None], None], unread: Iterable[str] = ()
    ) -> None:
        self._socket = socket
        self._unread = tuple(f'{{"method":"{name}' for name in unread)
        self._on_event = on_event
        self._ids = itertools.count(1)
        self._waiting: dict[int, asyncio.Future[Json]] = {}
        self.closed = asyncio.Event()
        self._reader = asyncio.create_task(self._read(), name="browsermw-cdp")

    @classmethod
    async def open(
        cls, url: str, on_event: Callable[[str, Json, str | None], None], *, unread: Iterable[str] = ()
    ) -> CdpConnection:
        """Connect to a ``ws://`` URL.

        Args:
            url: The browser's ``webSocketDebuggerUrl``.
            on_event: Called with method, parameters and session for each event, in order.
            unread: Beginnings of the names of events that nobody wants; they are not even parsed.

        Raises:
            CdpClosed: Nobody answers there.
        """
        try:
            # Pause messages carry upload bodies, hence no size limit; no proxy: the port is on this machine.
            socket = await connect(url, max_size=None, compression=None, ping_interval=None, proxy=None)
        except (OSError, ValueError, WebSocketException) as error:
            raise CdpClosed(f"no browser answers at {shown(url)}: {reason(error, url)}") from error
        return cls(socket, on_event, unread)

    async def send(self, method: str, params: Json | None = None, *, session: str | None = None) -> Json:
        """Send a command and wait for its result.

        Raises:
            CdpError: The browser refused the command.
            CdpClosed: The connection is gone.
        """
        if self.closed.is_set():
            raise CdpClosed("the connection to the browser is closed")
        number = next(self._ids)
        message: Json = {"id": number, "method": method, "params": params or {}}
        if session is not None:
            message["sessionId"] = session
        text = json.dumps(message)
        waiting: asyncio.Future[Json] = asyncio.get_running_loop().create_future()
        self._waiting[number] = waiting
        try:
            await self._socket.send(text)
            return await waiting
        except ConnectionClosed as error:
            raise CdpClosed("the connection to the browser is closed") from error
        finally:
            self._waiting.pop(number, None)
            if waiting.done() and not waiting.cancelled():
                waiting.exception()  # the reader may have set it while we were sending; asyncio logs what nobody reads

    async def _read(self) -> None:
        try:
            async for text in self._socket:
                if not (isinstance(text, str) and text.startswith(self._unread)):
                    self._take(json.loads(text))
        except ConnectionClosed:
            pass
        finally:
            self.closed.set()
            for waiting in self._waiting.values():
                if not waiting.done():
                    waiting.set_exception(CdpClosed("the connection to the browser is closed"))

    def _take(self, message: Json) -> None:
        if "method" in message:
            self._on_event(message["method"], message.get("params", {}), message.get("sessionId"))
            return
        waiting = self._waiting.get(message["id"])
        if waiting is None or waiting.done():
            return
        if "error" in message:
            waiting.set_exception(CdpError(message["error"].get("message", "unknown CDP error")))
        else:
            waiting.set_result(message.get("result", {}))

    async def close(self) -> None:
        """Close the connection; what the gate held is let go by the browser (field note 2)."""
        await self._socket.close()
        await self._reader
