from __future__ import annotations

import ipaddress
import itertools

from hypothesis import given
from hypothesis import strategies as st

from browsermw.wire.socks import Handshake, Target

_GREETING = b"\x05\x01\x00"
_NAMES = st.text("abcdefghijklmnopqrstuvwxyz0123456789-._", min_size=1, max_size=255)


def feed_in_pieces(stream: bytes, cuts: list[int]) -> tuple[Handshake, bytes]:
    handshake, answer = Handshake(), b""
    edges = sorted({0, len(stream), *(cut % (len(stream) + 1) for cut in cuts)})
    for start, end in itertools.pairwise(edges):
        answer += handshake.feed(stream[start:end])
    return handshake, answer


def is_sound(stream: bytes, target: Target) -> bool:
    """An independent reading of what a CONNECT for this target looks like at the head of a stream."""
    methods_end = 2 + stream[1]
    request = stream[methods_end:]
    if stream[0] != 5 or 0 not in stream[2:methods_end] or request[:2] != b"\x05\x01":
        return False
    if request[3] == 3:
        address = bytes([len(target.host)]) + target.host.encode()
        given_address = request[4 : 4 + len(address)].lower()
    else:
        address = ipaddress.ip_address(target.host).packed
        given_address = request[4 : 4 + len(address)]
    end = 4 + len(address)
    return given_address == address and request[end : end + 2] == target.port.to_bytes(2, "big")


_NEAR_MISSES = st.tuples(
    st.sampled_from([_GREETING, b"\x05\x02\x02\x00", b"\x05\x00", b"\x05\x01\x02", b"\x04\x01"]),
    st.binary(max_size=3).map(lambda rest: b"\x05" + rest) | st.just(b"\x05\x01\x00"),
    st.sampled_from([b"\x01", b"\x03", b"\x04", b"\x02", b"\x03\x05", b"\x03\x00"]),
    st.binary(max_size=30),
).map(b"".join)


@given(stream=st.binary(max_size=600) | _NEAR_MISSES, cuts=st.lists(st.integers(0, 600), max_size=10))
def test_any_bytes_in_any_pieces_are_read_alike_and_nonsense_is_not_accepted(stream: bytes, cuts: list[int]) -> None:
    pieced, pieced_answer = feed_in_pieces(stream, cuts)
    whole, whole_answer = feed_in_pieces(stream, [])
    assert (pieced.target, pieced.failed, pieced.surplus) == (whole.target, whole.failed, whole.surplus)
    assert pieced_answer == whole_answer
    assert not (whole.failed and whole.target)
    if whole.target is not None:
        assert whole.target.port
        assert is_sound(stream, whole.target)


@given(
    host=_NAMES | st.ip_addresses().map(str),
    port=st.integers(1, 65535),
    surplus=st.binary(max_size=20),
    cuts=st.lists(st.integers(0, 300), max_size=5),
)
def test_a_sound_connect_is_understood(host: str, port: int, surplus: bytes, cuts: list[int]) -> None:
    stream = _GREETING + bytes([5, 1, 0, 3, len(host)]) + host.encode() + port.to_bytes(2, "big") + surplus
    handshake, answer = feed_in_pieces(stream, cuts)
    assert (handshake.target, handshake.surplus, answer) == (Target(host, port), surplus, b"\x05\x00")


@given(address=st.ip_addresses(), port=st.integers(1, 65535))
def test_raw_addresses_are_understood(address: ipaddress.IPv4Address | ipaddress.IPv6Address, port: int) -> None:
    kind = 1 if address.version == 4 else 4
    handshake, _ = feed_in_pieces(_GREETING + bytes([5, 1, 0, kind]) + address.packed + port.to_bytes(2, "big"), [])
    assert handshake.target == Target(str(address), port)


def test_a_name_with_control_bytes_or_a_path_is_refused() -> None:
    for name in (b"a\r\nb", b"a/b", b"user@host", b"\xff\xfe", b"a b"):
        handshake, answer = feed_in_pieces(_GREETING + bytes([5, 1, 0, 3, len(name)]) + name + b"\x00\x50", [])
        assert handshake.failed
        assert answer[2:4] == b"\x05\x01"
