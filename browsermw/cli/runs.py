"""``browsermw runs``: the runs of the ledger, newest first.

Only shows what the ledger says.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from browsermw.cli.opened import AsJson, LedgerUrl, opened
from browsermw.cli.output import brief_moment, cell, out, phase, print_json, table
from browsermw.protocol.phases import RunPhase  # noqa: TC001 - Typer reads the annotation

if TYPE_CHECKING:
    from browsermw.models import RunSummary

LAST = "last record (UTC)"


def command(
    ledger: LedgerUrl = None,
    wanted: Annotated[
        RunPhase | None, typer.Option("--phase", case_sensitive=False, help="Only runs in this phase.")
    ] = None,
    in_doubt: Annotated[bool, typer.Option("--in-doubt", help="Only runs with something in doubt.")] = False,
    as_json: AsJson = False,
) -> None:
    """List the runs, newest first."""
    with opened(ledger) as found:
        runs = [
            run
            for run in sorted(found.runs(), key=lambda run: run.created_at, reverse=True)
            if wanted in (None, run.phase) and (run.in_doubt_count or not in_doubt)
        ]
    if as_json:
        print_json(runs)
    elif not runs:
        out().print("No such run." if wanted or in_doubt else "No run yet.")
    else:
        _show(runs)


def owner_words(run: RunSummary) -> str | None:
    """The run's process, and whether it lives."""
    return run.owner if run.owner is None or run.owner_alive else f"{run.owner}, dead"


def _show(runs: list[RunSummary]) -> None:
    rows = table("run", "phase", "in doubt", "actions", "runtime", "process", "labels", LAST, fixed=["run", LAST])
    for run in runs:
        rows.add_row(
            cell(run.run_id),
            phase(run.phase),
            cell(run.in_doubt_count, "bold red" if run.in_doubt_count else ""),
            cell(run.action_count),
            cell(run.runtime),
            cell(owner_words(run)),
            cell(", ".join(f"{name}={value}" for name, value in run.labels.items())),
            brief_moment(run.changed_at),
        )
    out().print(rows)
