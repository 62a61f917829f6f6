"""The shop's rarer ways: private paths, answers in chunks at a test's word, client certificates."""

from __future__ import annotations

import ssl
from http.client import HTTPConnection, HTTPSConnection
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest
import trustme

from tests.browser_kit import make_client_certificate
from tests.shop_site import Shop

if TYPE_CHECKING:
    from pathlib import Path

KNOWN = {"Authorization": "Basic YWdlbnQtNzpzM2NyZXQ="}


def connect(shop: Shop) -> HTTPConnection:
    return HTTPConnection("127.0.0.1", urlsplit(shop.url).port, timeout=10)


def test_what_is_private_is_there_for_those_who_are_known(shop: Shop) -> None:
    line = connect(shop)
    for headers, status in (({}, 401), (KNOWN, 303)):
        line.request("POST", "/private/order", "item=book", headers)
        answer = line.getresponse()
        answer.read()
        assert (answer.status, "WWW-Authenticate" in answer.headers) == (status, status == 401)
    assert [arrival["endpoint"] for arrival in shop.arrivals("/private/order")] == ["private", "order"]
    assert len(shop.orders()) == 1
    line.close()


def test_a_stream_goes_on_by_one_chunk_at_a_time_and_ends_at_release(shop: Shop) -> None:
    line = connect(shop)
    line.request("POST", "/api/stream?chunks=4", "x")
    answer = line.getresponse()
    for i in range(2):
        assert shop.send_chunk("/api/stream") == 1
        assert answer.readline() == f"chunk {i}\n".encode()
    shop.release()
    assert answer.read() == b"chunk 2\nchunk 3\n"
    line.close()


@pytest.mark.parametrize("with_one", [True, False])
def test_a_client_certificate_is_asked_for_and_named(tmp_path: Path, with_one: bool) -> None:
    authority = trustme.CA()
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    authority.issue_cert("127.0.0.1").private_key_and_cert_chain_pem.write_to_path(tmp_path / "shop.pem")
    pair, client_ca = make_client_certificate(tmp_path, "agent-7")
    context = ssl.create_default_context(cafile=tmp_path / "ca.pem")
    if with_one:
        context.load_cert_chain(pair)
    with Shop.start(tmp_path / "shop.pem", ca=tmp_path / "ca.pem", client_ca=client_ca) as shop:
        line = HTTPSConnection("127.0.0.1", urlsplit(shop.url).port, timeout=10, context=context)
        line.request("POST", "/order", "item=book")
        assert line.getresponse().status == 303
        line.close()
        [arrival] = shop.arrivals("/order")
    assert arrival["client_certificate"] == ("agent-7" if with_one else "")
