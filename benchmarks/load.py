"""Many pages at once: 200 pages in 20 contexts of one browser, 50 requests a second, 10 of them effects, for 60 s.

Each context is guarded by a run of its own. Each page sends by its own timers (every fifth request is a POST), so what
is counted is what the gate, the relay and the ledger do with it; no agent clicks. A request's time is the page's view:
from ``fetch`` to the last byte of its answer. *Lost* and *double* are counted at the server by the requests' own
numbers, *stalled* is a request without an answer after 5 s, and an effect's record is right if exactly one record
names its answer's request id.

The runtime's loop is watched from inside: a task of the benchmark's sleeps 5 ms at a time and notes how late it wakes.
The longest of these is the loop's longest stall; whatever else wants the processors meanwhile (200 pages do) is in it,
so the longest without that wait stands beside it, by the kernel's own count (Linux; elsewhere the two are the same).

With ``--quick``: a tenth of the pages and of the time, at the same rate.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from playwright.async_api import async_playwright

import browsermw
from benchmarks.browsers import COMMON_ARGS
from benchmarks.measures import longest, row, total
from tests.shop_site import Shop

if TYPE_CHECKING:
    from collections.abc import Iterable

    from playwright.async_api import Browser, Page

    from benchmarks.measures import Row
    from benchmarks.reporting import Reporter
    from browsermw import Runtime

PAGES_EACH, CONTEXTS = 10, 20
RATE_PER_S, SECONDS = 50, 60
EFFECT_EVERY = 5
STALLED_S = 5.0
STALL_LIMIT_MS = 100.0
TICK_S = 0.005
TIMEOUT_MS = 120_000.0
FULL_COUNT = 100
_SCHEDULED = Path("/proc/thread-self/schedstat")
LEAD_S, LEAD_EACH_S = 2.0, 0.1
"""Time to give all pages their timers, before the first one goes off."""

SEND = """([page, startAt, everyMs, count, effectEvery]) => {
  window.sent = [];
  async function send(i) {
    const id = `${page}-${i}`, isEffect = (page + i) % effectEvery === 0;
    const it = {id, isEffect, tookMs: null, status: null};
    window.sent.push(it);
    const began = performance.now();
    const how = isEffect ? {method: "POST", body: JSON.stringify({item: id})} : {};
    try {
      const answer = await fetch((isEffect ? "/api/checkout" : "/api/poll") + `?id=${id}`, how);
      await answer.text();
      it.status = answer.status;
    } catch (error) { it.status = error.message; }
    it.tookMs = performance.now() - began;
  }
  for (let i = 0; i < count; i++) setTimeout(send, startAt - Date.now() + i * everyMs, i);
}"""


@dataclass
class Ticker:
    """Runs in the runtime's loop.

    Attributes:
        lates: How late each tick came, in seconds.
        blocked: The same without the time in which the loop's thread was ready and had no processor.
    """

    lates: list[float] = field(default_factory=list)
    blocked: list[float] = field(default_factory=list)

    async def run(self) -> None:
        """Tick until cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            due, queued_s = loop.time() + TICK_S, _queued_s()
            await asyncio.sleep(TICK_S)
            late_s = loop.time() - due
            self.lates.append(late_s)
            self.blocked.append(max(0.0, late_s - (_queued_s() - queued_s)))

    def between(self, start: int, end: int) -> Ticker:
        """The ticks from one number to another."""
        return Ticker(self.lates[start:end], self.blocked[start:end])


def _queued_s() -> float:
    """How long this thread has been ready to run and waited for a processor, ever."""
    try:
        return int(_SCHEDULED.read_text(encoding="ascii").split()[1]) / 1e9
    except OSError:
        return 0.0


@dataclass(frozen=True)
class Plan:
    """How much is sent, by how many."""

    contexts: int
    seconds: int

    @property
    def pages(self) -> int:
        """In all contexts."""
        return self.contexts * PAGES_EACH

    @property
    def each(self) -> int:
        """Requests of each page."""
        return RATE_PER_S * self.seconds // self.pages

    @property
    def table(self) -> str:
        """What the rows stand under."""
        return (
            f"Load: {self.pages} pages in {self.contexts} contexts, {RATE_PER_S} requests a second, "
            f"{RATE_PER_S // EFFECT_EVERY} of them effects, {self.seconds} s"
        )


def measure(count: int, folder: Path, reporter: Reporter) -> None:
    """Put the load on and report the rows."""
    part = min(count, FULL_COUNT) / FULL_COUNT
    plan = Plan(max(1, round(CONTEXTS * part)), max(1, round(SECONDS * part)))
    asyncio.run(_measure(plan, folder, reporter))


async def _measure(plan: Plan, folder: Path, reporter: Reporter) -> None:
    ticker = Ticker()
    url = f"sqlite:///{folder}/load.db"
    with Shop.start() as shop:
        async with browsermw.open(url, runtime="benchmark") as mw, async_playwright() as started:
            browser = await started.chromium.launch(**mw.launch_options(headless=True, args=[*COMMON_ARGS]))
            ticking = mw.submit(ticker.run())
            async with AsyncExitStack() as runs:
                pages = await _open_pages(plan, mw, browser, runs, shop.url)
                opened = len(ticker.lates)
                await _send(plan, pages, reporter)
                loaded = len(ticker.lates)
                sent = [it for page in pages for it in await page.evaluate("() => window.sent")]
                for page in pages:
                    await page.context.close()
            ticking.cancel()
            await browser.close()
            recorded = _recorded(mw, plan)
        arrivals = shop.arrivals()
    for found in _rows(plan, sent, arrivals, recorded, ticker.between(0, opened), ticker.between(opened, loaded)):
        reporter.row(found)


def _run_id(number: int) -> str:
    return f"load-{number:02d}"


async def _open_pages(plan: Plan, mw: Runtime, browser: Browser, runs: AsyncExitStack, url: str) -> list[Page]:
    async def open_in(number: int) -> list[Page]:
        run = await runs.enter_async_context(mw.run(_run_id(number)))
        context = run.wrap(await browser.new_context())
        context.set_default_timeout(TIMEOUT_MS)
        pages = [await context.new_page() for _ in range(PAGES_EACH)]
        for page in pages:
            await page.goto(f"{url}/checkout")
        return pages

    opened = await asyncio.gather(*(open_in(number) for number in range(plan.contexts)))
    return [page for pages in opened for page in pages]


async def _send(plan: Plan, pages: list[Page], reporter: Reporter) -> None:
    """Start all pages' timers, of which none goes off before the last page has its own, and wait."""
    every_s = len(pages) / RATE_PER_S
    start_at = time.time() + LEAD_S + len(pages) * LEAD_EACH_S

    def script(number: int) -> list[float]:
        first_ms = (start_at + number / RATE_PER_S) * 1000
        return [number, first_ms, every_s * 1000, plan.each, EFFECT_EVERY]

    await asyncio.gather(*(page.evaluate(SEND, script(number)) for number, page in enumerate(pages)))
    assert time.time() < start_at, "this machine is too slow to start all pages in time"
    await asyncio.sleep(start_at - time.time())
    for second in range(plan.seconds):
        await asyncio.sleep(1)
        reporter.step(second + 1, plan.seconds)
    await asyncio.sleep(STALLED_S)


def _recorded(mw: Runtime, plan: Plan) -> Counter[str]:
    """Request ids of the answers on record, each with the number of its records; "" for records without an answer."""
    runs = (mw.ledger_call("actions", _run_id(number)) for number in range(plan.contexts))
    effects = (effect for actions in runs for action in actions for effect in action.effects)
    return Counter((effect.external_request_id or "").partition("=")[2] for effect in effects)


def _rows(
    plan: Plan,
    sent: list[dict[str, Any]],
    arrivals: list[dict[str, Any]],
    recorded: Counter[str],
    while_opening: Ticker,
    under_load: Ticker,
) -> Iterable[Row]:
    table = plan.table
    came = Counter(arrival["query"].removeprefix("id=") for arrival in arrivals if arrival["query"])
    effects = [f"req-{arrival['n']}" for arrival in arrivals if arrival["method"] == "POST"]
    took_s = {
        kind: [(it["tookMs"] or 1e3 * STALLED_S) / 1e3 for it in sent if it["isEffect"] is kind]
        for kind in (False, True)
    }
    yield row(table, "reading request, the page's view", took_s[False])
    yield row(table, "effect, the page's view", took_s[True])
    yield longest(table, "longest request of all", [*took_s[False], *took_s[True]])
    yield total(table, "requests that the pages sent", [1.0] * len(sent))
    yield total(table, "requests that they should have sent and did not", [plan.pages * plan.each - len(sent)], limit=0)
    yield total(table, "lost: sent and never at the server", [float(came[it["id"]] == 0) for it in sent], limit=0)
    yield total(table, "double: at the server more than once", [float(came[it["id"]] > 1) for it in sent], limit=0)
    stalled = [float(it["tookMs"] is None or it["tookMs"] > 1e3 * STALLED_S) for it in sent]
    yield total(table, f"stalled: no answer within {STALLED_S:g} s", stalled, limit=0)
    yield total(table, "failed", [float(it["status"] not in (200, 201)) for it in sent], limit=0)
    yield total(table, "effects at the server", [1.0] * len(effects))
    yield total(
        table, "of these without one record of their answer", [float(recorded[it] != 1) for it in effects], limit=0
    )
    strays = [float(times) for it, times in recorded.items() if it not in set(effects)]
    yield total(table, "records without an answer, or of what never arrived", strays, limit=0)
    yield longest(table, "loop's longest stall while the pages were opened", while_opening.lates)
    yield longest(table, "longest of these without the wait for a processor", while_opening.blocked)
    yield row(table, "lateness of the loop under load", under_load.lates)
    yield longest(table, "loop's longest stall under load", under_load.lates, limit=STALL_LIMIT_MS)
    yield longest(table, "longest of these without the wait for a processor", under_load.blocked)
