"""How something in doubt is told: what it is, what each verdict will do, and the command that records it.

Shared by ``show`` and by ``quarantine``.
"""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from rich.text import Text

from browsermw.cli.output import cell, indented, moment
from browsermw.protocol.phases import Phase

if TYPE_CHECKING:
    from rich.console import Console

    from browsermw.models import Quarantine

CONSEQUENCES = {
    "committed": "It happened. It is never sent again; the run goes on, and reads the result at the application.",
    "not_committed": "It did not happen. The run goes on, and the same request may be sent again.",
    "unknown": "Your note is kept as evidence. It stays in doubt and the run stays read-only.",
}
NOTE = "what you saw, and where"


def doubt_phase(doubt: Quarantine) -> Phase:
    """The phase of what is or was in doubt."""
    return doubt.action.phase if doubt.effect is None else doubt.effect.phase


def request_words(doubt: Quarantine) -> str:
    """The request in one line; the action where nobody saw what it sent."""
    if doubt.effect is None:
        return f"{doubt.action.method} {doubt.action.target} (what it sent was not seen)"
    return f"{doubt.effect.method} {doubt.effect.url}"


def show_doubt(console: Console, doubt: Quarantine, ledger_argument: str) -> None:
    """Print one doubt with the ways to settle it, or that it is settled.

    Args:
        console: Where to.
        doubt: The doubt.
        ledger_argument: See ``opened.ledger_argument``.
    """
    open_still = doubt_phase(doubt) is Phase.NEEDS_REVIEW
    console.print(
        Text.assemble((doubt.quarantine_id, "bold red" if open_still else "bold"), "  ", request_words(doubt))
    )
    left_at = doubt.effect.dispatched_at if doubt.effect else doubt.action.planned_at
    action = doubt.action
    lines = [
        f"run {doubt.run_id}, action {action.seq}: {action.method} {action.target} on {action.url or 'no page'}",
        f"may have left the browser at {moment(left_at)}",
        f"in doubt since {moment(doubt.since)}: {doubt.reason}",
    ]
    if doubt.effect is not None and doubt.effect.idempotency_key is not None:
        lines.append(f"idempotency key {doubt.effect.idempotency_key}: look it up by that at the application")
    for line in lines:
        console.print(indented(cell(line), 2))
    if not open_still:
        console.print(indented(cell(f"settled: {doubt_phase(doubt)}", "green"), 2))
        return
    for verdict, consequence in CONSEQUENCES.items():
        console.print(indented(cell(consequence), 2))
        console.print(Text("    " + resolve_command(doubt, verdict, ledger_argument), style="bold"), soft_wrap=True)


def resolve_command(doubt: Quarantine, verdict: str, ledger_argument: str) -> str:
    """The command that records a verdict, with the note left to write."""
    named = shlex.quote(doubt.quarantine_id)
    return f"browsermw quarantine resolve {named} --verdict {verdict} --note '{NOTE}'{ledger_argument}"
