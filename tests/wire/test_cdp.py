"""The connection to the browser when it ends under a command."""

from __future__ import annotations

import asyncio
import gc
from typing import TYPE_CHECKING, Any

import pytest
from websockets.exceptions import ConnectionClosedOK

from browsermw.wire.cdp import CdpClosed, CdpConnection

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


class ClosingSocket:
    """As a WebSocket whose closing handshake is under way: reading ends first, and then a send that waited for it."""

    def __init__(self) -> None:
        self._sends, self._read_out = asyncio.Event(), asyncio.Event()

    async def __aiter__(self) -> AsyncIterator[str]:
        await self._sends.wait()
        self._read_out.set()
        return
        yield ""

    async def send(self, _text: str) -> None:
        self._sends.set()
        await self._read_out.wait()
        await asyncio.sleep(0)
        raise ConnectionClosedOK(None, None)


async def test_a_command_that_the_end_cuts_off_fails_once_and_leaves_no_unread_error() -> None:
    complaints: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, complaint: complaints.append(complaint))
    socket: Any = ClosingSocket()
    connection = CdpConnection(socket, lambda *_: None)
    with pytest.raises(CdpClosed):
        await connection.send("Fetch.enable")
    gc.collect()
    assert complaints == []
