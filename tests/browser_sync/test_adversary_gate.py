"""Ways past the gate, and doubts about requests that never left, each found by attacking it once."""

from __future__ import annotations

import os
import signal
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, ClassVar

import pytest
import structlog
from structlog.testing import capture_logs

import browsermw
from browsermw import Policy, faults
from browsermw.faults import Point
from browsermw.hooks.launched import debugging_port_of
from tests.browser_kit import Journal, browser_pid, until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager
    from pathlib import Path

    from playwright.sync_api import Browser, Page, Playwright

    from browsermw import Run, Runtime
    from tests.shop_site import Shop

    Opening = Callable[..., AbstractContextManager[tuple[Runtime, Browser]]]

SENDS = {
    "beacon": "url => { navigator.sendBeacon(url, 'a') }",
    "ping": "url => { const a = document.createElement('a'); a.href = '#x'; a.ping = url; a.click() }",
    "pagehide": "url => addEventListener('pagehide', () => navigator.sendBeacon(url, 'a'))",
    "fetch": "url => { fetch(url, {method: 'POST', mode: 'no-cors', body: 'a'}) }",
    "frame": """url => {
        const frame = document.createElement('iframe'); document.body.append(frame);
        frame.contentWindow.fetch(url, {method: 'POST', mode: 'no-cors', body: 'a'})
    }""",
}


@pytest.fixture(params=["page before wrap", "first page of a persistent context"])
def older(
    request: pytest.FixtureRequest, playwright: Playwright, tmp_path: Path
) -> Iterator[tuple[Runtime, Run, Page]]:
    """A page with content that was there before its context was wrapped."""
    with browsermw.open(f"sqlite:///{tmp_path}/agent.db", runtime="agent-7", policy=Policy(settle_s=1)) as mw:
        options = mw.launch_options(headless=True)
        if request.param.startswith("page"):
            browser: Any = playwright.chromium.launch(**options)
            context = browser.new_context()
            page = context.new_page()
        else:
            browser = context = playwright.chromium.launch_persistent_context(str(tmp_path / "profile"), **options)
            page = context.pages[0]
        page.set_content("<p>made by the agent")
        with mw.run("invoice-1") as run:
            run.wrap(context)
            yield mw, run, page
        browser.close()


@pytest.mark.parametrize("send", SENDS.values(), ids=SENDS)
def test_a_page_that_is_older_than_the_wrap_sends_once_and_on_record(
    older: tuple[Runtime, Run, Page], shop: Shop, send: str
) -> None:
    mw, run, page = older
    page.evaluate(send, f"{shop.url}/api/beacon")
    if "pagehide" in send:
        page.goto("about:blank")  # which would cut a fetch short that has not gone out yet
    shop.wait_for("/api/beacon")
    Journal(mw, run.run_id).settled("/api/beacon")
    assert [effect.status for effect in Journal(mw, run.run_id).effects()] == [204]
    assert shop.count("/api/beacon") == 1


@pytest.mark.parametrize("send", [SENDS["fetch"], SENDS["frame"]], ids=["fetch", "frame"])
def test_a_page_that_is_older_than_an_attached_gate_is_no_duplicate_of_itself(
    playwright: Playwright, tmp_path: Path, shop: Shop, send: str
) -> None:
    from browsermw.wire.launch import free_port  # noqa: PLC0415 - only here

    policy, port = Policy(settle_s=1, minimum_wire="attached"), free_port()
    with browsermw.open(f"sqlite:///{tmp_path}/agent.db", runtime="agent-7", policy=policy) as mw:
        arguments = {name: mw.launch_options().get(name) for name in ("executable_path",)}
        browser = playwright.chromium.launch(
            headless=True, args=[f"--remote-debugging-port={port}", "--no-sandbox"], **arguments
        )
        context = browser.new_context()
        page = context.new_page()
        page.set_content("<p>made by the agent")
        with capture_logs() as said:
            mw.attach(f"http://127.0.0.1:{port}")
        structlog.reset_defaults()
        assert [line["count"] for line in said if line["event"] == "pages_older_than_gate"] == [1]
        with mw.run("invoice-1") as run:
            run.wrap(context)
            page.evaluate(send, f"{shop.url}/api/beacon")
            shop.wait_for("/api/beacon")
            assert [effect.status for effect in Journal(mw, "invoice-1").settled()] == [204]
        assert shop.count("/api/beacon") == 1
        browser.close()


class _Strict(BaseHTTPRequestHandler):
    """A page that breaks its own content policy, and the address for the report."""

    reports: ClassVar[list[str]]

    def do_GET(self) -> None:
        page = b"<link rel=icon href='data:,'><img src='http://127.0.0.1:1/x.png'>"
        self.send_response(200)
        self.send_header("Content-Security-Policy", "img-src data:; report-uri /report")
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(page)))
        self.end_headers()
        self.wfile.write(page)

    def do_POST(self) -> None:
        self.reports.append(self.path)
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Say nothing."""


def test_a_report_of_a_content_policy_is_on_record(page: Page, journal: Journal) -> None:
    reports: list[str] = []
    _Strict.reports = reports
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Strict)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        page.goto(f"http://127.0.0.1:{server.server_port}/")
        until(lambda: reports)
        assert [effect.channel for effect in journal.settled("/report")] == ["CSPViolationReport"]
    finally:
        server.shutdown()
        server.server_close()


def test_a_browser_that_ends_while_a_request_is_held_leaves_no_doubt(opening: Opening, shop: Shop) -> None:
    go_on, held = threading.Event(), threading.Event()

    def hold(point: Point, call: str) -> None:
        if point is Point.LEDGER_BEFORE_COMMIT and call == "dispatch_effect":
            held.set()
            go_on.wait(10)

    with opening(Policy(settle_s=30)) as (mw, browser):
        with mw.run("invoice-1") as run:
            page = run.wrap(browser.new_context()).new_page()
            page.goto(f"{shop.url}/shop")
            faults.arm(hold)
            page.evaluate("() => { setTimeout(() => navigator.sendBeacon('/api/beacon', 'a'), 700) }")
            assert held.wait(10)
            port = debugging_port_of(page.context)
            assert port is not None
            os.kill(browser_pid(port), signal.SIGKILL)  # a close would wait for the decision
            faults.arm(None)
            go_on.set()
            Journal(mw, "invoice-1").settled("/api/beacon")
            started_s = time.monotonic()
        assert time.monotonic() - started_s < 10  # nothing is waited for
        assert Journal(mw, "invoice-1").phases() == ["ABANDONED"]
        assert run.phase == "FINISHED"
    assert shop.count("/api/beacon") == 0
