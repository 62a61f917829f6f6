"""What the browser tests of both flavours share: marking our processes, reading the ledger, servers that misbehave.

It knows nothing of Playwright, so that each flavour's folder can import it in a process of its own.
"""

from __future__ import annotations

import contextlib
import os
import re
import socket
import threading
import time
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Any

import trustme

from browsermw.wire.browser_find import find_browser

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from browsermw import Runtime
    from browsermw.models import Action, Checkpoint, Effect

MARK = "BROWSERMW_TEST_SESSION"
STOP_TIMERS = "for (let number = 0; number < 1000; number++) clearInterval(number)"
"""Ends a page's autosaving; leaving the page instead would cut a save short, and nobody would see its answer."""


def mark_our_processes() -> str:
    """Set a variable that every process started from here inherits, browsers' helpers too."""
    mark = uuid.uuid4().hex
    os.environ[MARK] = mark
    return mark


def processes_left(mark: str, word: str = "chrom", timeout_s: float = 15.0) -> list[str]:
    """Command lines of marked processes with that word which do not end within the time."""
    deadline_s = time.monotonic() + timeout_s
    while (left := list(_marked(mark, word))) and time.monotonic() < deadline_s:
        time.sleep(0.05)
    return left


def _marked(mark: str, word: str) -> Iterator[str]:
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if f"{MARK}={mark}".encode() not in (folder / "environ").read_bytes():
                continue
            command = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
            if word in command:
                yield f"{folder.name}: {command[:200]}"


def browser_pid(port: int) -> int:
    """Process id of the browser (not of its helpers) with that debugging port."""
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            words = (folder / "cmdline").read_bytes().split(b"\0")
            if f"--remote-debugging-port={port}".encode() in words and not any(w.startswith(b"--type=") for w in words):
                return int(folder.name)
    raise LookupError(f"no browser with debugging port {port}")


def until(asked: Callable[[], object], timeout_s: float = 10.0) -> None:
    """Wait until something becomes true that announces itself nowhere."""
    deadline_s = time.monotonic() + timeout_s
    while not asked():
        assert time.monotonic() < deadline_s, "it did not come true in time"
        time.sleep(0.01)


class Journal:
    """What the ledger says about one run."""

    def __init__(self, mw: Runtime, run_id: str) -> None:
        self._mw = mw
        self._run_id = run_id

    def actions(self) -> Sequence[Action]:
        return self._mw.ledger_call("actions", self._run_id)  # type: ignore[no-any-return]

    def checkpoints(self) -> Sequence[Checkpoint]:
        return self._mw.ledger_call("checkpoints", self._run_id)  # type: ignore[no-any-return]

    def effects(self, path: str = "") -> list[Effect]:
        """All effects in order, or those whose URL holds the path."""
        return [effect for action in self.actions() for effect in action.effects if path in effect.url]

    def phases(self, path: str = "") -> list[str]:
        return [str(effect.phase) for effect in self.effects(path)]

    def action_of(self, effect: Effect) -> Action:
        return next(action for action in self.actions() if action.seq == effect.action_seq)

    def settled(self, path: str = "", count: int = 1) -> list[Effect]:
        """Wait until that many effects are on record and none is unanswered; return them."""
        until(lambda: len(self.phases(path)) >= count and "DISPATCHED" not in self.phases(path))
        return self.effects(path)

    def closed(self) -> None:
        """Wait until every action has its after-checkpoint."""
        until(lambda: all(action.closed_at is not None for action in self.actions()))


_RANDOM = re.compile(r"(csrf_token(?:=|\"\r\n\r\n))[0-9a-f]+|(?<=WebKitFormBoundary)\w{16}")


def comparable(arrivals: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What reached the shop, without what differs from one time to the next: numbers, moments, ports, random marks."""
    kept = ("method", "path", "query", "headers", "body", "body_length", "client_certificate")
    found = [{name: arrival[name] for name in kept} for arrival in arrivals]
    for arrival in found:
        arrival["body"] = _RANDOM.sub(r"\1", arrival["body"])
        # What the driver sends by itself is kept alive or not, as there is a proxy in between or not.
        headers = {name: value for name, value in arrival["headers"].items() if name != "connection"}
        arrival["headers"] = {name: _RANDOM.sub("", value) for name, value in headers.items()}
    return found


def make_certificates(folder: Path) -> tuple[Path, Path]:
    """A certificate for localhost and 127.0.0.1 with its key in one file, and its authority's certificate."""
    authority = trustme.CA()
    issued = authority.issue_cert("localhost", "127.0.0.1")
    pair, ca = folder / "shop.pem", folder / "ca.pem"
    issued.private_key_and_cert_chain_pem.write_to_path(str(pair))
    authority.cert_pem.write_to_path(str(ca))
    return pair, ca


def make_client_certificate(folder: Path, name: str) -> tuple[Path, Path]:
    """A client's certificate with its key in one file, and its authority's certificate."""
    authority = trustme.CA()
    pair, ca = folder / "client.pem", folder / "client-ca.pem"
    authority.issue_cert(f"{name}@shop.test", common_name=name).private_key_and_cert_chain_pem.write_to_path(str(pair))
    authority.cert_pem.write_to_path(str(ca))
    return pair, ca


@contextlib.contextmanager
def closed_port() -> Iterator[int]:
    """A port on which nobody listens and nobody can begin to meanwhile."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield int(taken.getsockname()[1])


def plain_launch() -> dict[str, Any]:
    """Arguments for a Chromium that has no gate, as somebody else would launch it."""
    options: dict[str, Any] = {"headless": True, "args": ["--no-sandbox", "--disable-background-networking"]}
    found = find_browser()
    if found is not None and found.source != "playwright":
        options["executable_path"] = found.path
    return options


class StaleServer:
    """Answers the first request of each connection, then closes it without a word when the second has arrived.

    That is the server that Chromium answers by sending the request again by itself (field note 11).
    """

    def __init__(self, *, reset: bool) -> None:
        self._reset = reset
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self.requests: list[str] = []
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self._thread.start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self._listener.accept()
                threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        page = b"<!doctype html><link rel=icon href='data:,'><title>Stale</title><pre id=result></pre>"
        with connection, contextlib.suppress(OSError):
            self._take(connection)
            head = f"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {len(page)}\r\n\r\n"
            connection.sendall(head.encode() + page)
            self._take(connection)
            if self._reset:
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")

    def _take(self, connection: socket.socket) -> None:
        text = b""
        while b"\r\n\r\n" not in text:
            block = connection.recv(65536)
            if not block:
                raise OSError("the browser closed")
            text += block
        self.requests.append(text.split(b"\r\n")[0].decode())

    def close(self) -> None:
        self._listener.close()

    def count(self, method: str) -> int:
        return sum(line.startswith(method + " ") for line in self.requests)
