"""Starts the fixture shop as a process of its own and asks it what arrived.

The demo and the browser tests use it as their oracle. It speaks to the shop by urllib alone and past every proxy,
so nothing that is under test can colour the answers.
"""

from __future__ import annotations

import json
import ssl
import subprocess
import sys
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, cast
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import HTTPSHandler, ProxyHandler, Request, build_opener

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import TracebackType

_CHECKOUT = Path(__file__).resolve().parents[2] / "fixtures" / "shop"
_INSTALLED = Path(__file__).resolve().parent / "shop"
FOLDER = _CHECKOUT if _CHECKOUT.is_dir() else _INSTALLED
"""The shop's source: a checkout's own, else the copy that the wheel carries."""
SLACK_S = 10.0


class Shop:
    """A running shop; use it as a context manager, or ``close`` it.

    Attributes:
        url: Where it listens, without a slash at the end.
        pid: Its process id.
        token: The value of ``X-Shop-Token`` for its oracle.
    """

    def __init__(self, running: subprocess.Popen[str], url: str, token: str, ca: Path | None) -> None:
        self._running = running
        self.url = url
        self.pid = running.pid
        self.token = token
        context = ssl.create_default_context(cafile=ca)
        if ca is None:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        self._opener = build_opener(ProxyHandler({}), HTTPSHandler(context=context))

    @classmethod
    def start(
        cls,
        cert: Path | None = None,
        key: Path | None = None,
        *,
        ca: Path | None = None,
        client_ca: Path | None = None,
        port: int = 0,
        log: Path | None = None,
    ) -> Self:
        """Start a shop and return when it listens.

        Args:
            cert: PEM file of the certificate; with it the shop speaks HTTPS.
            key: PEM file of the private key, where ``cert`` does not hold it too.
            ca: PEM file of the authority that signed ``cert``; without it the oracle is asked unverified.
            client_ca: PEM file of the authority whose client certificates the shop asks for.
            port: Port on 127.0.0.1; 0 takes a free one.
            log: File to which the shop appends each arrival as a line of JSON.

        Raises:
            RuntimeError: The shop ended before it listened; its own words are on standard error.
        """
        command = [sys.executable, str(FOLDER), "--port", str(port), "--exit-with-stdin"]
        for name, path in (("--cert", cert), ("--key", key), ("--client-ca", client_ca), ("--log", log)):
            command += [] if path is None else [name, str(path)]
        running = subprocess.Popen(  # noqa: S603 - our own program
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert running.stdout is not None
        line = running.stdout.readline()
        if not line:
            _end(running)
            raise RuntimeError(f"the shop ended before it listened, exit status {running.returncode}")
        ready = json.loads(line)
        return cls(running, ready["url"], ready["token"], ca)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the shop and wait for it; a second call does nothing."""
        _end(self._running)

    def count(self, path: str | None, method: str | None = "POST") -> int:
        """Return how many requests arrived on this path by this method; None stands for any, ``*`` for any ending."""
        return len(self.arrivals(path, method))

    def arrivals(self, path: str | None = None, method: str | None = None) -> list[dict[str, Any]]:
        """Return what arrived, in order, cut requests (``cut``) among them; None is any, ``*`` any ending."""
        return _list(self._ask("GET", "arrivals", path=path, method=method)["arrivals"])

    def orders(self) -> list[dict[str, Any]]:
        """Return the committed orders in order."""
        return _list(self._ask("GET", "orders"))

    def look_up(self, **wanted: str | None) -> list[dict[str, Any]]:
        """Return the orders with that ``idempotency_key``, ``item`` or ``user``, by the endpoint that users have."""
        with self._opener.open(f"{self.url}/api/orders?{_query(wanted)}", timeout=SLACK_S) as answer:
            return _list(json.load(answer))

    def wait_for(
        self, path: str, count: int = 1, method: str | None = "POST", timeout_s: float = 10
    ) -> list[dict[str, Any]]:
        """Wait until that many requests have arrived and return them.

        Their orders are committed by then; their answers may not have been sent yet.

        Raises:
            TimeoutError: Fewer arrived within ``timeout_s``; the message says how many.
        """
        try:
            found = self._ask("GET", "wait", timeout_s, path=path, method=method, count=count, timeout_s=timeout_s)
        except HTTPError as error:
            with error:
                if error.code != HTTPStatus.REQUEST_TIMEOUT:
                    raise
                came = json.load(error)["count"]
            raise TimeoutError(f"{came} of {count} {method} {path} arrived within {timeout_s} s") from None
        return _list(found["arrivals"])

    def release(self, path: str | None = None) -> int:
        """Let the held answers go (of one path, or all) and return how many they were."""
        return int(self._ask("POST", "release", path=path)["released"])

    def send_chunk(self, path: str | None = None) -> int:
        """Have each streamed answer (of one path, or all) go on by one chunk; return how many they are."""
        return int(self._ask("POST", "send-chunk", path=path)["released"])

    def reset(self) -> None:
        """Forget arrivals, orders and idempotency keys; answers that are held stay held."""
        self._ask("POST", "reset")

    def _ask(self, verb: str, question: str, longer_s: float = 0, **asked: object) -> Any:
        request = Request(  # noqa: S310 - the address is the shop's own
            f"{self.url}/_shop/{question}?{_query(asked)}", method=verb, headers={"X-Shop-Token": self.token}
        )
        with self._opener.open(request, timeout=longer_s + SLACK_S) as answer:
            return json.load(answer)


def _query(asked: Mapping[str, object]) -> str:
    return urlencode({name: value for name, value in asked.items() if value is not None})


def _list(found: object) -> list[dict[str, Any]]:
    return cast("list[dict[str, Any]]", found)


def _end(running: subprocess.Popen[str]) -> None:
    with running:  # closes both pipes and waits
        if running.poll() is None:
            running.terminate()
            try:
                running.wait(SLACK_S)
            except subprocess.TimeoutExpired:
                running.kill()
