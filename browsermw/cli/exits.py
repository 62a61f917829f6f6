"""Exit codes: what a script learns from a command without reading its words.

Every command that reads a ledger runs inside ``errors_as_exits``, so that what browsermw refuses is one red line on
standard error and a code of its own. A fault of browsermw itself keeps its traceback.
"""

from __future__ import annotations

import sys
from contextlib import contextmanager
from enum import IntEnum
from typing import TYPE_CHECKING, NoReturn

import typer
from rich.console import Console
from rich.text import Text

from browsermw.cli.output import plain
from browsermw.errors import BrowsermwError, IllegalTransition, LedgerCorrupt, LedgerUnavailable

if TYPE_CHECKING:
    from collections.abc import Iterator


class Exit(IntEnum):
    """What a command's exit code says."""

    FINE = 0
    IN_DOUBT = 1
    USAGE = 2
    UNAVAILABLE = 3
    CORRUPT = 4
    CONFLICT = 5


EPILOG = (
    "Exit codes: 0 fine, 1 something is in doubt (only where --exit-code asks for it) or a step failed, "
    "2 wrong usage or nothing of that name, 3 the ledger cannot be used, 4 the ledger is damaged, "
    "5 it was settled before."
)


def fail(message: str, code: Exit) -> NoReturn:
    """Print one red line to standard error and end the command.

    Args:
        message: What happened and what to do next.
        code: The exit code.
    """
    console = Console(stderr=True, highlight=False, soft_wrap=True)
    console.print(Text(plain(" ".join(message.split())), style="red"))
    raise typer.Exit(code)


@contextmanager
def errors_as_exits() -> Iterator[None]:
    """Turn what browsermw refuses into a message and an exit code."""
    try:
        yield
    except BrowsermwError as error:
        fail(str(error), exit_code_of(error))


def exit_code_of(error: BrowsermwError) -> Exit:
    """The exit code that stands for an error."""
    if isinstance(error, LedgerCorrupt):
        return Exit.CORRUPT
    if isinstance(error, LedgerUnavailable):
        return Exit.USAGE if error.facts.get("names_no_ledger") else Exit.UNAVAILABLE
    return Exit.CONFLICT if isinstance(error, IllegalTransition) else Exit.IN_DOUBT


def say_aside(message: str) -> None:
    """Print a remark to standard error, so that standard output holds only what was asked for."""
    Console(file=sys.stderr, highlight=False, soft_wrap=True).print(Text(plain(message), style="yellow"))
