"""The shop as the oracle of browser tests: what it counts, commits, holds and cuts."""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import ssl
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode, urlsplit

import pytest
import trustme

from tests.shop_site import FOLDER, Shop

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

FORM = {"Content-Type": "application/x-www-form-urlencoded"}
BOOK = urlencode({"item": "book", "quantity": "2", "csrf_token": "abc"})


class Visitor:
    """One keep-alive connection to the shop, as a browser would hold."""

    def __init__(self, shop: Shop) -> None:
        place = urlsplit(shop.url)
        assert place.hostname is not None
        if place.scheme == "https":
            context = ssl.create_default_context()
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
            self.line: http.client.HTTPConnection = http.client.HTTPSConnection(
                place.hostname, place.port, timeout=10, context=context
            )
        else:
            self.line = http.client.HTTPConnection(place.hostname, place.port, timeout=10)
        self.line.connect()

    def ask(
        self, method: str, path: str, body: str | bytes | None = None, headers: dict[str, str] | None = None
    ) -> tuple[http.client.HTTPResponse, str]:
        self.line.request(method, path, body, headers or ({} if body is None else FORM))
        answer = self.line.getresponse()
        return answer, answer.read().decode()

    def post_json(self, path: str, content: object, **headers: str) -> tuple[http.client.HTTPResponse, Any]:
        written = {name.replace("_", "-"): value for name, value in headers.items()}
        answer, text = self.ask("POST", path, json.dumps(content), {"Content-Type": "application/json", **written})
        return answer, json.loads(text)


@pytest.fixture(scope="module", params=["http", "https"])
def running_shop(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    if request.param == "http":
        with Shop.start() as shop:
            yield shop
        return
    folder = tmp_path_factory.mktemp("tls")
    authority = trustme.CA()
    authority.cert_pem.write_to_path(folder / "ca.pem")
    authority.issue_cert("127.0.0.1", "localhost").private_key_and_cert_chain_pem.write_to_path(folder / "shop.pem")
    with Shop.start(folder / "shop.pem", ca=folder / "ca.pem") as shop:
        yield shop


@pytest.fixture
def shop(running_shop: Shop) -> Iterator[Shop]:
    running_shop.reset()
    yield running_shop
    running_shop.release()


@pytest.fixture
def visitor(shop: Shop) -> Iterator[Visitor]:
    visitor = Visitor(shop)
    yield visitor
    visitor.line.close()


@pytest.fixture
def aside() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(4) as pool:
        yield pool


def test_an_order_is_counted_committed_and_redirected(shop: Shop, visitor: Visitor) -> None:
    answer, _ = visitor.ask("POST", "/order?from=test", BOOK, {**FORM, "Cookie": "a=b; session=alice"})
    assert (answer.status, answer.headers["Location"]) == (303, "/orders/ORD-0001")

    (arrival,) = shop.arrivals("/order", "POST")
    assert (arrival["query"], arrival["body"], arrival["body_length"]) == ("from=test", BOOK, len(BOOK))
    assert arrival["headers"]["content-type"] == FORM["Content-Type"]
    assert (arrival["cut"], arrival["endpoint"]) == (False, "order")
    assert answer.headers["X-Request-Id"] == f"req-{arrival['n']}"
    assert arrival["client_port"] == visitor.line.sock.getsockname()[1]

    (order,) = shop.orders()
    assert (order["id"], order["item"], order["quantity"], order["csrf_token"], order["user"]) == (
        *("ORD-0001", "book", "2", "abc", "alice"),
    )
    page = visitor.ask("GET", "/orders/ORD-0001")[1]
    assert '<span id="reference">ORD-0001</span>' in page
    assert visitor.ask("GET", "/orders/ORD-0002")[0].status == 404


def test_a_page_asked_with_connection_close_leaves_no_connection_to_reuse(visitor: Visitor) -> None:
    assert visitor.ask("GET", "/shop")[0].headers["Connection"] is None
    assert visitor.line.sock is not None
    assert visitor.ask("GET", "/shop?connection=close")[0].headers["Connection"] == "close"
    assert visitor.line.sock is None


def test_what_a_connection_brings_is_counted_one_by_one(shop: Shop, visitor: Visitor) -> None:
    for _ in range(3):
        visitor.ask("POST", "/order", BOOK)
    assert len({arrival["client_port"] for arrival in shop.arrivals("/order")}) == 1
    assert (shop.count("/order"), shop.count("/order", "GET"), shop.count(None, None)) == (3, 0, 3)


@pytest.mark.parametrize("kind", ["multipart/form-data; boundary=xx", "text/plain", "application/json"])
def test_an_order_is_read_from_each_encoding(shop: Shop, visitor: Visitor, kind: str) -> None:
    part = '--xx\r\nContent-Disposition: form-data; name="{}"\r\n\r\n{}\r\n'
    body = {
        "m": part.format("item", "book") + part.format("quantity", "2") + "--xx--\r\n",
        "t": "item=book\r\nquantity=2\r\n",
        "a": '{"item": "book", "quantity": 2}',
    }[kind[0]]
    assert visitor.ask("POST", "/order", body, {"Content-Type": kind})[0].status == 303
    assert [(order["item"], order["quantity"]) for order in shop.orders()] == [("book", "2")]


@pytest.mark.parametrize(
    "sent",
    [
        b"POST /order HTTP/1.1\r\nHost: shop\r\nContent-Length: 50\r\n\r\nitem=bo",
        b"POST /order HTTP/1.1\r\nHost: shop\r\nTransfer-Encoding: chunked\r\n\r\n7\r\nitem=bo\r\n",
        b"POST /order HTTP/1.1\r\nHost: sh",
    ],
    ids=["body", "chunked body", "head"],
)
def test_a_request_that_broke_off_is_counted_as_cut_and_orders_nothing(
    shop: Shop, visitor: Visitor, sent: bytes
) -> None:
    visitor.line.sock.sendall(sent)
    visitor.line.sock.shutdown(socket.SHUT_WR)
    (arrival,) = shop.wait_for("/order")
    assert arrival["cut"] is True
    assert arrival["body"] in ("item=bo", "")
    assert shop.orders() == []


def test_a_chunked_body_is_one_request(shop: Shop, visitor: Visitor) -> None:
    visitor.line.request("POST", "/order", iter([b"item=book", b"&quantity=2"]), FORM, encode_chunked=True)
    assert visitor.line.getresponse().read() == b""
    assert [order["quantity"] for order in shop.orders()] == ["2"]
    assert shop.count(None, None) == 1


def test_waiting_ends_with_the_arrival_and_finds_its_order(shop: Shop, aside: ThreadPoolExecutor) -> None:
    waiting = aside.submit(shop.wait_for, "/order-never", 2)
    for _ in range(2):
        aside.submit(_post_and_read, shop, "/order-never")
    assert len(waiting.result(10)) == 2
    assert len(shop.orders()) == 2
    assert shop.release() == 2


def test_waiting_in_vain_ends_at_the_timeout(shop: Shop) -> None:
    with pytest.raises(TimeoutError, match="0 of 1 POST /order arrived"):
        shop.wait_for("/order", timeout_s=0.05)


@pytest.mark.parametrize("path", ["/order-never", "/api/never", "/order-slow?ms=60000", "/api/slow?ms=60000"])
def test_a_held_answer_goes_at_release(shop: Shop, aside: ThreadPoolExecutor, path: str) -> None:
    bare = path.partition("?")[0]
    answer = aside.submit(_post_and_read, shop, path)
    shop.wait_for(bare)
    assert len(shop.orders()) == 1
    assert shop.release("/elsewhere") == 0
    assert not answer.done()
    assert shop.release(bare) == 1
    assert answer.result(10) == (201 if bare.startswith("/api") else 303)


def test_a_slow_answer_goes_by_itself(shop: Shop, visitor: Visitor) -> None:
    answer, _ = visitor.ask("POST", "/order-slow?ms=20", BOOK)
    assert (answer.status, shop.release()) == (303, 0)


@pytest.mark.parametrize("path", ["/order-drop", "/api/drop"])
def test_a_dropped_connection_is_reset_after_the_commit(shop: Shop, path: str) -> None:
    visitor = Visitor(shop)
    visitor.line.request("POST", path, BOOK, FORM)
    # Read below TLS: Python's ssl reports a reset as an end of file.
    with socket.socket(fileno=os.dup(visitor.line.sock.fileno())) as raw:
        raw.settimeout(10)
        with pytest.raises(ConnectionResetError):
            list(iter(lambda: raw.recv(4096), b""))
    visitor.line.close()
    assert (shop.count(path), len(shop.orders())) == (1, 1)


@pytest.mark.parametrize("path", ["/order-close", "/api/close"])
def test_a_closed_connection_ends_without_an_answer(shop: Shop, path: str) -> None:
    visitor = Visitor(shop)
    with pytest.raises(http.client.RemoteDisconnected):
        visitor.ask("POST", path, BOOK)
    visitor.line.close()
    assert (shop.count(path), len(shop.orders())) == (1, 1)


def test_a_failure_has_committed_and_a_rejection_has_not(shop: Shop, visitor: Visitor) -> None:
    assert visitor.ask("POST", "/order-reject", BOOK)[0].status == 422
    assert shop.orders() == []
    assert visitor.ask("POST", "/order-500", BOOK)[0].status == 500
    assert len(shop.orders()) == 1


@pytest.mark.parametrize("status", [307, 308])
def test_a_redirect_keeps_the_method_and_commits_nothing(shop: Shop, visitor: Visitor, status: int) -> None:
    answer, _ = visitor.ask("POST", f"/order-{status}", BOOK)
    assert (answer.status, answer.headers["Location"]) == (status, "/order")
    answer, _ = visitor.ask("POST", f"/order-{status}?to=http://localhost:1/x", BOOK)
    assert answer.headers["Location"] == "http://localhost:1/x"
    assert (shop.count(f"/order-{status}"), shop.orders()) == (2, [])


def test_a_repeated_idempotency_key_is_replayed_not_ordered(shop: Shop, visitor: Visitor) -> None:
    first, made = visitor.post_json("/api/checkout", {"item": "book"}, Idempotency_Key="k1")
    again, replayed = visitor.post_json("/api/checkout", {"item": "book"}, Idempotency_Key="k1")
    assert (first.status, again.status, made) == (201, 201, replayed)
    assert (first.headers["Idempotent-Replay"], again.headers["Idempotent-Replay"]) == (None, "true")
    assert first.headers["X-Request-Id"] != again.headers["X-Request-Id"]
    other, _ = visitor.post_json("/api/checkout", {"item": "car"}, Idempotency_Key="k1")
    assert other.status == 422
    assert (shop.count("/api/checkout"), len(shop.orders())) == (3, 1)


def test_a_key_of_a_lost_answer_gets_that_answer_at_once(shop: Shop, aside: ThreadPoolExecutor) -> None:
    aside.submit(_post_and_read, shop, "/api/never", "k2")
    shop.wait_for("/api/never")
    assert _post_and_read(shop, "/api/never", "k2") == 201
    assert (shop.count("/api/never"), len(shop.orders()), shop.release()) == (2, 1, 1)


def test_orders_are_looked_up_by_id_key_and_item(visitor: Visitor) -> None:
    visitor.post_json("/api/checkout", {"item": "book"}, Idempotency_Key="k3")
    visitor.post_json("/api/checkout", {"item": "pen"})
    for query in ("idempotency_key=k3", "item=book"):
        found = json.loads(visitor.ask("GET", f"/api/orders?{query}")[1])
        assert [order["id"] for order in found] == ["ORD-0001"]
    assert json.loads(visitor.ask("GET", "/api/orders?item=car")[1]) == []
    assert json.loads(visitor.ask("GET", "/api/orders/ORD-0002")[1])["item"] == "pen"
    assert visitor.ask("GET", "/api/orders/ORD-0003")[0].status == 404


@pytest.mark.parametrize("headers", [{}, {"X-Shop-Token": "guess"}])
@pytest.mark.parametrize("question", ["GET arrivals", "GET orders", "GET wait", "POST reset", "POST release"])
def test_the_oracle_tells_and_changes_nothing_without_its_token(
    shop: Shop, visitor: Visitor, question: str, headers: dict[str, str]
) -> None:
    visitor.ask("POST", "/order", BOOK)
    method, name = question.split()
    answer, text = visitor.ask(method, f"/_shop/{name}", None, headers)
    assert answer.status == 403
    assert "ORD-0001" not in text
    assert shop.count(None, None) == 1


def test_reset_forgets_orders_and_keys_but_keeps_held_answers(shop: Shop, aside: ThreadPoolExecutor) -> None:
    held = aside.submit(_post_and_read, shop, "/api/never", "k4")
    shop.wait_for("/api/never")
    shop.reset()
    assert (shop.arrivals(), shop.orders(), held.done()) == ([], [], False)
    assert _post_and_read(shop, "/api/checkout", "k4") == 201
    assert shop.orders()[0]["id"] == "ORD-0001"
    assert shop.release() == 1


def test_a_visitor_is_user_1_until_signed_in(visitor: Visitor) -> None:
    answer, page = visitor.ask("GET", "/shop")
    assert answer.headers["Set-Cookie"].startswith("session=user-1;")
    assert '<span id="user">user-1</span>' in page
    answer, page = visitor.ask("GET", "/login?user=b%C3%A9a")
    assert '<span id="user">béa</span>' in page
    cookie = {"Cookie": answer.headers["Set-Cookie"].partition(";")[0]}
    answer, page = visitor.ask("GET", "/shop", None, cookie)
    assert answer.headers["Set-Cookie"] is None
    assert '<span id="user">béa</span>' in page
    assert "Max-Age=0" in visitor.ask("GET", "/logout")[0].headers["Set-Cookie"]


def test_large_uploads_are_counted_whole_and_kept_in_part(shop: Shop, visitor: Visitor) -> None:
    _, text = visitor.ask("POST", "/upload", b"x" * 300_000, {"Content-Type": "text/plain"})
    assert json.loads(text) == {"length": 300_000}
    (arrival,) = shop.arrivals("/upload")
    assert (len(arrival["body"]), arrival["body_length"]) == (0, 300_000)
    visitor.ask("POST", "/order", b"x" * 300_000, {"Content-Type": "text/plain"})
    (arrival,) = shop.arrivals("/order")
    assert (len(arrival["body"]), arrival["body_length"]) == (65_536, 300_000)


def test_downloads_streams_and_assets_are_what_they_say(visitor: Visitor) -> None:
    answer, text = visitor.ask("GET", "/big?mb=2")
    assert len(text) == int(answer.headers["Content-Length"]) == 2 * 1024 * 1024
    answer, text = visitor.ask("POST", "/export", BOOK)
    assert answer.headers["Content-Disposition"].startswith("attachment")
    answer, text = visitor.ask("GET", "/stream")
    assert (answer.headers["Transfer-Encoding"], text.count("data: ")) == ("chunked", 5)
    assert visitor.ask("GET", "/asset/1.js")[0].headers["Cache-Control"] == "max-age=3600"
    assert visitor.ask("GET", "/assets?n=9")[1].count("/asset/") == 9


@pytest.mark.parametrize(
    "path",
    [
        *("/", "/shop", "/form?action=/order-never", "/checkout", "/double", "/popup-opener", "/popup"),
        *("/popup-autopost", "/frames?src=/shop", "/frames?srcdoc=1", "/autosave", "/polling", "/telemetry"),
    ],
)
def test_each_page_is_there(visitor: Visitor, path: str) -> None:
    answer, page = visitor.ask("GET", path)
    assert (answer.status, answer.headers["Cache-Control"]) == (200, "no-store")
    assert page.endswith("</html>\n")


def test_each_page_load_has_a_fresh_csrf_token(visitor: Visitor) -> None:
    first, second = (visitor.ask("GET", "/shop")[1] for _ in range(2))
    assert first.split('csrf_token" value="')[1][:16] != second.split('csrf_token" value="')[1][:16]


def test_form_attributes_from_the_query_are_escaped(visitor: Visitor) -> None:
    page = visitor.ask("GET", "/form?action=%2Forder-never&target=_blank&enctype=%22%3E%3Cb%3E")[1]
    assert 'action="/order-never" target="_blank" enctype="&quot;&gt;&lt;b&gt;"' in page


@pytest.mark.parametrize("path", ["/order-slow?ms=soon", "/api/checkout"])
def test_nonsense_is_counted_and_refused(shop: Shop, visitor: Visitor, path: str) -> None:
    answer, _ = visitor.ask("POST", path, "{not json", {"Content-Type": "application/json"})
    assert answer.status == 400
    assert shop.count(path.partition("?")[0]) == 1
    assert shop.orders() == []


def test_many_connections_at_once_are_all_counted(shop: Shop) -> None:
    start = threading.Barrier(40)

    def post() -> int:
        start.wait(10)
        return _post_and_read(shop, "/api/checkout")

    with ThreadPoolExecutor(40) as pool:
        answers = [pool.submit(post) for _ in range(40)]
    assert {answer.result() for answer in answers} == {201}
    assert len({order["id"] for order in shop.orders()}) == shop.count("/api/checkout") == 40


def test_arrivals_are_logged_as_they_come(tmp_path: Path) -> None:
    with Shop.start(log=tmp_path / "arrivals.jsonl") as shop:
        assert _post_and_read(shop, "/order") == 303
        logged = [json.loads(line) for line in (tmp_path / "arrivals.jsonl").read_text().splitlines()]
        assert logged == shop.arrivals()


@pytest.mark.parametrize("how", ["SIGTERM", "SIGINT", "stdin"])
def test_the_shop_says_one_line_and_ends_when_told(how: str) -> None:
    with subprocess.Popen(
        [sys.executable, str(FOLDER), "--port", "0", "--token", "t", "--exit-with-stdin"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as running:
        assert running.stdout is not None
        assert running.stdin is not None
        assert running.stderr is not None
        ready = json.loads(running.stdout.readline())
        assert (ready["pid"], ready["token"]) == (running.pid, "t")
        with socket.create_connection(("127.0.0.1", urlsplit(ready["url"]).port or 0)):
            pass
        if how == "stdin":
            running.stdin.close()
        else:
            os.kill(running.pid, signal.Signals[how])
        try:
            assert running.wait(10) == 0
        finally:
            running.kill()
        assert (running.stdout.read(), running.stderr.read()) == (b"", b"")


def test_closing_ends_the_process_even_while_answers_are_held(aside: ThreadPoolExecutor) -> None:
    shop = Shop.start()
    lost = aside.submit(_post_and_read, shop, "/order-never")
    shop.wait_for("/order-never")
    shop.close()
    shop.close()
    assert isinstance(lost.exception(10), OSError)
    with pytest.raises(ProcessLookupError):
        os.kill(shop.pid, 0)


def _post_and_read(shop: Shop, path: str, key: str | None = None) -> int:
    visitor = Visitor(shop)
    try:
        headers = FORM if key is None else {**FORM, "Idempotency-Key": key}
        return visitor.ask("POST", path, BOOK, headers)[0].status
    finally:
        visitor.line.close()
