"""A page goes on at its own pace while the agent's thread thinks: nothing of ours lives on Playwright's connection."""

from __future__ import annotations

import itertools
import time
from typing import TYPE_CHECKING

from tests.browser_kit import STOP_TIMERS

if TYPE_CHECKING:
    from playwright.sync_api import Page

    from tests.browser_kit import Journal
    from tests.shop_site import Shop

THINKS_S = 5.0


def test_a_polling_page_goes_on_while_the_agent_sleeps(page: Page, shop: Shop) -> None:
    page.goto(f"{shop.url}/polling?ms=100")
    shop.wait_for("/api/poll", method="GET")
    before = shop.count("/api/poll", "GET")
    time.sleep(THINKS_S)  # the agent thinks: that is the behaviour under test
    arrivals = shop.arrivals("/api/poll", "GET")[before:]
    gaps_s = [later["monotonic_s"] - one["monotonic_s"] for one, later in itertools.pairwise(arrivals)]
    assert len(arrivals) > THINKS_S / 0.1 * 0.5
    assert max(gaps_s) < 1.5


def test_an_autosaving_page_goes_on_and_each_save_is_journaled(page: Page, shop: Shop, journal: Journal) -> None:
    page.goto(f"{shop.url}/autosave?ms=250")
    page.type("#text", "dear diary")
    shop.wait_for("/api/autosave")
    before = shop.count("/api/autosave")
    time.sleep(THINKS_S)
    during = shop.count("/api/autosave") - before
    page.evaluate(STOP_TIMERS)
    effects = journal.settled("/api/autosave")
    journal.closed()
    assert during > THINKS_S / 0.25 * 0.5
    assert len([effect for effect in effects if str(effect.phase) != "REFUSED"]) == shop.count("/api/autosave")
    saves = [action for action in journal.actions() if action.effects]
    kinds = {action.kind for action in saves}
    assert "page" in kinds
    by_page = [action for action in saves if action.kind == "page"]
    # A save while the one before is unanswered is refused; on a busy machine there may be some.
    assert {str(action.phase) for action in by_page} - {"REFUSED"} == {"OBSERVED"}
    assert {str(effect.phase) for action in by_page for effect in action.effects} - {"REFUSED"} == {"OBSERVED"}
