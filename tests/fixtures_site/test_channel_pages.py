"""What the channel pages need of the shop: sinks that count by any verb, sockets and datagrams counted too."""

from __future__ import annotations

import json
import re
import socket
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit
from urllib.request import ProxyHandler, Request, build_opener

import pytest

from browsermw.testing.channels import CHANNELS
from tests.shop_site import Shop

if TYPE_CHECKING:
    from collections.abc import Iterator

OPENER = build_opener(ProxyHandler({}))
HELLO = bytes.fromhex("818537fa213d7f9f4d5158")
"""RFC 6455, section 5.7: a masked text frame that says Hello."""


@pytest.fixture(scope="module")
def shop() -> Iterator[Shop]:
    with Shop.start() as started:
        yield started


def ask(url: str, method: str = "GET", body: bytes | None = None) -> tuple[str, dict[str, str]]:
    with OPENER.open(Request(url, body, method=method), timeout=10) as answer:  # noqa: S310 - the shop's own address
        return answer.read().decode(), dict(answer.headers)


def upgraded(shop: Shop, path: str) -> tuple[socket.socket, bytes]:
    place = urlsplit(shop.url)
    connection = socket.create_connection((place.hostname, place.port), timeout=10)
    head = f"GET {path} HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    connection.sendall(f"{head}Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n".encode())
    answer = b""
    while b"\r\n\r\n" not in answer:
        answer += connection.recv(4096)
    return connection, answer


@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "PATCH", "DELETE"])
def test_a_sink_counts_every_verb_and_keeps_no_body(shop: Shop, method: str) -> None:
    ask(f"{shop.url}/sink/{method}.fetch", method, b"x" * 100)
    [came] = shop.wait_for(f"/sink/{method}.*", method=None)
    assert (came["method"], came["body"], came["body_length"]) == (method, "", 100)
    assert came["began_at"] <= came["arrived_at"]


def test_arrivals_are_asked_for_by_one_nonce(shop: Shop) -> None:
    for name in ("one.a", "one.b", "other.a"):
        ask(f"{shop.url}/sink/{name}", "POST", b"")
    assert [it["path"] for it in shop.wait_for("/sink/one.*", 2, method=None)] == ["/sink/one.a", "/sink/one.b"]
    assert shop.count("/sink/one", None) == 0


def test_frames_of_a_socket_are_counted_one_by_one(shop: Shop) -> None:
    connection, answer = upgraded(shop, "/sink/ws.websocket-after")
    with connection:
        assert b"101" in answer.splitlines()[0]
        assert b"Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=" in answer
        connection.sendall(HELLO + HELLO)
        frames = shop.wait_for("/sink/ws.*", 2, "FRAME")
    assert [frame["body"] for frame in frames] == ["Hello", "Hello"]


@pytest.mark.parametrize("size", [200, 70_000], ids=["16 bits of length", "64 bits of length"])
def test_long_frames_are_read_whole(shop: Shop, size: int) -> None:
    length = bytes([0x80 | 126]) + size.to_bytes(2) if size < 65536 else bytes([0x80 | 127]) + size.to_bytes(8)
    connection, _ = upgraded(shop, f"/sink/{size}.websocket-after")
    with connection:
        connection.sendall(b"\x82" + length + bytes(4) + b"y" * size)
        [frame] = shop.wait_for(f"/sink/{size}.*", 1, "FRAME")
    assert frame["body_length"] == size


def test_a_frame_that_breaks_off_is_no_frame(shop: Shop) -> None:
    connection, _ = upgraded(shop, "/sink/cut.websocket-after")
    with connection:
        connection.sendall(HELLO + HELLO[:-1])
    shop.wait_for("/sink/cut.*", 1, "FRAME")
    ask(f"{shop.url}/sink/cut.after", "POST", b"")
    assert shop.count("/sink/cut.*", "FRAME") == 1


@pytest.mark.parametrize(
    ("payload", "name"),
    [(bytes(4) + bytes.fromhex("2112a442") + bytes(12), "webrtc"), (b"\xc0" + bytes(1199), "webtransport")],
    ids=["STUN", "QUIC"],
)
def test_a_datagram_counts_for_the_last_page_of_its_kind(shop: Shop, payload: bytes, name: str) -> None:
    ask(f"{shop.url}/channels/webtransport?nonce=udp")
    page, _ = ask(f"{shop.url}/channels/webrtc?nonce=udp")
    found = re.search(r"stun:127\.0\.0\.1:(\d+)", page)
    assert found is not None
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        sender.sendto(payload, ("127.0.0.1", int(found[1])))
    [datagram] = shop.wait_for(f"/sink/udp.{name}", method="DATAGRAM")
    assert datagram["body_length"] == len(payload)


def test_every_channel_that_a_page_fires_has_one(shop: Shop) -> None:
    for channel in CHANNELS:
        if channel.group == "API calls" and channel.name != "route-fetch":
            continue
        page, headers = ask(f"{shop.url}/channels/{channel.name}?nonce=aa")
        sends = "function go() {  }" not in page or f"/sink/aa.{channel.name}" in page or bool(sent_by(headers))
        assert sends, f"the page of {channel.name} sends nothing"


def sent_by(headers: dict[str, Any]) -> str:
    return json.dumps(headers.get("Content-Security-Policy", "")).strip('"')
