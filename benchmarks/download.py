"""A download of 300 MB, asked for by GET and answered to a POST: bare beside guarded.

Counted: from the script that begins it to the end of Playwright's ``download.path()``, as the agent sees it, and how
much the memory of the agent's process (with gate, relay and ledger in it) rose meanwhile: at its peak, and afterwards.
Beside it the processor time of that process, which is what is added where all processors are busy anyway. The
shop makes the bytes as it sends them; the file is deleted before the next one is fetched.

The four cases take turns in random order in one run. A tenth as many rounds as other benchmarks have samples.
"""

from __future__ import annotations

import random
import time
from collections import defaultdict
from typing import TYPE_CHECKING

from playwright.sync_api import sync_playwright

import browsermw
from benchmarks import memory
from benchmarks.browsers import COMMON_ARGS, bare_options
from benchmarks.measures import ratio, row
from tests.shop_site import Shop

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Page

    from benchmarks.reporting import Reporter

SIZE_MB = 300
LIMIT = 1.15
MEMORY_LIMIT_MB = 30
"""A tenth of what passes: the relay's buffers, and no more however long the download is."""

LEAST_ROUNDS = 3
TABLE = f"Download of {SIZE_MB} MB"
BEGIN = """([method, address]) => {
  const form = document.createElement("form");
  Object.assign(form, {method: "post", action: address});
  const link = Object.assign(document.createElement("a"), {href: address});
  document.body.append(form, link);
  if (method === "POST") form.submit(); else link.click(); }"""

Samples = dict[tuple[str, str, str], list[float]]
"""Side, method, what was measured."""


def measure(count: int, folder: Path, reporter: Reporter) -> None:
    """Download ``count / 10`` times in each way and report the rows."""
    url = f"sqlite:///{folder}/download.db"
    with Shop.start() as shop, browsermw.open(url, runtime="benchmark") as mw, sync_playwright() as started:
        browser = started.chromium.launch(**mw.launch_options(headless=True, args=[*COMMON_ARGS]))
        bare = started.chromium.launch(**bare_options())
        with mw.run("download") as run:
            pages = {"bare": bare.new_context().new_page(), "guarded": run.wrap(browser.new_context()).new_page()}
            for page in pages.values():
                page.goto(f"{shop.url}/checkout")
            samples = _by_turns(shop, pages, max(LEAST_ROUNDS, count // 10), reporter)
        browser.close()
        bare.close()
    if not memory.is_measurable():
        reporter.skipped("memory during a download: this system has no /proc/self/clear_refs")
    _report(samples, reporter)


def _by_turns(shop: Shop, pages: dict[str, Page], rounds: int, reporter: Reporter) -> Samples:
    dice = random.Random(8472)
    samples: Samples = defaultdict(list)
    cases = [(side, method) for side in pages for method in ("GET", "POST")]
    for side, method in cases:  # what is made once, such as buffers and threads, is no cost of a download
        _download(pages[side], shop, method)
    for done in range(rounds):
        for side, method in dice.sample(cases, len(cases)):
            before_mb = _forget()
            processor_s = time.process_time()
            samples[side, method, "time"].append(_download(pages[side], shop, method))
            samples[side, method, "processor"].append(time.process_time() - processor_s)
            if before_mb is not None:
                samples[side, method, "peak"].append(memory.peak_mb() - before_mb)
                samples[side, method, "kept"].append(memory.resident_mb() - before_mb)
        reporter.step(done + 1, rounds)
    return samples


def _forget() -> float | None:
    if not memory.is_measurable():
        return None
    memory.forget_peak()
    return memory.resident_mb()


def _download(page: Page, shop: Shop, method: str) -> float:
    started = time.perf_counter()
    with page.expect_download() as begun:
        page.evaluate(BEGIN, [method, f"{shop.url}/big?mb={SIZE_MB}"])
    path = begun.value.path()
    took_s = time.perf_counter() - started
    assert path.stat().st_size == SIZE_MB * 2**20
    begun.value.delete()
    return took_s


def _report(samples: Samples, reporter: Reporter) -> None:
    for method in ("GET", "POST"):
        times = {side: samples[side, method, "time"] for side in ("bare", "guarded")}
        for side, taken in times.items():
            reporter.row(row(TABLE, f"{method}, {side}", taken))
        reporter.row(ratio(TABLE, f"{method}, guarded / bare", times["guarded"], times["bare"], limit=LIMIT))
        for side in times:
            reporter.row(
                row(TABLE, f"{method}, processor time of our process, {side}", samples[side, method, "processor"])
            )
        for what, said in (("peak", "memory at its peak"), ("kept", "memory afterwards")):
            for side in ("bare", "guarded"):
                if grown := samples[side, method, what]:
                    limit = MEMORY_LIMIT_MB if side == "guarded" else None
                    reporter.row(row(TABLE, f"{method}, {said}, {side}", grown, unit="MB", limit=limit))
