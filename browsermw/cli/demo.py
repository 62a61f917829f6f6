"""``browsermw demo``: watch an agent die half-way through an order, and watch it recover.

Only shows what ``browsermw.testing.demo_story`` plays. With ``--json``, standard output holds one JSON object.
"""

from __future__ import annotations

import dataclasses
import signal
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from browsermw.cli.exits import Exit, exit_code_of, fail
from browsermw.cli.opened import ledger_argument, opened
from browsermw.cli.output import cell, indented, out, plain, print_json
from browsermw.errors import BrowsermwError
from browsermw.testing.agent_process import DemoFailed
from browsermw.testing.demo_story import Ending, Step, play
from browsermw.wire.browser_find import find_browser

if TYPE_CHECKING:
    from collections.abc import Callable

LEDGER_NAME = "ledger.db"
LOG_NAME = "agent.log"


def command(
    ledger: Annotated[
        str | None, typer.Option(metavar="URL", help="Use this ledger, PostgreSQL for instance. Default: a new one.")
    ] = None,
    keep: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Keep the ledger and the agents' log in this folder.")
    ] = None,
    headed: Annotated[bool, typer.Option("--headed", help="Show the browser.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object at the end and nothing else.")] = False,
) -> None:
    """Kill an agent between its click and the answer, start it again, and count the orders: one.

    Needs a Chromium and nothing else: shop, agent and ledger are on this machine, and it works offline.
    Exit code 1 when the shop does not count exactly one order, or a step fails.
    """
    if find_browser() is None:
        fail("The demo needs a Chromium, and there is none. Run `browsermw install-browser`.", Exit.IN_DOUBT)
    # Whoever ends the demo ends its agent and its browser too.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    started_s = time.monotonic()
    steps: list[Step] = []
    tell = steps.append if as_json else _teller()
    with ExitStack() as stack:
        folder = keep or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="browsermw-demo-")))
        url = ledger or f"sqlite:///{(folder / LEDGER_NAME).absolute()}"
        try:
            folder.mkdir(parents=True, exist_ok=True)
            ending = play(url, tell, log=folder / LOG_NAME, headed=headed)
        except (DemoFailed, BrowsermwError, OSError) as error:
            if as_json:
                print_json({"ok": False, "error": str(error), "steps": _plain_steps(steps)})
            code = exit_code_of(error) if isinstance(error, BrowsermwError) else Exit.IN_DOUBT
            fail(f"The demo failed: {error}", code)
    took_s = time.monotonic() - started_s
    if as_json:
        print_json({"ok": True, **dataclasses.asdict(ending), "took_s": round(took_s, 1), "steps": _plain_steps(steps)})
        return
    _show_ending(ending, took_s)
    if keep or ledger:
        _show_ways_to_look(ending, url)
    else:
        out().print("To look at the ledger afterwards: `browsermw demo --keep DIR`.")


def _plain_steps(steps: list[Step]) -> list[dict[str, object]]:
    return [dataclasses.asdict(step) for step in steps]


def _teller() -> Callable[[Step], None]:
    console = out()

    def tell(step: Step) -> None:
        console.print(Text.assemble((f"{step.number:>2}  ", "bold cyan"), (step.title, "bold")))
        console.print(indented(cell(step.meaning), 4))
        for name, value in step.facts.items():
            words = Text.assemble((f"{name.replace('_', ' '):<11} ", "dim"), plain(str(value)))
            console.print(indented(words, 6))
        console.print()

    return tell


def _show_ending(ending: Ending, took_s: float) -> None:
    counted = f"Exactly {ending.orders} order, {ending.reference}, by the shop's own count. "
    out().print(Text.assemble((counted, "bold green"), f"It took {took_s:.0f} s."))


def _show_ways_to_look(ending: Ending, url: str) -> None:
    with opened(url) as ledger:
        argument = ledger_argument(url, ledger)
    console = out()
    console.print("To look at the ledger:" if argument else "To look at the ledger, with the same --ledger URL:")
    for words in (f"show {ending.run_id} --transitions", "quarantine list", "status"):
        console.print(Text(f"  browsermw {words}{argument}"), soft_wrap=True)
