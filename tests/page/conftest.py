from __future__ import annotations

import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

import pytest_asyncio
from playwright.async_api import async_playwright

from browsermw.page.probe import PageProbe, probe_expression, read_probe
from browsermw.wire.launch import local_browser

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator, Sequence

    from playwright.async_api import Browser, BrowserContext, Page

ARGS = ["--disable-background-networking"]


class Eyes:
    """Looks at pages the way the wire does: over CDP, in an isolated world."""

    def __init__(self, context: BrowserContext) -> None:
        self.context = context

    async def page(self, html: str) -> Page:
        page = await self.context.new_page()
        await page.set_content(html)
        return page

    async def answer(self, page: Page, expression: str) -> object:
        cdp = await self.context.new_cdp_session(page)
        try:
            tree = await cdp.send("Page.getFrameTree")
            world = await cdp.send("Page.createIsolatedWorld", {"frameId": tree["frameTree"]["frame"]["id"]})
            evaluated = await cdp.send(
                "Runtime.evaluate",
                {
                    "expression": expression,
                    "contextId": world["executionContextId"],
                    "returnByValue": True,
                },
            )
        finally:
            await cdp.detach()
        assert "exceptionDetails" not in evaluated, evaluated["exceptionDetails"]
        value: object = evaluated["result"].get("value")
        return value

    async def see(
        self,
        page: Page,
        *,
        ignore: Sequence[str] = (),
        identity: str | None = None,
        volatile: Sequence[str] = (),
    ) -> PageProbe:
        return read_probe(await self.answer(page, probe_expression(ignore, identity, volatile)))

    async def hash_of(self, page: Page, *, ignore: Sequence[str] = (), volatile: Sequence[str] = ()) -> str:
        probe = await self.see(page, ignore=ignore, volatile=volatile)
        assert probe.dom_hash is not None, probe.not_available
        return probe.dom_hash


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared_browser() -> AsyncIterator[Browser]:
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(**local_browser({"args": ARGS}))
        yield browser
        await browser.close()


@pytest_asyncio.fixture(loop_scope="module")
async def eyes(shared_browser: Browser) -> AsyncIterator[Eyes]:
    context = await shared_browser.new_context()
    yield Eyes(context)
    await context.close()


Pages = dict[str, tuple[str, bytes]]


@contextmanager
def serving(pages: Pages) -> Iterator[str]:
    class Answer(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            content_type, body = pages.get(self.path, ("text/plain", b"nothing here"))
            self.send_response(200)
            self.send_header("Content-Type", content_type)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Tests are quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Answer)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
