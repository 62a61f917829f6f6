"""``browsermw status``: every runtime of the ledger, and what waits for a person.

Only shows what the ledger says.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from browsermw.cli.opened import AsJson, LedgerUrl, left_by_the_dead, opened, unswept_doubts
from browsermw.cli.output import brief_moment, cell, out, phase, print_json, table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from browsermw.models import RuntimeStatus

STARTED = "started (UTC)"


def command(ledger: LedgerUrl = None, as_json: AsJson = False) -> None:
    """Show the runtimes and how many runs are in which phase."""
    with opened(ledger) as found:
        runtimes, runs = found.runtimes(), found.runs()
        phases = Counter(str(run.phase) for run in runs)
        doubt_count = len(found.quarantined())
        left = {run.run_id: unswept_doubts(found, run) for run in left_by_the_dead(found)}
        url = found.url
    if as_json:
        print_json(
            {
                "ledger": url,
                "runtimes": runtimes,
                "runs": {"total": len(runs), "by_phase": phases},
                "in_doubt_count": doubt_count,
                "left_by_a_dead_process": left,
            }
        )
        return
    console = out()
    console.print(cell(f"Ledger {url}"))
    _show_runtimes(runtimes)
    named = ", ".join(f"{count} {name}" for name, count in sorted(phases.items()))
    console.print(("1 run" if len(runs) == 1 else f"{len(runs)} runs") + (f": {named}" if named else ""))
    if doubt_count:
        console.print(f"[bold red]{doubt_count} in doubt[/bold red]: see `browsermw quarantine list`")
    for run_id, count in left.items():
        doubts = f"{count} of its actions will be in doubt" if count else "nothing that it sent is in doubt"
        words = f"Run {run_id} was left by a process that died; {doubts}. Start its agent again to have it swept."
        console.print(cell(words, "yellow"))


def _show_runtimes(runtimes: Sequence[RuntimeStatus]) -> None:
    rows = table("runtime", "state", "process", "accepts work", "open runs", "in doubt", STARTED, fixed=[STARTED])
    for it in runtimes:
        rows.add_row(
            cell(it.runtime),
            phase(it.state),
            cell(it.owner or "none"),
            cell("yes" if it.accepting_work else "no"),
            cell(", ".join(it.active_runs)),
            cell(it.in_doubt_count, "bold red" if it.in_doubt_count else ""),
            brief_moment(it.started_at),
        )
    if runtimes:
        out().print(rows)
