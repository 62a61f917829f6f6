"""``browsermw install-browser``: get a Chromium onto this machine, or say which ways were tried.

Only shows what ``browsermw.wire.browser_install`` decides. With ``--json``, standard output holds one JSON
object and the lines of a download go to standard error.
"""

from __future__ import annotations

import dataclasses
import json
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.markup import escape

from browsermw.errors import BrowserMissing
from browsermw.wire.browser_install import InstallReport, install_browser

if TYPE_CHECKING:
    from browsermw.wire.browser_install import Attempt

_COLOURS = {"found": "green", "installed": "green", "failed": "red", "skipped": "yellow", "planned": "cyan"}


def command(
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Download although a usable browser is there.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only look; say what would be tried.")] = False,
) -> None:
    """Make sure that a Chromium is there: one that exists, else Playwright's download, else apt.

    Exit code 1 when no way led to a browser.
    """
    console = Console(stderr=as_json, highlight=False, soft_wrap=True)
    try:
        report = install_browser(
            force=force,
            dry_run=dry_run,
            on_line=lambda line: console.print(f"  {escape(line)}", style="dim"),
        )
    except BrowserMissing as error:
        if as_json:
            typer.echo(json.dumps({"browser": None, "attempts": [], "error": str(error)}))
        else:
            console.print(f"[red]{escape(str(error))}[/red]")
        raise typer.Exit(1) from None
    if as_json:
        typer.echo(json.dumps(dataclasses.asdict(report), default=str))
    else:
        _show(console, report, dry_run=dry_run)
    if report.browser is None and not dry_run:
        raise typer.Exit(1)


def _show(console: Console, report: InstallReport, *, dry_run: bool) -> None:
    if report.browser is not None:
        browser = report.browser
        console.print(f"[green]Browser ready[/green]: {escape(str(browser.path))}")
        console.print(f"  version {browser.version}, source: {browser.source}")
        for attempt in report.attempts:
            if attempt.outcome == "failed":
                console.print(_line(attempt))
        return
    if dry_run:
        console.print("No usable browser yet. These ways would be tried:")
    else:
        console.print("[red]No usable browser, and no way led to one.[/red] Tried, in this order:")
    for attempt in report.attempts:
        console.print(_line(attempt))
    if not dry_run:
        console.print(
            "Install Chromium or Chrome with the system's packages, or name an executable in "
            "BROWSERMW_BROWSER, then run this command again."
        )


def _line(attempt: Attempt) -> str:
    colour = _COLOURS[attempt.outcome]
    took = f" ({attempt.took_s:.0f} s)" if attempt.took_s >= 1 else ""
    return f"  {attempt.way:<11}[{colour}]{attempt.outcome}[/{colour}]: {escape(attempt.detail)}{took}"
