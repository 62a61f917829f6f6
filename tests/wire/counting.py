"""A small HTTP/1.1 server that counts arrivals and breaks connections in the ways that servers do."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
import struct
from collections import Counter
from typing import Self

import trustme

_PAGE = b"<!doctype html><title>shop</title><p>ready</p>"


def server_pem() -> bytes:
    """A key and its certificate chain, signed by nobody that a browser knows."""
    leaf = trustme.CA().issue_cert("127.0.0.1", "localhost", "shop.test")
    return leaf.private_key_and_cert_chain_pem.bytes()


def server_tls() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    trustme.CA().issue_cert("127.0.0.1", "localhost", "shop.test").configure_cert(context)
    return context


class CountingServer:
    """Answers GET with a page that keeps the connection, and POST /<manner> by ending the connection so.

    Attributes:
        arrivals: How often each "METHOD /path" was read in full.
    """

    def __init__(self, tls: ssl.SSLContext | None = None) -> None:
        self.arrivals: Counter[str] = Counter()
        self.port = 0
        self.is_tls = tls is not None
        self._has_arrived = asyncio.Condition()
        self._tls = tls
        self._writers: set[asyncio.StreamWriter] = set()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=self._tls)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for writer in list(self._writers):
            writer.transport.abort()
        await self._server.wait_closed()

    @property
    def url(self) -> str:
        return f"{'https' if self.is_tls else 'http'}://127.0.0.1:{self.port}/"

    def close_connections(self) -> None:
        for writer in self._writers:
            writer.close()

    async def arrived(self, what: str) -> None:
        async with self._has_arrived, asyncio.timeout(10):
            await self._has_arrived.wait_for(lambda: self.arrivals[what] > 0)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        writer.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            with contextlib.suppress(OSError, asyncio.IncompleteReadError):
                while await self._answer(reader, writer):
                    pass
        finally:
            writer.close()
            self._writers.discard(writer)

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        method, path, _ = head.split("\r\n", 1)[0].split(" ")
        size = next((int(line[15:]) for line in head.lower().split("\r\n") if line.startswith("content-length:")), 0)
        await reader.readexactly(size)
        self.arrivals[f"{method} {path}"] += 1
        async with self._has_arrived:
            self._has_arrived.notify_all()
        manner = path.strip("/").split("/")[0]
        if manner == "favicon.ico" or not manner:
            writer.write(
                b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: %d\r\n\r\n" % len(_PAGE) + _PAGE
            )
            return True
        return await self._end(writer, manner, attempt=self.arrivals[f"{method} {path}"])

    async def _end(self, writer: asyncio.StreamWriter, manner: str, attempt: int) -> bool:
        """End the connection in the named manner; answer a second attempt, so that a re-send shows."""
        if attempt > 1 or manner == "ok":
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
            return True
        first, _, last = manner.rpartition("-")
        if manner == "never":
            await asyncio.Event().wait()
        if first == "torn":
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Le")
            await asyncio.sleep(0.05)
        if first == "hints":
            writer.write(b"HTTP/1.1 103 Early Hints\r\nX: y\r\n\r\n")
            await asyncio.sleep(0.05)
        if first == "late":
            await asyncio.sleep(0.3)
        if first == "body":
            writer.write(b"HTTP/1.1 200 OK\r\n\r\nuntil the end")
            await asyncio.sleep(0.05)
        if last == "408":
            writer.write(b"HTTP/1.1 408 Request Timeout\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")
        if last == "rst":
            raw = writer.get_extra_info("socket")
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            writer.transport.abort()
        if last == "bare":  # TLS without a farewell
            writer.get_extra_info("socket").shutdown(socket.SHUT_WR)
        return False
