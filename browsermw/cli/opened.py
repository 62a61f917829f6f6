"""Which ledger a command reads, and what a dead process left in it that nobody has looked at yet.

Every command that reads or settles goes through ``opened``. It never makes a ledger and never migrates one.
"""

from __future__ import annotations

import os
import shlex
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from browsermw.cli.exits import errors_as_exits
from browsermw.ledger import open_ledger
from browsermw.protocol.phases import Phase, RunPhase
from browsermw.protocol.recovery import Wire

if TYPE_CHECKING:
    from collections.abc import Iterator

    from browsermw.ledger.contract import Ledger
    from browsermw.models import RunSummary

ENVIRONMENT_NAME = "BROWSERMW_LEDGER"

LedgerUrl = Annotated[
    str | None,
    typer.Option(
        "--ledger",
        envvar=ENVIRONMENT_NAME,
        metavar="URL",
        help="sqlite:///agent.db or postgresql://user@host/database; by default SQLite in the user's state folder.",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON on standard output and nothing else.")]


@contextmanager
def opened(url: str | None) -> Iterator[Ledger]:
    """The ledger at this URL; what browsermw refuses ends the command with its exit code.

    Args:
        url: From ``--ledger``; the user's state folder where it is ``None``.
    """
    with errors_as_exits():
        ledger = open_ledger(url, create=False)
        try:
            yield ledger
        finally:
            ledger.close()


def left_by_the_dead(ledger: Ledger) -> list[RunSummary]:
    """Runs whose process died with them; they are swept at their next claim."""
    return [run for run in ledger.runs() if was_left(run)]


def was_left(run: RunSummary) -> bool:
    """Whether the run's process died with it and nobody has claimed it since."""
    return run.phase is RunPhase.ACTIVE and not run.owner_alive


def unswept_doubts(ledger: Ledger, run: RunSummary) -> int:
    """How many actions of a run that ``was_left`` will be in doubt at its next claim."""
    left = ledger.actions(run.run_id, phases=[Phase.PLANNED, Phase.DISPATCHED])
    return sum(action.phase is Phase.DISPATCHED or action.wire is not Wire.SEALED for action in left)


def ledger_argument(url: str | None, ledger: Ledger) -> str:
    """What a command must be given to find this ledger again: `` --ledger URL``, or nothing.

    A password is never printed; who gave one on the command line is left to give it again.
    """
    if url is None or url == os.environ.get(ENVIRONMENT_NAME) or "***" in ledger.url:
        return ""
    return f" --ledger {shlex.quote(url)}"
