"""``browsermw show RUN``: the story of one run, from its first click to what nobody knows.

Only shows what the ledger says; it checks no digests (a claim does).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text

from browsermw.cli.doubt import show_doubt
from browsermw.cli.exits import Exit, fail
from browsermw.cli.opened import AsJson, LedgerUrl, ledger_argument, opened, unswept_doubts, was_left
from browsermw.cli.output import WHEN, brief_moment, cell, moment, out, phase, plain, print_json, table
from browsermw.cli.runs import owner_words

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console
    from rich.table import Table

    from browsermw.models import Action, Checkpoint, RunSummary, Transition


def command(
    run: Annotated[str, typer.Argument(metavar="RUN", help="The run's id; see `browsermw runs`.")],
    ledger: LedgerUrl = None,
    transitions: Annotated[bool, typer.Option("--transitions", help="Also each change of a phase.")] = False,
    checkpoints: Annotated[bool, typer.Option("--checkpoints", help="Also what was seen at each moment.")] = False,
    as_json: AsJson = False,
) -> None:
    """Tell the story of a run: its actions, their requests, and what is in doubt."""
    with opened(ledger) as found:
        try:
            summary = found.run(run)
        except KeyError:
            fail(f"No run {run!r} in {found.url}; see `browsermw runs`.", Exit.USAGE)
        story: dict[str, Any] = {
            "run": summary,
            "actions": found.actions(run),
            "quarantined": found.quarantined(run),
            "unswept_doubt_count": unswept_doubts(found, summary) if was_left(summary) else 0,
        }
        if transitions:
            story["transitions"] = found.transitions(run)
        if checkpoints:
            story["checkpoints"] = found.checkpoints(run)
        argument = ledger_argument(ledger, found)
    if as_json:
        print_json(story)
    else:
        _tell(out(), story, argument)


def _tell(console: Console, story: dict[str, Any], argument: str) -> None:
    _show_head(console, story["run"], story["unswept_doubt_count"])
    if story["actions"]:
        console.print()
        console.print(_actions(story["actions"]))
    for name, rows_of in (("checkpoints", _checkpoints), ("transitions", _transitions)):
        if name in story:
            console.print(Text(f"\n{name.capitalize()}", style="bold"))
            console.print(rows_of(story[name]))
    if story["quarantined"]:
        console.print(Text("\nIn doubt; nothing is sent until it is settled", style="bold red"))
    for doubt in story["quarantined"]:
        show_doubt(console, doubt, argument)


def _show_head(console: Console, run: RunSummary, unswept: int) -> None:
    title = Text.assemble(("Run ", "bold"), (cell(run.run_id).plain, "bold"), ": ", phase(run.phase))
    if run.in_doubt_count:
        title.append(f", {run.in_doubt_count} in doubt", style="bold red")
    console.print(title)
    facts = {
        "runtime": run.runtime,
        "process": owner_words(run),
        "fence": run.fence,
        "wire": run.wire,
        "labels": ", ".join(f"{name}={value}" for name, value in run.labels.items()),
        "first claim": moment(run.created_at),
        "last record": moment(run.changed_at),
    }
    for name, value in facts.items():
        console.print(Text.assemble(f"  {name:<12}", cell(value)))
    if was_left(run):
        doubts = f"{unswept} of its actions will be in doubt" if unswept else "nothing that it sent is in doubt"
        words = f"Its process died; {doubts}. Start its agent again to have the run swept."
        console.print(cell(words, "yellow"))


def _actions(actions: Sequence[Action]) -> Table:
    rows = table("seq", "what", "phase", "status", "external id", WHEN, fixed=["phase"])
    for action in actions:
        # A navigation names where it goes; where it came from is the line above.
        place = f" on {action.url}" if action.url and action.kind != "navigate" else ""
        name = plain(f"{action.kind} {action.target}".strip())
        what = _with_reason(Text.assemble((name, "bold"), plain(place)), action.reason)
        rows.add_row(cell(action.seq), what, phase(action.phase), "", "", brief_moment(action.planned_at))
        for it in action.effects:
            what = _with_reason(cell(f"  {it.method} {it.url} ({it.channel})"), it.reason)
            if it.idempotency_key is not None:
                what.append(f"\n  idempotency key {plain(it.idempotency_key)}", style="dim")
            answer = (cell(it.status), cell(it.external_request_id))
            rows.add_row("", what, phase(it.phase), *answer, brief_moment(it.dispatched_at))
    return rows


def _with_reason(what: Text, reason: str | None) -> Text:
    return what.append(f"\n  {plain(reason)}", style="dim") if reason else what


def _checkpoints(checkpoints: Sequence[Checkpoint]) -> Table:
    rows = table("seq", "action", "moment", "url", "DOM state", "identity", "external id", WHEN)
    for it in checkpoints:
        rows.add_row(
            cell(it.seq),
            cell(it.action_seq),
            cell(it.moment),
            cell(it.url),
            cell(it.dom_hash or it.dom_note),
            cell(f"{it.identity_state} {it.identity_hint or ''}".strip()),
            cell(it.external_request_id),
            brief_moment(it.at),
        )
    return rows


def _transitions(transitions: Sequence[Transition]) -> Table:
    rows = table(WHEN, "what", "id", "from", "to", "fence", "why", fixed=["id"])
    for it in transitions:
        rows.add_row(
            brief_moment(it.at),
            cell(it.entity),
            cell(it.entity_id),
            phase(it.old) if it.old else cell(None),
            phase(it.new),
            cell(it.fence),
            cell(it.reason),
        )
    return rows
