"""``browsermw quarantine list|show|resolve``: what may have happened, and the word of a person on it.

``resolve`` is the only command here that writes, by the ledger's own rules: the first verdict stands.
"""

from __future__ import annotations

import getpass
from typing import TYPE_CHECKING, Annotated

import typer

from browsermw.cli.doubt import request_words, show_doubt
from browsermw.cli.exits import EPILOG, Exit, fail, say_aside
from browsermw.cli.opened import AsJson, LedgerUrl, ledger_argument, left_by_the_dead, opened, unswept_doubts
from browsermw.cli.output import WHEN, brief_moment, cell, out, print_json, table
from browsermw.runtime import make_verdict

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from browsermw.ledger.contract import Ledger
    from browsermw.models import Quarantine, Verdict

LEFT = "may have left (UTC)"
app = typer.Typer(no_args_is_help=True, help="See and settle what may have happened.", epilog=EPILOG)

QuarantineId = Annotated[str, typer.Argument(metavar="ID", help="From `browsermw quarantine list`.")]


@app.command("list", epilog=EPILOG)
def list_command(
    ledger: LedgerUrl = None,
    run: Annotated[str | None, typer.Option("--run", metavar="RUN", help="Only of this run.")] = None,
    exit_code: Annotated[bool, typer.Option("--exit-code", help="Exit with 1 when something is in doubt.")] = False,
    as_json: AsJson = False,
) -> None:
    """List what is in doubt, of all runs or of one."""
    with opened(ledger) as found:
        if run is not None:
            _demand_run(found, run)
        doubts = found.quarantined(run)
        left = {it.run_id: unswept_doubts(found, it) for it in left_by_the_dead(found) if run in (None, it.run_id)}
    if as_json:
        print_json(doubts)
    elif doubts:
        _show_list(doubts)
    else:
        out().print("Nothing is in doubt.")
    unswept = [run_id for run_id, count in left.items() if count]
    for run_id in unswept:
        say_aside(
            f"Run {run_id} was left by a process that died with a request under way. It is listed once its agent is "
            "started again, which puts it into quarantine."
        )
    if exit_code and (doubts or unswept):
        raise typer.Exit(Exit.IN_DOUBT)


@app.command("show", epilog=EPILOG)
def show_command(quarantine_id: QuarantineId, ledger: LedgerUrl = None, as_json: AsJson = False) -> None:
    """Show one doubt, the evidence so far, and how to settle it."""
    with opened(ledger) as found:
        doubt = _demand_doubt(found, quarantine_id)
        _show_one(doubt, found.verdicts(quarantine_id), ledger_argument(ledger, found), as_json=as_json)


@app.command("resolve", epilog=EPILOG)
def resolve_command(
    quarantine_id: QuarantineId,
    verdict: Annotated[
        str,
        typer.Option(metavar="committed|not_committed|unknown", help="It happened; it did not; nobody can tell yet."),
    ],
    note: Annotated[str, typer.Option(metavar="TEXT", help="The evidence: what you saw, and where.")],
    source: Annotated[
        str | None, typer.Option(metavar="NAME", help="Who says so; by default person:<login name>.")
    ] = None,
    ledger: LedgerUrl = None,
    as_json: AsJson = False,
) -> None:
    """Record a verdict. The first one that settles stands; `unknown` only adds evidence."""
    try:
        concluded = make_verdict(verdict, note, source or f"person:{_login_name()}")
    except ValueError as error:
        fail(f"Nothing was changed: {error}.", Exit.USAGE)
    with opened(ledger) as found:
        _demand_doubt(found, quarantine_id)
        doubt = found.resolve(quarantine_id, concluded)
        _show_one(doubt, found.verdicts(quarantine_id), ledger_argument(ledger, found), as_json=as_json)


def _demand_run(ledger: Ledger, run_id: str) -> None:
    try:
        ledger.run(run_id)
    except KeyError:
        fail(f"No run {run_id!r} in {ledger.url}; see `browsermw runs`.", Exit.USAGE)


def _demand_doubt(ledger: Ledger, quarantine_id: str) -> Quarantine:
    try:
        return ledger.quarantine(quarantine_id)
    except KeyError:
        fail(
            f"Nothing called {quarantine_id!r} was ever in doubt in {ledger.url}; see `browsermw quarantine list`.",
            Exit.USAGE,
        )


def _login_name() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # a container may run under a number that has no name
        return "unknown"


def _show_list(doubts: Sequence[Quarantine]) -> None:
    rows = table("id", "run", "action", "request", LEFT, "why", fixed=["id", LEFT])
    for doubt in doubts:
        left_at = doubt.effect.dispatched_at if doubt.effect else doubt.action.planned_at
        rows.add_row(
            cell(doubt.quarantine_id, "bold red"),
            cell(doubt.run_id),
            cell(doubt.action_seq),
            cell(request_words(doubt)),
            brief_moment(left_at),
            cell(doubt.reason),
        )
    console = out()
    console.print(rows)
    console.print("`browsermw quarantine show ID` tells how to settle one.")


def _show_one(doubt: Quarantine, evidence: Sequence[tuple[Verdict, datetime]], argument: str, *, as_json: bool) -> None:
    if as_json:
        said = [{**verdict.model_dump(mode="json"), "at": at} for verdict, at in evidence]
        print_json({"quarantine": doubt, "verdicts": said})
        return
    console = out()
    show_doubt(console, doubt, argument)
    if evidence:
        rows = table("verdict", "by", WHEN, "note", "external id")
        for verdict, at in evidence:
            rows.add_row(
                cell(verdict.verdict),
                cell(verdict.source),
                brief_moment(at),
                cell(verdict.note),
                cell(verdict.external_request_id),
            )
        console.print()
        console.print(rows)
