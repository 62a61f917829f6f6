"""A page with 80 cached resources: bare, guarded, and behind ``context.route``.

Counted: the whole ``page.goto`` up to the load event, as the agent sees it (guarded, that holds the journaled action
with its two looks and two transactions), and beside it the browser's own figure, from navigation start to the end of
the load event. The shop counts what reached it: a page from the cache costs one request, the document's.

The three take turns in random order in one run, with random pauses; ``context.route`` runs in the bare browser.
"""

from __future__ import annotations

import random
import time
from collections import defaultdict
from typing import TYPE_CHECKING, Any

from playwright.sync_api import sync_playwright

import browsermw
from benchmarks.browsers import COMMON_ARGS, bare_options
from benchmarks.measures import ratio, row
from tests.shop_site import Shop

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Page

    from benchmarks.reporting import Reporter

LIMIT = 1.3
RESOURCES = 80
PAUSE_S = 0.020
TABLE = f"Page load, {RESOURCES} cached resources"
OWN_TIME = "() => { const [it] = performance.getEntriesByType('navigation'); return it.loadEventEnd / 1000; }"
SHOWN = {"bare": "bare browser", "guarded": "guarded", "route": "context.route"}

Samples = dict[tuple[str, str], list[float]]


def measure(count: int, folder: Path, reporter: Reporter) -> None:
    """Load ``count`` times in each way and report the rows."""
    url = f"sqlite:///{folder}/load.db"
    with Shop.start() as shop, browsermw.open(url, runtime="benchmark") as mw, sync_playwright() as started:
        browser = started.chromium.launch(**mw.launch_options(headless=True, args=[*COMMON_ARGS]))
        bare = started.chromium.launch(**bare_options())
        with mw.run("page-load") as run:
            contexts = {"bare": bare.new_context(), "guarded": run.wrap(browser.new_context())}
            contexts["route"] = bare.new_context()
            contexts["route"].route("**/*", lambda route: route.continue_())
            pages = {name: context.new_page() for name, context in contexts.items()}
            samples = _load_by_turns(shop, pages, count, reporter)
        browser.close()
        bare.close()
    _report(samples, reporter)


def _load_by_turns(shop: Shop, pages: dict[str, Page], count: int, reporter: Reporter) -> Samples:
    dice = random.Random(8472)
    address = f"{shop.url}/assets?n={RESOURCES}"
    samples: Samples = defaultdict(list)
    for page in pages.values():
        for _ in range(2):  # fill the cache
            page.goto(address)
    for done in range(count):
        for name in dice.sample(sorted(pages), len(pages)):
            shop.reset()
            time.sleep(dice.uniform(0, PAUSE_S))
            whole_s, own_s = _load(pages[name], address)
            samples[name, "whole"].append(whole_s)
            samples[name, "own"].append(own_s)
            samples[name, "hits"].append(shop.count(None, "GET"))
        reporter.step(done + 1, count)
    return samples


def _load(page: Any, address: str) -> tuple[float, float]:
    started = time.perf_counter()
    page.goto(address)
    whole_s = time.perf_counter() - started
    return whole_s, float(page.evaluate(OWN_TIME))


def _report(samples: Samples, reporter: Reporter) -> None:
    for what, said in (("whole", "whole goto"), ("own", "browser's own load time")):
        for name, shown in SHOWN.items():
            reporter.row(row(TABLE, f"{said}, {shown}", samples[name, what]))
        reporter.row(
            ratio(TABLE, f"{said}, guarded / bare", samples["guarded", what], samples["bare", what], limit=LIMIT)
        )
        reporter.row(ratio(TABLE, f"{said}, context.route / bare", samples["route", what], samples["bare", what]))
    for name, shown in SHOWN.items():
        reporter.row(row(TABLE, f"requests that reached the server, {shown}", samples[name, "hits"], unit="count"))
