"""``browsermw doctor``: what this machine's browser, Playwright and our hooks hold, measured and not believed.

Only shows what ``browsermw.testing.channels`` measures. With ``--json`` or ``--markdown``, standard output holds that
and nothing else.
"""

from __future__ import annotations

import dataclasses
import logging
import platform
import signal
import sqlite3
import time
from importlib.metadata import version
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from browsermw.cli.exits import Exit, errors_as_exits, fail
from browsermw.cli.output import cell, out, print_json, table
from browsermw.hooks.classified import FLAVOURS, missing, unclassified
from browsermw.testing.channels import BY_NAME, CHANNELS, Engine, State
from browsermw.testing.channels.suite import condensed, markdown_page, run_suite
from browsermw.wire.browser_find import find_browser

if TYPE_CHECKING:
    from collections.abc import Sequence

    from browsermw.testing.channels.suite import Row
    from browsermw.testing.channels.table import Channel
    from browsermw.wire.browser_find import FoundBrowser

_COLOURS = {State.NOT_COVERED: "bold red", State.ARMED: "yellow", None: "bold red"}


def command(
    engine: Annotated[
        list[Engine] | None,
        typer.Option(help="Measure this engine; may be repeated. Default: sealed, and with --markdown all."),
    ] = None,
    channel: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Fire this channel only; may be repeated.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")] = False,
    as_markdown: Annotated[
        bool, typer.Option("--markdown", help="Print the page docs/explanation/coverage.md and nothing else.")
    ] = False,
) -> None:
    """Fire every way to send at a server that counts, and show which of them the gate holds here.

    Needs a Chromium and nothing else, and works offline. Exit code 1 when a channel is not in the state that is
    expected of it, or the installed Playwright has methods that nobody has classified.
    """
    with errors_as_exits():
        browser = find_browser()
    if browser is None:
        fail("The doctor needs a Chromium, and there is none. Run `browsermw install-browser`.", Exit.IN_DOUBT)
    engines = engine or (list(Engine) if as_markdown else [Engine.SEALED])
    channels = _asked_for(channel)
    # Whoever ends the doctor ends its browsers too; what the gate warns of here was provoked.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    logging.getLogger("browsermw").addHandler(logging.NullHandler())
    started_s = time.monotonic()
    rows = _measured(engines, channels)
    machine, hooks = _machine(browser), _hooks()
    wrong = [row for row in rows if row.state is not row.expected]
    is_fine = not wrong and not hooks["unclassified"]
    if as_json:
        took_s = round(time.monotonic() - started_s, 1)
        found = [dataclasses.asdict(row) for row in rows]
        print_json({"ok": is_fine, "machine": machine, "hooks": hooks, "took_s": took_s, "channels": found})
    elif as_markdown:
        typer.echo(_page(rows, machine), nl=False)
    else:
        _show(machine, hooks, rows)
    _complain(wrong, hooks["unclassified"])
    if not is_fine:
        raise typer.Exit(Exit.IN_DOUBT)


def _asked_for(names: list[str] | None) -> list[Channel]:
    for name in names or ():
        if name not in BY_NAME:
            fail(f"There is no channel {name!r}; there are {', '.join(BY_NAME)}.", Exit.USAGE)
    return [it for it in CHANNELS if names is None or it.name in names]


def _measured(engines: Sequence[Engine], channels: Sequence[Channel]) -> list[Row]:
    aside = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, console=aside, transient=True, disable=not aside.is_terminal) as progress:
        task = progress.add_task("starting", total=len(engines) * len(channels))
        return run_suite(
            engines,
            channels,
            lambda row: progress.update(task, advance=1, description=f"{row.engine} {row.channel}"),
        )


def _machine(browser: FoundBrowser) -> dict[str, str]:
    return {
        "browser": str(browser.path),
        "browser_version": browser.version,
        "browser_source": browser.source,
        "playwright": version("playwright"),
        "python": platform.python_version(),
        "sqlite": sqlite3.sqlite_version,
        "browsermw": version("browsermw"),
    }


def _hooks() -> dict[str, list[str]]:
    return {
        "unclassified": sorted({name for api in FLAVOURS for name in unclassified(api)}),
        "missing": sorted({name for api in FLAVOURS for name in missing(api)}),
    }


def _page(rows: Sequence[Row], machine: dict[str, str]) -> str:
    return markdown_page(rows, f"Chromium {machine['browser_version']} and Playwright {machine['playwright']}")


def _show(machine: dict[str, str], hooks: dict[str, list[str]], rows: Sequence[Row]) -> None:
    console = out()
    for name, value in machine.items():
        console.print(cell(f"{name.replace('_', ' '):<16} {value}"))
    absent = f"; not in this Playwright: {', '.join(hooks['missing'])}" if hooks["missing"] else ""
    known = "some methods are not classified" if hooks["unclassified"] else "every method is classified"
    console.print(cell(f"{'hooks':<16} {known}{absent}"))
    console.print()
    shown = table("", "channels", *dict.fromkeys(row.engine.value for row in rows))
    for group, names, states in condensed(rows):
        cells = [cell(state or "no result", _COLOURS.get(state, "green")) for state in states]
        shown.add_row(cell(group), cell(", ".join(names)), *cells)
    console.print(shown)


def _complain(wrong: Sequence[Row], unknown: Sequence[str]) -> None:
    console = Console(stderr=True, highlight=False, soft_wrap=True)
    for row in wrong:
        how = "weaker than expected" if row.is_weaker else "other than expected"
        state = row.state or "no result"
        words = f"{row.channel} on {row.engine} is {how}: {state}, not {row.expected} ({row.evidence})"
        console.print(cell(words, "red"))
    if unknown:
        words = "This Playwright has methods that are not journaled, because nobody has looked at them: "
        console.print(cell(words + ", ".join(unknown), "red"))
