"""Time inside our code per click: what browsermw adds to ``page.click``, on this side of Playwright.

Without an effect (``#noop``): the wall time of the hooked call minus the wall time of Playwright's own call inside it.
That is the opening (admission, look at the page, PLANNED committed) and the closing (the page's scripts have their
turn, look, OBSERVED committed), with every hop between threads.

With an effect (``#pay``, one ``fetch``): the same, and the gate's part for that request: from the pause event to the
order to go on, once for the request (DISPATCHED committed) and once for its answer (ACKNOWLEDGED committed). These run
while the hook, or Playwright, waits, so what overlaps in time counts once; the plain sum stands beside it.

Not counted: what Chromium needs to pause and to go on, the relay, and what our probe keeps the page's own thread from
doing. The whole call, bare beside guarded, shows these too, in steps of 16.7 ms, because Playwright's click waits for
animation frames.

A random pause of 0 to 20 ms stands before each click; the guarded and the bare browser and both pages take turns in
random order. Each flavour runs in a process of its own.
"""

from __future__ import annotations

import asyncio
import random
import sqlite3
import time
from collections import defaultdict
from typing import TYPE_CHECKING, Any

import browsermw
from benchmarks.browsers import API, COMMON_ARGS, Flavour, bare_options, pause, run_flavour, settled
from benchmarks.measures import covered_s, ratio, row, summed_s, total
from benchmarks.stopwatch import ANSWER_HELD, CATCH_UP, COMMITS, HELD, LOOK, PLAYWRIGHT, Stopwatch
from tests.shop_site import Shop

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from benchmarks.measures import Interval, Row
    from benchmarks.reporting import Reporter

NO_EFFECT_LIMIT_MS, EFFECT_LIMIT_MS = 8.0, 12.0
PAUSE_S = 0.020
ELEMENTS = 800
PAGES = ("/checkout", f"{ELEMENTS} elements")
EFFECT_OF = {"#noop": "without effect", "#pay": "with effect"}
FILL = """count => { for (let i = 0; i < count; i++) {
  const made = document.createElement("p"); made.className = `line l${i}`; made.textContent = `line ${i}`;
  document.body.append(made); } }"""

Samples = dict[tuple[str, str, str], list[float]]
"""Page, button, what was measured."""


def measure(flavour: Flavour, count: int, folder: Path, reporter: Reporter) -> None:
    """Click ``count`` times in each case and report the rows."""
    watch = Stopwatch()
    watch.watch(API[flavour], "Page.click", PLAYWRIGHT)  # below the hook, which browsermw.open puts on top of it
    watch.watch_ledger_and_page()
    watch.watch_gate()
    samples: Samples = defaultdict(list)
    with Shop.start() as shop, browsermw.open(f"sqlite:///{folder}/clicks.db", runtime="benchmark") as mw:

        async def body(started: Any) -> None:
            browser = await settled(started.chromium.launch(**mw.launch_options(headless=True, args=[*COMMON_ARGS])))
            bare = await settled(started.chromium.launch(**bare_options()))
            with mw.run("clicks") as run:
                # A context for each page: a page that another one of its window hides is throttled.
                pages = {}
                for name in PAGES:
                    guarded = run.wrap(await settled(browser.new_context()))
                    pages["guarded", name] = await _open(guarded, shop.url, name)
                    pages["bare", name] = await _open(await settled(bare.new_context()), shop.url, name)
                await _click_by_turns(flavour, pages, watch, samples, count, reporter)
            await settled(browser.close())
            await settled(bare.close())

        run_flavour(flavour, body)
    for found in _rows(flavour, samples):
        reporter.row(found)
    for found in _yardsticks(flavour, folder, count):
        reporter.row(found)


async def _open(context: Any, url: str, name: str) -> Any:
    page = await settled(context.new_page())
    await settled(page.goto(f"{url}/checkout"))
    if name != "/checkout":
        await settled(page.evaluate(FILL, ELEMENTS))
    for selector in EFFECT_OF:  # the first click on a page asks for its name and compiles the probe
        await _click(page, selector)
    return page


async def _click_by_turns(
    flavour: Flavour,
    pages: dict[tuple[str, str], Any],
    watch: Stopwatch,
    samples: Samples,
    count: int,
    reporter: Reporter,
) -> None:
    dice = random.Random(8472)
    cases = [(guard, name, selector) for guard, name in pages for selector in EFFECT_OF]
    for done in range(count):
        for guard, name, selector in dice.sample(cases, len(cases)):
            await pause(flavour, dice.uniform(0, PAUSE_S))
            watch.take()
            processor_s = watch.processor_s()
            called = await _click(pages[guard, name], selector)
            _note(samples, (guard, name, selector), called, watch.take())
            if guard == "guarded":
                samples[name, selector, "processor"].append(watch.processor_s() - processor_s)
        reporter.step(done + 1, count)


async def _click(page: Any, selector: str) -> Interval:
    started = time.perf_counter()
    await settled(page.click(selector))
    ended = time.perf_counter()
    if selector == "#pay":
        # The page says "sending" before click returns, so this is the answer to this very click.
        await settled(page.wait_for_selector('#result:has-text("201")'))
    return started, ended


def _note(samples: Samples, case: tuple[str, str, str], called: Interval, laps: dict[str, list[Interval]]) -> None:
    guard, name, selector = case

    def add(what: str, seconds: float) -> None:
        samples[name, selector, what].append(seconds)

    add(f"whole call, {guard}", called[1] - called[0])
    if guard == "bare":
        return
    ((inner_start, inner_end),) = laps[PLAYWRIGHT]
    hook = [(called[0], inner_start), (inner_end, called[1])]
    gate = [*laps[HELD], *laps[ANSWER_HELD]]
    commits = [lap for commit in COMMITS for lap in laps[commit]]
    add("inside", covered_s([*hook, *gate]))
    add("sum", summed_s([*hook, *gate]))
    add("before", summed_s(hook[:1]))
    add("after", summed_s(hook[1:]))
    add("looks", summed_s(laps[LOOK]))
    add("catching up", summed_s(laps[CATCH_UP]))
    add("commits", summed_s(commits))
    add("between", covered_s([*hook, *gate]) - covered_s([*laps[LOOK], *laps[CATCH_UP], *commits]))
    if gate:
        add("held", summed_s(laps[HELD]))
        add("answer held", summed_s(laps[ANSWER_HELD]))
        # A request that reaches the gate after its click was closed is journaled as an action of the page's own.
        add("late", float(len(laps["plan_action"]) > 1))


def _rows(flavour: Flavour, samples: Samples) -> Iterable[Row]:
    for selector, effect in EFFECT_OF.items():
        limit = NO_EFFECT_LIMIT_MS if selector == "#noop" else EFFECT_LIMIT_MS
        commits = 2 if selector == "#noop" else 4
        for name in PAGES:
            table = f"Click {effect}, {flavour}, {name}"
            taken = {what: found for (*case, what), found in samples.items() if case == [name, selector]}
            yield row(table, "time inside our code", taken["inside"], limit=limit)
            if "held" in taken:
                yield row(table, "… added up, overlaps counted twice", taken["sum"])
            yield row(table, "… in the hook before Playwright's click", taken["before"])
            yield row(table, "… in the hook after it", taken["after"])
            if "held" in taken:
                yield row(table, "… request held at the gate", taken["held"])
                yield row(table, "… answer held at the gate", taken["answer held"])
                yield total(table, "requests that came after their click had been closed", taken["late"])
            yield row(table, "of these: 2 looks at the page", taken["looks"])
            yield row(table, "of these: until the page's scripts have had their turn", taken["catching up"])
            yield row(table, f"of these: {commits} transactions", taken["commits"])
            yield row(table, "of these: all else (threads, loop, records)", taken["between"])
            yield row(table, "processor time of our threads", taken["processor"])
            yield row(table, "whole call, bare browser", taken["whole call, bare"])
            yield row(table, "whole call, guarded", taken["whole call, guarded"])
            yield ratio(table, "guarded / bare", taken["whole call, guarded"], taken["whole call, bare"])


def _yardsticks(flavour: Flavour, folder: Path, count: int) -> Iterable[Row]:
    """What this machine asks, in this very run, for the two things that no design can save."""
    table = f"Yardsticks of this run, {flavour}"
    yield row(table, "one bare sqlite3 commit (WAL, synchronous=FULL)", _commits(folder, count))
    yield row(table, "one hop to another thread's loop and back", _hops(count))


def _commits(folder: Path, count: int) -> list[float]:
    database = sqlite3.connect(folder / "yardstick.db", isolation_level=None)
    for line in ("PRAGMA journal_mode = WAL", "PRAGMA synchronous = FULL", "CREATE TABLE t (n INTEGER)"):
        database.execute(line)
    taken = []
    for number in range(count):
        started = time.perf_counter()
        database.execute("BEGIN IMMEDIATE")
        database.execute("INSERT INTO t VALUES (?)", (number,))
        database.execute("COMMIT")
        taken.append(time.perf_counter() - started)
    database.close()
    return taken


def _hops(count: int) -> list[float]:
    from browsermw.loop_thread import LoopThread  # noqa: PLC0415 - measured here alone

    thread = LoopThread("yardstick", 1)
    taken = []
    for _ in range(count):
        started = time.perf_counter()
        thread.submit(asyncio.sleep(0)).result()
        taken.append(time.perf_counter() - started)
    thread.close()
    return taken
