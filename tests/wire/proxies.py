"""Two small proxies of the kind that agents sit behind, HTTP CONNECT and SOCKS5, both with credentials."""

from __future__ import annotations

import asyncio
import base64
import contextlib
from typing import Self

USERNAME = "agent"
PASSWORD = "s3cret"


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while chunk := await reader.read(65536):
            writer.write(chunk)
            await writer.drain()
        writer.write_eof()


class _Proxy:
    """Connects every tunnel to one address when `reroute_port` is given, as if it were the named target.

    The HTTP one lets everybody in where `asks` is false.
    """

    def __init__(self, *, reroute_port: int | None = None, asks: bool = True) -> None:
        self.asks = asks
        self.asked: list[tuple[str, int]] = []
        self.port = 0
        self._reroute_port = reroute_port
        self._tasks: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._server.wait_closed()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.ensure_future(self._serve(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        try:
            with contextlib.suppress(OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
                await task
        finally:
            writer.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        raise NotImplementedError

    async def _tunnel(
        self,
        host: str,
        port: int,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        granted: list[bytes],
    ) -> None:
        self.asked.append((host, port))
        if self._reroute_port is not None:
            host, port = "127.0.0.1", self._reroute_port
        far_reader, far_writer = await asyncio.open_connection(host, port)
        try:
            for piece in granted:
                writer.write(piece)
                await asyncio.sleep(0.02)
            await asyncio.gather(_pump(reader, far_writer), _pump(far_reader, writer))
        finally:
            far_writer.close()


class HttpProxy(_Proxy):
    """Sends its reply in two pieces, as proxies may."""

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        token = base64.b64encode(f"{USERNAME}:{PASSWORD}".encode()).decode()
        if f"Proxy-Authorization: Basic {token}\r\n" not in head and self.asks:
            writer.write(b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n")
            return
        host, _, port = head.split(" ")[1].rpartition(":")
        granted = [b"HTTP/1.1 200 Connection established\r\n", b"Via: 1.1 test\r\n\r\n"]
        await self._tunnel(host.strip("[]"), int(port), reader, writer, granted)


class Socks5Proxy(_Proxy):
    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        _, count = await reader.readexactly(2)
        assert 2 in await reader.readexactly(count)
        writer.write(b"\x05\x02")
        _, size = await reader.readexactly(2)
        username = await reader.readexactly(size)
        password = await reader.readexactly((await reader.readexactly(1))[0])
        is_known = (username, password) == (USERNAME.encode(), PASSWORD.encode())
        writer.write(b"\x01\x00" if is_known else b"\x01\x01")
        if not is_known:
            return
        _, _, _, kind = await reader.readexactly(4)
        if kind == 3:
            host = (await reader.readexactly((await reader.readexactly(1))[0])).decode()
        else:
            host = ".".join(str(byte) for byte in await reader.readexactly(4))
        port = int.from_bytes(await reader.readexactly(2), "big")
        try:
            await self._tunnel(host, port, reader, writer, [b"\x05\x00\x00\x01\x00\x00\x00\x00\x00\x00"])
        except ConnectionRefusedError:
            writer.write(b"\x05\x05\x00\x01\x00\x00\x00\x00\x00\x00")
