from __future__ import annotations

import pytest

from browsermw.wire.upstream import Upstream


@pytest.mark.parametrize(
    ("server", "expected"),
    [
        ("http://proxy.test:3128", ("http", "proxy.test", 3128)),
        ("proxy.test:3128", ("http", "proxy.test", 3128)),
        ("http://proxy.test", ("http", "proxy.test", 80)),
        ("socks5://10.0.0.1", ("socks5", "10.0.0.1", 1080)),
        ("socks5://[::1]:9", ("socks5", "::1", 9)),
    ],
)
def test_servers_are_read_as_playwright_writes_them(server: str, expected: tuple[str, str, int]) -> None:
    upstream = Upstream.from_playwright({"server": server})
    assert (upstream.scheme, upstream.host, upstream.port) == expected


@pytest.mark.parametrize(
    ("proxy", "message"),
    [
        ({"server": "https://proxy.test"}, r"'https://proxy\.test'.*not supported"),
        ({"server": "socks4://proxy.test"}, r"'socks4://proxy\.test'.*socks4 are not"),
        ({"server": ""}, "expected host:port"),
        ({"server": "http://proxy.test:99999"}, "port"),
        ({"server": "http://proxy.test/path"}, "expected host:port"),
        ({"server": "http://user:hidden@proxy.test"}, "'username' and 'password'"),
        ({"server": "https://user:hidden@proxy.test"}, "not supported"),
        ({"server": "proxy.test:1", "bypass": "http://a.test"}, r"'http://a\.test'"),
        ({"server": "socks5://proxy.test", "username": "u", "password": "hidden\u00e9"}, "ASCII"),
        ({"server": "socks5://proxy.test", "username": "u" * 256, "password": "hidden"}, "255"),
        ({"server": "proxy.test:1", "username": "a:b", "password": "hidden"}, "colon"),
    ],
)
def test_what_cannot_be_honoured_is_refused_by_name(proxy: dict[str, str], message: str) -> None:
    with pytest.raises(ValueError, match=message) as caught:
        Upstream.from_playwright(proxy)
    assert "hidden" not in str(caught.value)


def test_the_password_is_not_shown() -> None:
    shown = repr(Upstream.from_playwright({"server": "p:1", "username": "u", "password": "hidden"}))
    assert "hidden" not in shown


@pytest.mark.parametrize(
    ("bypass", "target", "expected"),
    [
        ("a.test", ("a.test", 80), True),
        ("a.test", ("b.a.test", 80), False),
        (" x.test , .b.test", ("www.b.test", 443), True),
        (".b.test", ("b.test", 443), False),
        ("*.b.test", ("www.b.test", 443), True),
        ("a.test:8080", ("a.test", 8080), True),
        ("a.test:8080", ("a.test", 80), False),
        ("*", ("anything.test", 1), True),
        ("<local>", ("intranet", 80), True),
        ("<local>", ("www.test", 80), False),
        ("<loopback>", ("localhost", 80), True),
        ("<loopback>", ("127.9.9.9", 80), True),
        ("<loopback>", ("::1", 80), True),
        ("<-loopback>", ("localhost", 80), False),
        ("10.0.0.0/8", ("10.1.2.3", 80), True),
        ("10.0.0.0/8", ("11.1.2.3", 80), False),
        ("10.0.0.0/8", ("ten.test", 80), False),
        ("[::1]", ("::1", 80), True),
        ("[::1]:80", ("::1", 80), True),
        ("[::1]:80", ("::1", 81), False),
        ("", ("localhost", 80), False),
    ],
)
def test_bypass_follows_chromium(bypass: str, target: tuple[str, int], expected: bool) -> None:
    assert Upstream.from_playwright({"server": "p:1", "bypass": bypass}).bypasses(*target) is expected
