"""Keeps Chromium from sending a request again by itself, by what it gets to see of a lost connection.

Chromium re-sends any request, POST included, when a kept-alive connection is closed or reset before an
answer, and no interception sees the second one. It does so for a few errors only. So where an effect may
have left on a connection that ends unanswered, the browser is given something it takes for a broken answer
instead of a closed connection: that fails the request for good. Everywhere else the end is passed on as it
came, and harmless requests keep their retry.

Pure: bytes and moments in, bytes out. Called by `tunnel` for each chunk of a connection. It must never add
a byte to a connection on which no effect is in doubt, nor to an answer that has begun, where it could pass
for content.

What the relay can read of a connection:

* Plain HTTP: the answer's head. It is passed on whole or not at all, so a torn head never counts as an
answer.
* TLS: the kinds and sizes of records. A server that closes in good order says farewell first, in an alert
record that looks like application data of two bytes; let through, it has the effect of a close. A browser
that does not believe the certificate sends such an alert and nothing else, and no request is as short as
that (measured for TLS 1.2 and 1.3, for Chromium and for Playwright's driver). HTTP/2 is told by the client's
first record, its preface, which is shorter than any HTTP/1.1 request; there answers to other requests say
nothing about the effect.
"""

from __future__ import annotations

from typing import Final

# Valid HTTP/1.1 up to two lengths that contradict each other: ERR_RESPONSE_HEADERS_MULTIPLE_CONTENT_LENGTH.
# Bytes that are no HTTP at all would do on most ports, but on port 80 Chromium takes them for an HTTP/0.9
# page: a 200.
HTTP_POISON: Final = (
    b"HTTP/1.1 502 Connection lost, not sent again\r\nConnection: close\r\n"
    b"Content-Length: 1\r\nContent-Length: 2\r\n\r\n"
)
TLS_POISON: Final = b"connection lost, not sent again\r\n"  # no record starts with "co": ERR_SSL_PROTOCOL_ERROR

_MAX_HEAD_SIZE: Final = 256 * 1024  # Chromium's own limit
_RECORD_HEAD_SIZE: Final = 5
_ALERT: Final = 21
_HANDSHAKE: Final = 22
_APPLICATION: Final = 23
_RECORD_KINDS: Final = range(20, 25)
_MAX_FAREWELL_SIZE: Final = 19  # TLS 1.3: two bytes of alert, one of type, sixteen of tag
_MAX_PREFACE_SIZE: Final = 200


class _Records:
    """Walks the heads of TLS records through chunks that fall anywhere."""

    def __init__(self) -> None:
        self.rest_size = 0  # of the record that is passing
        self.kind = 0
        self.size = 0
        self.torn_head = b""

    def next(self, stream: bytes, at: int) -> int | None:
        """Read the record head at `at`; the offset after that record, or None when it is torn or no TLS."""
        head = stream[at : at + _RECORD_HEAD_SIZE]
        if len(head) < _RECORD_HEAD_SIZE or head[0] not in _RECORD_KINDS or head[1] != 3:  # noqa: PLR2004
            return None
        self.kind, self.size = head[0], int.from_bytes(head[3:5], "big")
        return at + _RECORD_HEAD_SIZE + self.size


class Exchange:
    """What has passed on one connection between the browser and one target.

    Attributes:
        over: The server has said that it will close (or, with a 408, that the browser should try again)
            while an effect is in doubt; nothing more of it may reach the browser but `ending`.
        may_hold_request: The browser has sent what may be a request, or a part of one.
    """

    def __init__(self) -> None:
        self.over = False
        self.may_hold_request = False
        self._is_tls: bool | None = None  # None until the browser speaks
        self._is_opaque = False  # a WebSocket, or what cannot be read
        self._is_answered = False  # since the browser's last bytes
        self._last_request_at: float | None = None  # when bytes of a request were last forwarded
        self._withheld = b""  # of the server's, until it is clear what they are
        self._from_browser = _Records()
        self._from_server = _Records()
        self._is_multiplexed: bool | None = None  # None until the browser's first request record
        self._is_server_encrypted = False
        self._is_browser_encrypted = False
        self._data_size = 0  # of the browser's application data, until it is more than an alert's

    def sent(self, chunk: bytes, at: float) -> None:
        """The browser's bytes go out to the server.

        Args:
            chunk: At least one byte.
            at: This moment on the clock of the loop.
        """
        if self._is_tls is None:
            self._is_tls = chunk[0] == _HANDSHAKE
        if self._is_tls and self._is_multiplexed is None:
            self._watch_for_requests(chunk)
            if self._is_multiplexed is None:
                return  # a handshake carries no request
        self.may_hold_request = True
        self._is_answered = False
        self._last_request_at = at

    def received(self, chunk: bytes, doubt_since: float | None) -> bytes:
        """The server's bytes came in; what of them the browser may have now.

        Args:
            chunk: At least one byte.
            doubt_since: Since when an effect to this target is unanswered, on the loop's clock, if any is.
        """
        if self._is_opaque or self._is_tls is None:
            return chunk
        stream = self._withheld + chunk if self._withheld else chunk
        self._withheld = b""
        if self._is_tls:
            return self._received_records(stream, doubt_since)
        return stream if self._is_answered else self._received_head(stream, doubt_since)

    def ending(self, doubt_since: float | None, *, is_reset: bool) -> bytes:
        """The connection to the server is gone; what the browser must get before its own side is closed.

        Args:
            doubt_since: As for `received`.
            is_reset: It broke, rather than ending in good order.

        Returns:
            Poison where an effect is in doubt; otherwise what was withheld, mostly nothing.
        """
        withheld, self._withheld = self._withheld, b""
        if self._is_opaque or not self._may_have_left(doubt_since):
            return withheld
        if not self._is_tls:
            return withheld if self._is_answered else HTTP_POISON
        if self._is_answered and not (is_reset or self._is_multiplexed):
            return withheld  # the end may be what ends the answer's body
        # A record cut short is completed, or the browser would wait for the rest and see the close after all.
        return bytes(self._from_server.rest_size) + TLS_POISON

    def would_be_resent(self, doubt_since: float | None) -> bool:
        """Whether the browser, closing this connection itself, would send an effect in doubt on another one.

        Chromium does so on HTTP/2 when its own ping has gone unanswered for ten seconds.
        """
        return self._is_multiplexed is True and self._may_have_left(doubt_since)

    def _may_have_left(self, doubt_since: float | None) -> bool:
        return doubt_since is not None and self._last_request_at is not None and self._last_request_at >= doubt_since

    def _received_head(self, stream: bytes, doubt_since: float | None) -> bytes:
        passed = b""
        while stream.startswith(b"HTTP/") or b"HTTP/".startswith(stream):
            end = _head_end(stream)
            if end == 0:
                if len(stream) > _MAX_HEAD_SIZE:
                    break
                self._withheld = stream
                return passed
            status = stream[9:12]
            if status == b"101":
                self._is_opaque = True
                return passed + stream
            if status == b"408" and self._may_have_left(doubt_since):
                self.over = True  # Chromium sends again after a 408, as after a close
                return passed
            if not status.startswith(b"1"):
                break
            passed, stream = passed + stream[:end], stream[end:]
        self._is_answered = True
        return passed + stream

    def _received_records(self, stream: bytes, doubt_since: float | None) -> bytes:
        records = self._from_server
        at = min(records.rest_size, len(stream))
        records.rest_size -= at
        if at and records.rest_size == 0:
            self._record_passed(records)
        while len(stream) - at >= _RECORD_HEAD_SIZE:
            end = records.next(stream, at)
            if end is None:
                self._is_opaque = True
                return stream
            if self._is_farewell(records) and self._may_have_left(doubt_since):
                self.over = True
                return stream[:at]
            records.rest_size = max(0, end - len(stream))
            if records.rest_size == 0:
                self._record_passed(records)
            at = min(end, len(stream))
        self._withheld = stream[at:]
        return stream[:at] if self._withheld else stream

    def _record_passed(self, records: _Records) -> None:
        if records.kind == _APPLICATION:
            self._is_server_encrypted = True
            if records.size > _MAX_FAREWELL_SIZE:
                self._is_answered = True

    def _is_farewell(self, records: _Records) -> bool:
        if records.kind == _ALERT:
            return True
        is_short = records.kind == _APPLICATION and records.size <= _MAX_FAREWELL_SIZE
        return is_short and bool(self._is_multiplexed or not self._is_answered)

    def _watch_for_requests(self, chunk: bytes) -> None:
        """Find the browser's first record of application data; its size tells HTTP/2 from HTTP/1.1.

        In TLS 1.3 the end of the browser's handshake looks like application data too; by then the server's
        has.
        """
        records = self._from_browser
        stream = records.torn_head + chunk
        at = min(records.rest_size, len(stream))
        records.rest_size -= at
        while (end := records.next(stream, at)) is not None:
            if records.kind == _APPLICATION:
                self._data_size += records.size
                if self._is_browser_encrypted or not self._is_server_encrypted:
                    self._is_multiplexed = records.size < _MAX_PREFACE_SIZE
                    return
                self._is_browser_encrypted = True  # that was the handshake's last record
            records.rest_size = max(0, end - len(stream))
            at = min(end, len(stream))
        is_torn = len(stream) - at < _RECORD_HEAD_SIZE
        records.torn_head = stream[at:] if is_torn else b""
        if self._data_size > _MAX_FAREWELL_SIZE or not is_torn:
            self.may_hold_request = True


def _head_end(stream: bytes) -> int:
    """Where the head of an answer ends, or 0."""
    ends = [stream.find(mark) + len(mark) for mark in (b"\r\n\r\n", b"\n\n") if mark in stream]
    return min(ends, default=0)
