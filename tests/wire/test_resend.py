from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from browsermw.wire.resend import HTTP_POISON, TLS_POISON, Exchange

_REQUEST = b"POST / HTTP/1.1\r\nHost: shop.test\r\nContent-Length: 0\r\n\r\n"
_FAREWELL_SIZE = 19


def record(kind: int, size: int) -> bytes:
    return bytes([kind, 3, 3]) + size.to_bytes(2, "big") + bytes(size)


_CLIENT_HELLO = record(22, 500)
_SERVER_FLIGHT = record(22, 90) + record(20, 1) + record(23, 900)
_FINISHED = record(20, 1) + record(23, 53)
_FAREWELL = record(23, _FAREWELL_SIZE)


def pieces(stream: bytes, cuts: list[int]) -> list[bytes]:
    edges = sorted({0, len(stream), *(cut % (len(stream) + 1) for cut in cuts)})
    return [stream[start:end] for start, end in itertools.pairwise(edges)]


def encrypted(first_request: bytes, at: float = 1.0) -> Exchange:
    """A TLS 1.3 connection on which a first request was sent and, on HTTP/1.1, answered."""
    exchange = Exchange()
    exchange.sent(_CLIENT_HELLO, 0.0)
    exchange.received(_SERVER_FLIGHT, None)
    exchange.sent(_FINISHED + first_request, 0.0)
    exchange.received(record(23, 300), None)
    exchange.sent(record(23, 400), at)
    return exchange


_cuts = st.lists(st.integers(0, 10_000), max_size=8)
_streams = st.one_of(
    st.binary(max_size=200),
    st.lists(st.builds(record, st.sampled_from([20, 21, 22, 23, 24]), st.integers(0, 60)), max_size=6).map(b"".join),
    st.lists(
        st.sampled_from([b"HTTP/1.1 ", b"200", b"103", b"101", b"408", b" OK", b"\r\n", b"\r\n\r\n", b"\n\n", b"body"]),
        max_size=10,
    ).map(b"".join),
)


@given(
    first=st.sampled_from([_REQUEST, _CLIENT_HELLO, b"\x00"]),
    stream=_streams,
    cuts=_cuts,
    is_reset=st.booleans(),
)
def test_without_an_effect_in_doubt_every_byte_passes(
    first: bytes, stream: bytes, cuts: list[int], is_reset: bool
) -> None:
    exchange = Exchange()
    exchange.sent(first, 1.0)
    passed = b"".join(exchange.received(piece, None) for piece in pieces(stream, cuts))
    assert passed + exchange.ending(None, is_reset=is_reset) == stream
    assert not exchange.over


@given(stream=_streams, cuts=_cuts)
def test_in_doubt_what_passes_is_a_beginning_of_what_came(stream: bytes, cuts: list[int]) -> None:
    for first in (_REQUEST, _CLIENT_HELLO):
        exchange = Exchange()
        exchange.sent(first, 1.0)
        passed = b""
        for piece in pieces(stream, cuts):
            if not exchange.over:
                passed += exchange.received(piece, 1.0)
        assert stream.startswith(passed)


@given(cuts=_cuts, is_reset=st.booleans(), first_size=st.sampled_from([87, 700]))
def test_a_farewell_in_doubt_is_replaced_however_it_arrives(cuts: list[int], is_reset: bool, first_size: int) -> None:
    exchange = encrypted(record(23, first_size))
    passed = b"".join(exchange.received(piece, 1.0) for piece in pieces(_FAREWELL, cuts) if not exchange.over)
    assert (passed, exchange.over) == (b"", True)
    assert exchange.ending(1.0, is_reset=is_reset) == TLS_POISON


def test_a_record_cut_short_is_completed_so_that_the_poison_is_read() -> None:
    exchange = encrypted(record(23, 700))
    exchange.received(record(23, 100)[:50], 1.0)
    assert exchange.ending(1.0, is_reset=False) == bytes(55) + TLS_POISON


def test_an_http2_answer_to_another_request_settles_nothing() -> None:
    exchange = encrypted(record(23, 87))
    exchange.received(record(23, 4000), 1.0)
    assert exchange.ending(1.0, is_reset=False) == TLS_POISON


def test_an_http1_answer_inside_tls_keeps_its_end() -> None:
    """Its body may be delimited by it."""
    exchange = encrypted(record(23, 700))
    assert exchange.received(record(23, 4000) + _FAREWELL, 1.0) == record(23, 4000) + _FAREWELL
    assert exchange.ending(1.0, is_reset=False) == b""


@pytest.mark.parametrize("first_size", [87, 700])
def test_what_was_sent_before_the_effect_keeps_its_retry(first_size: int) -> None:
    exchange = encrypted(record(23, first_size), at=1.0)
    assert exchange.ending(2.0, is_reset=True) == b""


def test_a_failed_handshake_is_shown_as_it_is() -> None:
    """It carries no request, and its error tells that nothing was sent."""
    exchange = Exchange()
    exchange.sent(_CLIENT_HELLO, 1.0)
    assert exchange.received(record(21, 2), 1.0) == record(21, 2)
    assert exchange.ending(1.0, is_reset=False) == b""


def test_tls_1_2_requests_are_recognised() -> None:
    exchange = Exchange()
    exchange.sent(_CLIENT_HELLO, 1.0)
    exchange.received(record(22, 3000), 1.0)
    exchange.sent(record(22, 37) + record(20, 1) + record(22, 40), 1.0)
    exchange.received(record(20, 1) + record(22, 40), 1.0)
    assert exchange.ending(1.0, is_reset=False) == b""
    exchange.sent(record(23, 500), 1.0)
    assert exchange.received(record(21, 26), 1.0) == b""
    assert exchange.ending(1.0, is_reset=False) == TLS_POISON


@pytest.mark.parametrize("answer", [b"", b"HT", b"HTTP/1.1 200 OK\r\nX: y", b"HTTP/1.1 408 Request Timeout\r\n\r\n"])
@pytest.mark.parametrize("hints", [b"", b"HTTP/1.1 103 Early Hints\r\nX: y\r\n\r\n"])
def test_a_plain_answer_that_never_came_whole_is_replaced(hints: bytes, answer: bytes) -> None:
    exchange = Exchange()
    exchange.sent(_REQUEST, 1.0)
    if hints + answer:
        assert exchange.received(hints + answer, 1.0) == hints
    assert exchange.ending(1.0, is_reset=False) == HTTP_POISON


def test_an_upgraded_connection_is_left_alone() -> None:
    exchange = Exchange()
    exchange.sent(_REQUEST, 1.0)
    exchange.received(b"HTTP/1.1 101 Switching Protocols\r\n\r\n", 1.0)
    exchange.sent(b"frame", 1.0)
    assert exchange.ending(1.0, is_reset=True) == b""


_ALERT = 19


@given(
    records=st.lists(st.tuples(st.sampled_from([20, 21, 22, 23]), st.integers(0, 40)), max_size=6),
    cuts=_cuts,
)
def test_what_a_browser_sends_before_its_first_request_is_never_more_than_an_alert(
    records: list[tuple[int, int]], cuts: list[int]
) -> None:
    exchange = Exchange()
    exchange.sent(_CLIENT_HELLO, 0.0)
    exchange.received(_SERVER_FLIGHT, None)
    for chunk in filter(None, pieces(b"".join(record(*it) for it in records), cuts)):
        exchange.sent(chunk, 0.0)
    sizes = [size for kind, size in records if kind == 23]
    if len(sizes) < 2:
        assert exchange.may_hold_request is (sum(sizes) > _ALERT)
    else:
        assert exchange.may_hold_request


def test_whatever_follows_the_handshake_of_tls_1_2_may_be_a_request() -> None:
    """Its alerts are told by their kind, and some ciphers of it make records as short as an alert's of TLS 1.3."""
    exchange = Exchange()
    exchange.sent(_CLIENT_HELLO, 0.0)
    exchange.received(record(22, 90) + record(22, 4), None)
    exchange.sent(record(22, 37) + record(20, 1) + record(22, 40) + record(21, 26), 0.0)
    assert not exchange.may_hold_request
    exchange.sent(record(23, 17), 0.0)
    assert exchange.may_hold_request


@pytest.mark.parametrize("sent", [_REQUEST, b"P", b"\x00", _CLIENT_HELLO + b"plain"])
def test_what_is_no_tls_may_be_a_request(sent: bytes) -> None:
    exchange = Exchange()
    exchange.sent(sent, 0.0)
    assert exchange.may_hold_request


def test_a_connection_that_once_held_a_request_always_does() -> None:
    exchange = encrypted(record(23, 400))
    assert exchange.may_hold_request
