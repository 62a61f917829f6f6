"""How commands look: one console, one kind of table, one way to write a moment and a phase.

Called by every command that prints for people. What it prints comes from web pages and agents in part, so nothing
reaches a terminal as a control sequence or as markup. Off a terminal there is no colour, and no table is cut.
"""

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import typer
from pydantic import BaseModel
from rich import box
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from collections.abc import Sequence

PIPE_WIDTH = 100_000
WHEN = "when (UTC)"
_COLOURS = {
    "PLANNED": "cyan",
    "DISPATCHED": "yellow",
    "ACKNOWLEDGED": "green",
    "OBSERVED": "green",
    "NEEDS_REVIEW": "bold red",
    "ABANDONED": "dim",
    "REFUSED": "magenta",
    "ACTIVE": "cyan",
    "SUSPENDED": "yellow",
    "FINISHED": "green",
    "RUNNING": "green",
    "DRAINING": "yellow",
    "QUIESCED": "cyan",
    "STOPPED": "dim",
}
_MINUTE_S, _HOUR_S, _DAY_S = 60, 3600, 86_400


def out() -> Console:
    """The console on standard output, as wide as its content where that is no terminal."""
    return Console(highlight=False, width=None if sys.stdout.isatty() else PIPE_WIDTH)


def plain(text: str) -> str:
    """Text with every control character written out."""
    return "".join(letter if letter.isprintable() else ascii(letter)[1:-1] for letter in text)


def cell(value: object, style: str = "") -> Text:
    """A value for a table; what is not there is a dash."""
    return Text("-" if value is None or value == "" else plain(str(value)), style=style)


def indented(text: Text, by: int) -> Padding:
    """A paragraph that keeps its indent where it is broken."""
    return Padding(text, (0, 0, 0, by), expand=False)


def phase(name: str) -> Text:
    """A phase or a state in its colour."""
    return Text(plain(name), style=_COLOURS.get(name, ""))


def table(*columns: str, fixed: Sequence[str] = ()) -> Table:
    """An empty table.

    Args:
        columns: The headings.
        fixed: Those whose cells must stay in one piece, because people copy them.
    """
    made = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for name in columns:
        made.add_column(name, overflow="fold", no_wrap=name in (*fixed, WHEN))
    return made


def moment(at: datetime | None, now: datetime | None = None) -> str:
    """A moment in UTC with its age: ``2026-01-02 10:20:30 UTC (3 min ago)``; a dash for none."""
    if at is None:
        return "-"
    age_s = ((now or datetime.now(UTC)) - at).total_seconds()
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC ({age(age_s)})"


def brief_moment(at: datetime | None, now: datetime | None = None) -> Text:
    """A moment for a table's column ``when (UTC)``: the clock alone where it was today."""
    if at is None:
        return cell(None)
    seen = now or datetime.now(UTC)
    here = at.astimezone(UTC)
    shape = "%H:%M:%S" if here.date() == seen.date() else "%Y-%m-%d %H:%M"
    return Text(f"{here:{shape}} ({age((seen - at).total_seconds())})", no_wrap=True)


def age(age_s: float) -> str:
    """How long ago, in one unit.

    Args:
        age_s: Seconds; a moment that is ahead (another machine's clock) says so.
    """
    if age_s < 0:
        return "just now" if age_s > -_MINUTE_S else "ahead of this clock"
    if age_s < _MINUTE_S:
        return f"{age_s:.0f} s ago"
    if age_s < _HOUR_S:
        return f"{age_s / _MINUTE_S:.0f} min ago"
    return f"{age_s / _HOUR_S:.0f} h ago" if age_s < 2 * _DAY_S else f"{age_s / _DAY_S:.0f} days ago"


def print_json(content: object) -> None:
    """Print one JSON document; records in it become objects."""
    typer.echo(json.dumps(content, default=_record, indent=2, ensure_ascii=False))


def _record(value: object) -> object:
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json")
    if isinstance(value, datetime):
        return value.isoformat().replace("+00:00", "Z")  # as pydantic writes it
    raise TypeError(f"{type(value).__name__} cannot be written as JSON")
