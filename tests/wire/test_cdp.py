"""The connection to the browser: what it hands on, and how it ends."""

from __future__ import annotations

import asyncio
import gc
import json
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest
from websockets.asyncio.server import ServerConnection, serve
from websockets.exceptions import ConnectionClosedOK

from browsermw import WireTooWeak
from browsermw.wire.cdp import CdpClosed, CdpConnection
from browsermw.wire.endpoint import socket_url

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

Event = tuple[str, dict[str, Any], str | None]


@asynccontextmanager
async def connected(
    talk: Callable[[ServerConnection], Awaitable[None]], unread: tuple[str, ...] = ()
) -> AsyncIterator[tuple[CdpConnection, asyncio.Queue[Event]]]:
    """A connection to a server that talks like that, and the events that came of it."""
    events: asyncio.Queue[Event] = asyncio.Queue()
    async with serve(talk, "127.0.0.1", 0, max_size=None) as server:
        port = server.sockets[0].getsockname()[1]
        connection = await CdpConnection.open(
            f"ws://127.0.0.1:{port}/", lambda *event: events.put_nowait(event), unread=unread
        )
        yield connection, events
        await connection.close()
        assert connection.closed.is_set()


def said(name: str, **params: object) -> str:
    return json.dumps({"method": name, "params": params}, separators=(",", ":"))


async def test_an_answer_goes_to_its_command_and_events_come_in_order() -> None:
    async def talk(browser: ServerConnection) -> None:
        async for text in browser:
            number = json.loads(text)["id"]
            await browser.send(said("A", n=number))
            await browser.send(json.dumps({"id": number, "result": {"n": number}}))
            await browser.send(said("B", n=number))

    async with connected(talk) as (connection, events):
        first, second = await asyncio.gather(connection.send("X"), connection.send("Y"))
        assert (first, second) == ({"n": 1}, {"n": 2})
        assert [await events.get() for _ in range(4)] == [
            ("A", {"n": 1}, None), ("B", {"n": 1}, None), ("A", {"n": 2}, None), ("B", {"n": 2}, None),
        ]  # fmt: skip


async def test_an_event_that_nobody_wants_is_not_even_parsed() -> None:
    async def talk(browser: ServerConnection) -> None:
        await browser.send('{"method":"Network.dataReceived","params": no JSON at all')
        await browser.send(said("Network.loadingFailed"))
        await browser.wait_closed()

    async with connected(talk, unread=("Network.data",)) as (_, events):
        assert await events.get() == ("Network.loadingFailed", {}, None)


async def test_fragments_and_a_large_message_arrive_whole_and_a_ping_is_answered() -> None:
    large = "x" * 20_000_000

    async def talk(browser: ServerConnection) -> None:
        await (await browser.ping())
        whole = said("Pieces", text="x" * 1000)
        await browser.send([whole[at : at + 90] for at in range(0, len(whole), 90)])
        await browser.send(said("Large", text=large))
        await browser.wait_closed()

    async with connected(talk) as (_, events):
        assert (await events.get())[1] == {"text": "x" * 1000}
        assert (await events.get())[1] == {"text": large}


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


async def test_a_command_that_the_end_cuts_off_while_it_is_sent_fails_once_and_leaves_no_unread_error() -> None:
    complaints: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, complaint: complaints.append(complaint))
    socket: Any = ClosingSocket()
    connection = CdpConnection(socket, lambda *_: None)
    with pytest.raises(CdpClosed):
        await connection.send("Fetch.enable")
    gc.collect()
    assert complaints == []


@pytest.mark.parametrize("how", ["goodbye", "cut"])
async def test_a_command_that_the_end_cuts_off_fails_once_and_leaves_no_unread_error(how: str) -> None:
    complaints: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, complaint: complaints.append(complaint))

    async def talk(browser: ServerConnection) -> None:
        await browser.recv()
        if how == "cut":
            browser.transport.abort()
        else:
            await browser.close()

    async with connected(talk) as (connection, _):
        with pytest.raises(CdpClosed, match="closed"):
            await connection.send("Fetch.enable")
        await connection.closed.wait()
        with pytest.raises(CdpClosed, match="closed"):
            await connection.send("Fetch.enable")
    gc.collect()
    assert complaints == []


async def test_a_command_that_cannot_be_written_down_is_not_waited_for() -> None:
    async with connected(lambda browser: browser.wait_closed()) as (connection, _):
        with pytest.raises(TypeError):
            await connection.send("Fetch.enable", {"what": object()})
        assert connection._waiting == {}


async def test_a_fault_of_ours_at_an_event_ends_the_connection() -> None:
    """So that the relay shuts: a gate that dropped one event would have let a request wait, or pass, unseen."""
    asyncio.get_running_loop().set_exception_handler(lambda *_: None)

    async def talk(browser: ServerConnection) -> None:
        await browser.send(said("A"))
        await browser.wait_closed()

    def fail(*_: object) -> None:
        raise ZeroDivisionError

    async with serve(talk, "127.0.0.1", 0) as server:
        connection = await CdpConnection.open(f"ws://127.0.0.1:{server.sockets[0].getsockname()[1]}/", fail)
        async with asyncio.timeout(5):
            await connection.closed.wait()


async def _refuses(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.readuntil(b"\r\n\r\n")
    writer.write(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n")


async def _refuses_until_the_end(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.readuntil(b"\r\n\r\n")
    writer.write(b"HTTP/1.1 403 Forbidden\r\n\r\nno")


async def _hangs_up(reader: asyncio.StreamReader, _writer: asyncio.StreamWriter) -> None:
    await reader.readuntil(b"\r\n\r\n")


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (_refuses, "HTTP 403"),
        (_refuses_until_the_end, "HTTP 403"),
        (_hangs_up, "did not receive|handshake"),
    ],
)
async def test_who_does_not_answer_as_a_browser_is_named(answer: Callable[..., Awaitable[None]], why: str) -> None:
    done = asyncio.Event()

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await answer(reader, writer)
        writer.close()
        done.set()

    async with await asyncio.start_server(handle, "127.0.0.1", 0) as server:
        url = f"ws://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
        with pytest.raises(CdpClosed, match=f"no browser answers at {url}: .*({why})"):
            await CdpConnection.open(url, lambda *_: None)
        await done.wait()


async def test_nobody_at_the_port_is_said() -> None:
    with pytest.raises(CdpClosed, match=r"no browser answers at ws://127\.0\.0\.1:1/"):
        await CdpConnection.open("ws://127.0.0.1:1/", lambda *_: None)


@pytest.mark.parametrize(
    "url", ["ws://agent:s3cret@127.0.0.1:1/x?token=s3cret", "ws://127.0.0.1:1/x?token=s3cret", "ws://a:s3cret@:x/"]
)
async def test_no_password_and_no_token_of_an_endpoint_is_shown(url: str) -> None:
    with pytest.raises(CdpClosed) as caught:
        await CdpConnection.open(url, lambda *_: None)
    assert "s3cret" not in str(caught.value)


async def test_nor_of_a_debugging_port_that_does_not_answer() -> None:
    with pytest.raises(WireTooWeak) as caught:
        await socket_url("http://agent:s3cret@127.0.0.1:1", 0)
    assert "http://127.0.0.1:1 " in str(caught.value)
    assert "s3cret" not in str(caught.value)
