"""A browser that somebody else started: what happens when the gate loses it and the browser lives on."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import browsermw
from browsermw import Policy, WireTooWeak
from browsermw.wire.browser_find import find_browser
from browsermw.wire.launch import free_port
from tests.browser_kit import until

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Playwright

    from tests.shop_site import Shop


def test_an_action_behind_a_lost_gate_is_refused_before_it_is_performed(
    playwright: Playwright, shop: Shop, tmp_path: Path
) -> None:
    policy, port = Policy(settle_s=0, minimum_wire="attached"), free_port()
    found = find_browser()
    owner = playwright.chromium.launch(
        args=[f"--remote-debugging-port={port}", "--no-sandbox"], executable_path=found.path if found else None
    )
    try:
        with browsermw.open(f"sqlite:///{tmp_path}/agent.db", runtime="agent-7", policy=policy) as mw:
            mw.attach(f"http://127.0.0.1:{port}")
            browser = playwright.chromium.connect_over_cdp(f"http://127.0.0.1:{port}")
            with mw.run("r") as run:
                page = run.wrap(browser.new_context()).new_page()
                page.goto(f"{shop.url}/checkout")
                guarded = mw._attached[0]
                assert guarded._connection is not None
                mw.submit(guarded._connection.close()).result()
                until(lambda: guarded.gate_is_gone)
                with pytest.raises(WireTooWeak, match="was not performed"):
                    page.click("#pay")
                assert shop.count("/api/checkout") == 0
            mw.attach(f"http://127.0.0.1:{port}")
            with mw.run("r") as again:
                page = again.wrap(browser.new_context()).new_page()
                page.goto(f"{shop.url}/checkout")
                page.click("#pay")
                shop.wait_for("/api/checkout")
            browser.close()
    finally:
        owner.close()
