"""What the hooks cost contexts that nobody wrapped.

Two figures for each method. The hook alone: Playwright's method is replaced by one that does nothing before browsermw
puts its hook on it, and the hooked call is timed beside the bare one, on a real page of a context that nobody wrapped,
first while no context of the process is wrapped, then while another one is. And the real ``page.evaluate("1")``,
hooked beside the original, which shows whether that is to be seen at all.

A sample of the first kind is the mean of 200 calls in a row. The variants take turns; random pauses stand between the
samples of the second kind.
"""

from __future__ import annotations

import random
import time
from collections import defaultdict
from typing import TYPE_CHECKING, Any

import browsermw
from benchmarks.browsers import API, COMMON_ARGS, Flavour, bare_options, pause, run_flavour, settled
from benchmarks.measures import ratio, row
from browsermw.hooks.install import install

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from pathlib import Path

    from benchmarks.reporting import Reporter

CALLS = 200
PAUSE_S = 0.010
STUBBED = ("Page.dblclick", "Locator.dblclick", "ElementHandle.dblclick", "Keyboard.press")
"""Methods that the benchmark itself does not need."""

Samples = dict[tuple[str, str], list[float]]


def measure(flavour: Flavour, count: int, folder: Path, reporter: Reporter) -> None:
    """Take ``count`` samples of each kind and report the rows."""
    bare = _stub(flavour)
    original = API[flavour].Page.evaluate
    install()
    samples: Samples = defaultdict(list)

    async def body(started: Any) -> None:
        browser = await settled(started.chromium.launch(**bare_options()))
        page = await settled((await settled(browser.new_context())).new_page())
        objects = await _objects(page)
        await _time_hooks(flavour, objects, bare, samples, "no context wrapped", count)
        with browsermw.open(f"sqlite:///{folder}/unwrapped.db", runtime="benchmark") as mw, mw.run("other") as run:
            guarded = await settled(started.chromium.launch(**mw.launch_options(headless=True, args=[*COMMON_ARGS])))
            other = run.wrap(await settled(guarded.new_context()))
            await settled(other.new_page())
            await _time_hooks(flavour, objects, bare, samples, "another context wrapped", count)
            await _time_real(flavour, page, original, samples, count, reporter)
            await settled(guarded.close())
        await settled(browser.close())

    run_flavour(flavour, body)
    _report(flavour, samples, reporter)


def _stub(flavour: Flavour) -> dict[str, Any]:
    def nothing(self: object, *args: object, **kwargs: object) -> None:
        pass

    async def nothing_async(self: object, *args: object, **kwargs: object) -> None:
        pass

    stub = nothing if flavour == "sync" else nothing_async
    for name in STUBBED:
        owner, _, method = name.partition(".")
        setattr(getattr(API[flavour], owner), method, stub)
    return dict.fromkeys(STUBBED, stub)


async def _objects(page: Any) -> dict[str, Any]:
    await settled(page.set_content("<button>a</button>"))
    locator = page.locator("button")
    handle = await settled(locator.element_handle())
    return dict(zip(STUBBED, (page, locator, handle, page.keyboard), strict=True))


async def _time_hooks(
    flavour: Flavour, objects: dict[str, Any], bare: dict[str, Any], samples: Samples, when: str, count: int
) -> None:
    time_calls: Callable[..., Coroutine[Any, Any, float]] = _plain_calls if flavour == "sync" else _awaited_calls
    for _ in range(count):
        for name, instance in objects.items():
            hooked = getattr(instance, name.partition(".")[2])
            unhooked = bare[name].__get__(instance)
            samples[name, f"bare, {when}"].append(await time_calls(unhooked))
            samples[name, f"hooked, {when}"].append(await time_calls(hooked))


async def _plain_calls(call: Callable[..., object]) -> float:
    started = time.perf_counter()
    for _ in range(CALLS):
        call("a")
    return (time.perf_counter() - started) / CALLS


async def _awaited_calls(call: Callable[..., Any]) -> float:
    started = time.perf_counter()
    for _ in range(CALLS):
        await call("a")
    return (time.perf_counter() - started) / CALLS


async def _time_real(
    flavour: Flavour, page: Any, original: Any, samples: Samples, count: int, reporter: Reporter
) -> None:
    dice = random.Random(8472)
    variants: dict[str, Callable[[], Any]] = {
        "hooked": lambda: page.evaluate("1"),
        "bare": lambda: original(page, "1"),
    }
    for done in range(count):
        for name in dice.sample(sorted(variants), len(variants)):
            await pause(flavour, dice.uniform(0, PAUSE_S))
            started = time.perf_counter()
            await settled(variants[name]())
            samples["page.evaluate", name].append(time.perf_counter() - started)
        reporter.step(done + 1, count)


def _report(flavour: Flavour, samples: Samples, reporter: Reporter) -> None:
    table = f"Context that nobody wrapped, {flavour}"
    for name in STUBBED:
        for when in ("no context wrapped", "another context wrapped"):
            pairs = zip(samples[name, f"hooked, {when}"], samples[name, f"bare, {when}"], strict=True)
            added = [hooked - bare for hooked, bare in pairs]
            reporter.row(row(table, f"hook on {name}, {when}", added, unit="µs"))
    for variant in ("bare", "hooked"):
        reporter.row(row(table, f'page.evaluate("1"), {variant}', samples["page.evaluate", variant]))
    hooked, bare = samples["page.evaluate", "hooked"], samples["page.evaluate", "bare"]
    reporter.row(ratio(table, 'page.evaluate("1"), hooked / bare', hooked, bare))
