"""Closing while the ledger fails: nothing leaves, and the browser can still be closed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from sqlalchemy.exc import OperationalError

import browsermw
from browsermw import LedgerUnavailable, Policy, faults
from browsermw.faults import Point

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from playwright.sync_api import Playwright

    from tests.shop_site import Shop

SEND = "() => fetch('/api/checkout', {method: 'POST', body: 'item=x'}).then(() => 'answered', () => 'failed')"


@pytest.fixture
def _broken_end() -> Iterator[None]:
    def fail(point: Point, call: str) -> None:
        if point is Point.LEDGER_BEFORE_COMMIT and call in {"release_run", "close_boot"}:
            raise OperationalError("COMMIT", {}, OSError("disk I/O error"))

    faults.arm(fail)
    yield
    faults.arm(None)


@pytest.mark.usefixtures("_broken_end")
@pytest.mark.parametrize("first", ["run", "runtime"])
def test_a_ledger_that_fails_at_the_end_leaves_a_browser_that_closes_and_sends_nothing(
    playwright: Playwright, tmp_path: Path, shop: Shop, first: str
) -> None:
    mw = browsermw.open(f"sqlite:///{tmp_path}/agent.db", runtime="agent-7", policy=Policy(settle_s=1))
    mw.__enter__()
    browser = playwright.chromium.launch(**mw.launch_options(headless=True))
    run = mw.run("invoice-1").__enter__()
    page = run.wrap(browser.new_context()).new_page()
    page.goto(f"{shop.url}/shop")
    if first == "run":
        with pytest.raises(LedgerUnavailable):
            run.__exit__(None, None, None)
        assert page.evaluate(SEND) == "failed"
    mw.close()
    assert page.evaluate(SEND) == "failed"
    browser.close()
    assert run.phase == "SUSPENDED"
    assert shop.count("/api/checkout") == 0
    faults.arm(None)
    with browsermw.open(f"sqlite:///{tmp_path}/agent.db", runtime="agent-7") as again, again.run("invoice-1") as run:
        assert not run.quarantined
