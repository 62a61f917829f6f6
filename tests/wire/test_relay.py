from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
import sys
from ipaddress import ip_address
from typing import TYPE_CHECKING, cast

import pytest

from browsermw.wire import tunnel
from browsermw.wire.relay import Relay, Upstream
from tests.wire.proxies import PASSWORD, USERNAME, HttpProxy, Socks5Proxy

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator


class Origin:
    """A server that records what it receives and does what the test asks."""

    def __init__(self) -> None:
        self.connections: asyncio.Queue[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = asyncio.Queue()
        self.connection_count = 0
        self.port = 0
        self._writers: list[asyncio.StreamWriter] = []

    def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connection_count += 1
        self._writers.append(writer)
        self.connections.put_nowait((reader, writer))

    def close(self) -> None:
        for writer in self._writers:
            writer.transport.abort()


@pytest.fixture
async def origin() -> AsyncIterator[Origin]:
    origin = Origin()
    server = await asyncio.start_server(origin.accept, "127.0.0.1", 0)
    origin.port = server.sockets[0].getsockname()[1]
    yield origin
    server.close()
    origin.close()
    await server.wait_closed()


@pytest.fixture(autouse=True)
async def loop_errors() -> AsyncIterator[list[str]]:
    """Nothing that a peer does may end as an unhandled error in the loop."""
    seen: list[str] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: seen.append(str(context)))
    yield seen
    assert seen == []


@pytest.fixture
def free_port() -> Iterator[int]:
    """A port that refuses connections: bound, never listening."""
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        yield unused.getsockname()[1]


def connect_bytes(host: str, port: int, *, command: int = 1) -> bytes:
    return b"\x05\x01\x00" + bytes([5, command, 0, 3, len(host)]) + host.encode() + struct.pack("!H", port)


async def ask(relay: Relay, request: bytes) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Connect to the relay, send greeting and request, take the greeting's answer."""
    reader, writer = await asyncio.open_connection(relay.host, relay.port)
    writer.write(request)
    assert await reader.readexactly(2) == b"\x05\x00"
    return reader, writer


async def reach(relay: Relay, host: str, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    reader, writer = await ask(relay, connect_bytes(host, port))
    assert (await reader.readexactly(10))[1] == 0
    return reader, writer


async def reply_code(relay: Relay, host: str, port: int) -> int:
    reader, writer = await ask(relay, connect_bytes(host, port))
    code = (await reader.readexactly(10))[1]
    assert await reader.read() == b""
    writer.close()
    return code


async def is_cut(reader: asyncio.StreamReader) -> bool:
    try:
        return await reader.read() == b""
    except ConnectionResetError:
        return True


# Admission.


async def test_nothing_is_dialled_before_the_gate_and_nothing_is_lost_after(relay: Relay, origin: Origin) -> None:
    reader, writer = await ask(relay, connect_bytes("127.0.0.1", origin.port))
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(reader.readexactly(1), 0.2)
    assert origin.connection_count == 0
    relay.open()
    assert (await reader.readexactly(10))[1] == 0
    far_reader, far_writer = await origin.connections.get()
    writer.write(b"question")
    assert await far_reader.readexactly(8) == b"question"
    far_writer.write(b"answer")
    assert await reader.readexactly(6) == b"answer"
    assert (relay.connection_count, relay.forwarded_byte_count) == (1, 14)
    writer.close()


async def test_bytes_sent_before_the_reply_reach_the_target(relay: Relay, origin: Origin) -> None:
    reader, writer = await ask(relay, connect_bytes("127.0.0.1", origin.port) + b"early")
    relay.open()
    far_reader, _ = await origin.connections.get()
    assert await far_reader.readexactly(5) == b"early"
    assert (await reader.readexactly(10))[1] == 0
    writer.close()


async def test_shut_cuts_what_flows_and_refuses_what_comes_until_open(relay: Relay, origin: Origin) -> None:
    relay.open()
    reader, writer = await reach(relay, "127.0.0.1", origin.port)
    far_reader, _ = await origin.connections.get()
    relay.shut("gate lost")
    writer.write(b"too late")
    assert await is_cut(reader)
    assert await is_cut(far_reader)
    assert await reply_code(relay, "127.0.0.1", origin.port) == 2
    assert origin.connection_count == 1
    relay.open()
    _, again = await reach(relay, "127.0.0.1", origin.port)
    assert origin.connection_count == 2
    writer.close()
    again.close()


async def test_what_waited_for_the_gate_is_cut_with_the_rest(relay: Relay, origin: Origin) -> None:
    reader, writer = await ask(relay, connect_bytes("127.0.0.1", origin.port))
    relay.shut("gate lost")
    assert await is_cut(reader)
    relay.open()
    _, other = await reach(relay, "127.0.0.1", origin.port)
    assert origin.connection_count == 1
    writer.close()
    other.close()


async def test_shut_drops_what_the_server_has_not_taken(relay: Relay, origin: Origin) -> None:
    relay.open()
    _, writer = await reach(relay, "127.0.0.1", origin.port)
    far_reader, far_writer = await origin.connections.get()
    cast("asyncio.ReadTransport", far_writer.transport).pause_reading()
    writer.write(bytes(64 * 2**20))
    before = -1
    while before != relay.forwarded_byte_count:
        before = relay.forwarded_byte_count
        await asyncio.sleep(0.1)
    relay.shut("gate lost")
    await asyncio.sleep(0)
    with contextlib.suppress(RuntimeError):
        cast("asyncio.ReadTransport", far_writer.transport).resume_reading()
    with pytest.raises(ConnectionResetError):  # which also drops what the kernel held
        await far_reader.readexactly(before)
    writer.transport.abort()


async def test_the_first_connection_is_announced_once(relay: Relay) -> None:
    calls: list[int] = []
    relay.on_first_connection(lambda: calls.append(relay.connection_count))
    for _ in range(2):
        _, writer = await ask(relay, b"\x05\x01\x00")
        writer.close()
    assert calls == [1]


async def test_a_connection_that_came_before_the_callback_is_announced_too(relay: Relay) -> None:
    _, writer = await ask(relay, b"\x05\x01\x00")
    called = asyncio.Event()
    relay.on_first_connection(called.set)
    await asyncio.wait_for(called.wait(), 1)
    writer.close()


# The handshake on a socket; every byte string is tried in test_socks.py.


async def test_other_commands_are_answered_as_unsupported(relay: Relay) -> None:
    relay.open()
    for command in (2, 3):
        reader, writer = await ask(relay, connect_bytes("127.0.0.1", 80, command=command))
        assert (await reader.readexactly(10))[1] == 7
        assert await reader.read() == b""
        writer.close()


@pytest.mark.parametrize(
    "nonsense", [b"GET / HTTP/1.1\r\n\r\n", b"\x04\x01\x00\x50\x7f\x00\x00\x01\x00", b"\x05\x01\x02"]
)
async def test_a_malformed_handshake_is_closed(relay: Relay, nonsense: bytes) -> None:
    relay.open()
    reader, writer = await asyncio.open_connection(relay.host, relay.port)
    writer.write(nonsense)
    assert await reader.read() in {b"", b"\x05\xff"}
    writer.close()


async def test_a_slow_handshake_is_cut(relay: Relay, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tunnel, "HANDSHAKE_TIMEOUT_S", 0.1)
    reader, writer = await ask(relay, b"\x05\x01\x00")
    assert await is_cut(reader)
    writer.close()


# Targets.


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "app.localhost"])
async def test_names_are_resolved_here(relay: Relay, origin: Origin, host: str) -> None:
    relay.open()
    _, writer = await reach(relay, host, origin.port)
    await has_asked(writer, origin)
    assert relay.reached(host, origin.port, since=0)
    writer.close()


async def test_ipv6_addresses_are_reached(relay: Relay) -> None:
    relay.open()
    origin = Origin()
    try:
        server = await asyncio.start_server(origin.accept, "::1", 0)
    except OSError:
        pytest.skip("this machine has no IPv6 loopback")
    port = server.sockets[0].getsockname()[1]
    _, writer = await reach(relay, "::1", port)
    await has_asked(writer, origin)
    assert relay.reached("[::1]", port, since=0)
    writer.close()
    server.close()
    origin.close()
    await server.wait_closed()


async def test_a_refused_connection_is_told_apart_from_one_that_was_reached(
    relay: Relay, origin: Origin, free_port: int
) -> None:
    relay.open()
    since = asyncio.get_running_loop().time()
    assert await reply_code(relay, "127.0.0.1", free_port) == 5
    assert relay.connect_failure("127.0.0.1", free_port, since=since) == "refused"
    assert not relay.reached("127.0.0.1", free_port, since=since)
    assert relay.connect_failure("127.0.0.1", free_port, since=since + 60) is None
    assert relay.connect_failure("127.0.0.1", origin.port, since=since) is None


async def test_both_addresses_of_localhost_refusing_is_refused(relay: Relay, free_port: int) -> None:
    relay.open()
    assert await reply_code(relay, "localhost", free_port) == 5


@pytest.mark.parametrize("host", ["no-such-host.invalid", "a..b", "x" * 64 + ".test"])
async def test_an_unknown_host_is_told(relay: Relay, host: str) -> None:
    relay.open()
    assert await reply_code(relay, host, 80) == 4
    assert relay.connect_failure(host.upper(), 80, since=0) == "name_not_resolved"


async def test_a_dial_that_takes_too_long_is_a_timeout(monkeypatch: pytest.MonkeyPatch) -> None:
    async def never(*_: object, **__: object) -> None:
        await asyncio.Event().wait()

    relay = Relay(connect_timeout_s=0.1)
    await relay.start()
    relay.open()
    monkeypatch.setattr(asyncio.get_running_loop(), "sock_connect", never)
    async with asyncio.timeout(5):
        with socket.create_connection((relay.host, relay.port)) as client:
            client.sendall(connect_bytes("127.0.0.1", 9))
            assert await asyncio.to_thread(client.recv, 2) == b"\x05\x00"
            assert (await asyncio.to_thread(client.recv, 10))[1] == 6
    assert relay.connect_failure("127.0.0.1", 9, since=0) == "timeout"
    await relay.close()


async def has_asked(writer: asyncio.StreamWriter, origin: Origin) -> None:
    reader, _ = await origin.connections.get()
    writer.write(b"question")
    assert await reader.readexactly(8) == b"question"


HELLO = b"\x16\x03\x01\x00\x04" + bytes(4)
SERVER_FLIGHT = HELLO + b"\x17\x03\x03\x00\x20" + bytes(32)
ALERT = b"\x17\x03\x03\x00\x13" + bytes(19)


@pytest.mark.parametrize(
    ("hello", "rest", "reached"),
    [(b"", b"", False), (HELLO, b"", False), (HELLO, ALERT, False), (HELLO, ALERT + ALERT, True), (b"P", b"", True)],
    ids=["nothing", "greeting", "refused certificate", "more than that", "plain"],
)
async def test_a_connection_that_is_agreed_on_and_given_up_reached_nobody(
    relay: Relay, origin: Origin, hello: bytes, rest: bytes, reached: bool
) -> None:
    relay.open()
    reader, writer = await reach(relay, "127.0.0.1", origin.port)
    far_reader, far_writer = await origin.connections.get()
    writer.write(hello)
    await far_reader.readexactly(len(hello))
    far_writer.write(SERVER_FLIGHT)
    await reader.readexactly(len(SERVER_FLIGHT))
    writer.write(rest)
    await far_reader.readexactly(len(rest))
    writer.close()
    assert relay.reached("127.0.0.1", origin.port, since=0) is reached


async def test_only_what_the_browser_sends_counts_as_reaching(relay: Relay, origin: Origin) -> None:
    relay.open()
    loop = asyncio.get_running_loop()
    reader, writer = await reach(relay, "127.0.0.1", origin.port)
    far_reader, far_writer = await origin.connections.get()
    since = loop.time() + 1e-6
    far_writer.write(b"news")
    await reader.readexactly(4)
    assert not relay.reached("127.0.0.1", origin.port, since=since)
    writer.write(b"question")
    await far_reader.readexactly(8)
    assert relay.reached("127.0.0.1", origin.port, since=since)
    writer.close()


# Ends.


async def test_the_server_can_answer_after_the_client_has_finished(relay: Relay, origin: Origin) -> None:
    relay.open()
    reader, writer = await reach(relay, "127.0.0.1", origin.port)
    far_reader, far_writer = await origin.connections.get()
    writer.write(b"all")
    writer.write_eof()
    assert await far_reader.read() == b"all"
    far_writer.write(b"late answer")
    far_writer.write_eof()
    assert await reader.read() == b"late answer"
    writer.close()


async def test_nothing_is_forwarded_after_the_server_has_closed(relay: Relay, origin: Origin) -> None:
    """Chromium re-sends what it wrote into a connection that was closing, so it must not arrive as well."""
    relay.open()
    reader, writer = await reach(relay, "127.0.0.1", origin.port)
    far_reader, far_writer = await origin.connections.get()
    far_writer.write_eof()
    assert await reader.read() == b""
    relay.effect_released("127.0.0.1", origin.port)
    writer.write(b"POST / HTTP/1.1\r\n\r\n")
    writer.write_eof()
    assert await far_reader.read() == b""
    writer.close()


async def test_a_reset_stays_a_reset(relay: Relay, origin: Origin) -> None:
    """A body cut short must not look like one that ended."""
    relay.open()
    reader, writer = await reach(relay, "127.0.0.1", origin.port)
    _, far_writer = await origin.connections.get()
    far_writer.write(b"half")
    assert await reader.readexactly(4) == b"half"
    raw = far_writer.get_extra_info("socket")
    raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    far_writer.transport.abort()
    with pytest.raises(ConnectionResetError):
        await reader.read()
    writer.close()


async def test_a_client_that_goes_away_during_the_dial_leaves_nothing_behind(
    relay: Relay, origin: Origin, monkeypatch: pytest.MonkeyPatch
) -> None:
    dialling, stopped = asyncio.Event(), asyncio.Event()

    async def never(*_: object) -> socket.socket:
        dialling.set()
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()
        raise AssertionError

    monkeypatch.setattr("browsermw.wire.relay.dial", never)
    relay.open()
    _, writer = await ask(relay, connect_bytes("127.0.0.1", origin.port))
    await dialling.wait()
    writer.close()
    async with asyncio.timeout(5):
        await stopped.wait()
    assert origin.connection_count == 0


async def test_a_slow_reader_slows_the_server_instead_of_filling_memory(relay: Relay, origin: Origin) -> None:
    relay.open()
    reader, writer = await reach(relay, "127.0.0.1", origin.port)
    cast("asyncio.ReadTransport", writer.transport).pause_reading()
    _, far_writer = await origin.connections.get()
    size = 64 * 2**20
    far_writer.write(bytes(size))
    far_writer.write_eof()
    before = -1
    while before != relay.forwarded_byte_count:
        before = relay.forwarded_byte_count
        await asyncio.sleep(0.1)
    assert before < size / 2
    cast("asyncio.ReadTransport", writer.transport).resume_reading()
    received = 0
    while chunk := await reader.read(2**20):
        received += len(chunk)
    assert received == size
    writer.close()


async def test_close_cuts_what_is_left(origin: Origin) -> None:
    relay = Relay()
    await relay.start()
    relay.open()
    reader, writer = await reach(relay, "127.0.0.1", origin.port)
    waiting = await ask(relay, b"\x05\x01\x00")
    await relay.close()
    assert await is_cut(reader)
    assert await is_cut(waiting[0])
    with pytest.raises(ConnectionRefusedError):
        await asyncio.open_connection(relay.host, relay.port)
    writer.close()
    waiting[1].close()


# Through the caller's proxy.


def upstream_of(proxy: HttpProxy | Socks5Proxy, *, password: str = PASSWORD, bypass: str = "") -> Upstream:
    scheme = "http" if isinstance(proxy, HttpProxy) else "socks5"
    server = f"{scheme}://127.0.0.1:{proxy.port}"
    return Upstream.from_playwright({"server": server, "username": USERNAME, "password": password, "bypass": bypass})


@pytest.fixture(params=[HttpProxy, Socks5Proxy])
async def proxy(request: pytest.FixtureRequest) -> AsyncIterator[HttpProxy | Socks5Proxy]:
    async with request.param() as proxy:
        yield proxy


@contextlib.asynccontextmanager
async def relay_behind(upstream: Upstream) -> AsyncIterator[Relay]:
    relay = Relay(upstream=upstream)
    await relay.start()
    relay.open()
    yield relay
    await relay.close()


async def test_targets_are_reached_through_the_proxy(proxy: HttpProxy | Socks5Proxy, origin: Origin) -> None:
    """Also when an HTTP proxy replies in two pieces: none of it reaches the browser as the target's."""
    async with relay_behind(upstream_of(proxy)) as relay:
        reader, writer = await reach(relay, "localhost", origin.port)
        assert proxy.asked == [("localhost", origin.port)]  # resolved there, loopback or not
        far_reader, far_writer = await origin.connections.get()
        writer.write(b"question")
        assert await far_reader.readexactly(8) == b"question"
        far_writer.write(b"answer")
        assert await reader.readexactly(6) == b"answer"
        writer.close()


async def test_a_bypassed_target_goes_round_the_proxy(proxy: HttpProxy | Socks5Proxy, origin: Origin) -> None:
    async with relay_behind(upstream_of(proxy, bypass="other.test, localhost")) as relay:
        _, writer = await reach(relay, "localhost", origin.port)
        assert proxy.asked == []
        writer.close()


async def test_a_proxy_that_refuses_us_is_the_failure(proxy: HttpProxy | Socks5Proxy, origin: Origin) -> None:
    async with relay_behind(upstream_of(proxy, password="wrong")) as relay:
        assert await reply_code(relay, "127.0.0.1", origin.port) == 1
        assert relay.connect_failure("127.0.0.1", origin.port, since=0) == "proxy"
        assert origin.connection_count == 0


async def test_an_absent_proxy_is_the_failure_and_is_not_gone_round(origin: Origin, free_port: int) -> None:
    for scheme in ("http", "socks5"):
        upstream = Upstream.from_playwright({"server": f"{scheme}://127.0.0.1:{free_port}"})
        async with relay_behind(upstream) as relay:
            assert await reply_code(relay, "127.0.0.1", origin.port) == 1
            assert relay.connect_failure("127.0.0.1", origin.port, since=0) == "proxy"
    assert origin.connection_count == 0


async def test_a_target_that_refuses_behind_a_socks_proxy_is_refused(free_port: int) -> None:
    async with Socks5Proxy() as proxy, relay_behind(upstream_of(proxy)) as relay:
        assert await reply_code(relay, "127.0.0.1", free_port) == 5


async def test_two_relays_do_not_share_an_address_so_that_an_orphaned_browser_finds_no_way_out() -> None:
    relays = [Relay() for _ in range(3)]
    try:
        for relay in relays:
            await relay.start()
        hosts = {relay.host for relay in relays}
        assert all(ip_address(host).is_loopback for host in hosts)
        if sys.platform == "linux":
            assert len(hosts) == len(relays)
            assert "127.0.0.1" not in hosts
    finally:
        for relay in relays:
            await relay.close()
