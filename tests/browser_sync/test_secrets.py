"""Nothing secret is kept: what was typed, sent, and asked for is looked for in the bytes of the ledger's files."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from browsermw import Policy
from browsermw.policy import Identity
from tests.browser_kit import Journal

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager
    from pathlib import Path

    import pytest
    from playwright.sync_api import Browser

    from browsermw import Runtime
    from tests.shop_site import Shop

PAGE = """<!doctype html><title>Sign in</title><span id="user">kate</span>
<form method="post" action="/order?token=Planted-Query-31415"><input id="name" name="item">
<input id="password" type="password" name="password"><button id="send">Sign in</button></form>"""
PLANTED = ("Planted-Password-27182", "Planted-Query-31415", "Planted-Cookie-16180", "Planted-Body-14142",
           "Planted-Header-17320", "Planted-Typed-22360", "Planted-Script-26457", "Planted-Userinfo-33166")  # fmt: skip


def test_no_planted_secret_is_in_the_ledger_or_the_log(
    opening: Callable[..., AbstractContextManager[tuple[Runtime, Browser]]],
    shop: Shop,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)
    password, query, cookie, body, header, typed, script, userinfo = PLANTED
    with opening(Policy(identity=Identity(cookie="session"), settle_s=1)) as (mw, browser):
        with mw.run("r") as run:
            context = run.wrap(browser.new_context())
            context.add_cookies([{"name": "session", "value": cookie, "url": shop.url}])
            page = context.new_page()
            page.route("**/sign-in*", lambda route: route.fulfill(body=PAGE, content_type="text/html"))
            page.goto(f"{shop.url}/sign-in?secret={query}")
            page.fill("#password", password)
            page.focus("#name")
            page.keyboard.type(typed)
            page.evaluate("text => { globalThis.kept = text; }", script)
            page.click("#send")
            api = context.request
            api.post(f"{shop.url}/api/checkout?key={query}", data={"item": body}, headers={"Authorization": header})
            api.post(f"{shop.url.replace('//', f'//kate:{userinfo}@')}/api/checkout", form={"item": body})
            effects = Journal(mw, "r").settled(count=3)
            held = all_bytes(tmp_path)
        assert (shop.count("/order"), shop.count("/api/checkout")) == (1, 2)
    held += all_bytes(tmp_path) + caplog.text.encode()
    assert password in shop.arrivals("/order", "POST")[0]["body"]
    assert next(effect.url for effect in effects) == f"{shop.url}/order?token=…"
    assert [secret for secret in PLANTED if secret.encode() in held] == []
    assert b"/sign-in?secret=" in held


def all_bytes(folder: Path) -> bytes:
    names = [path for path in folder.rglob("*") if path.is_file()]
    assert any(path.name == "agent.db" for path in names)
    return b"".join(path.read_bytes() for path in names)
