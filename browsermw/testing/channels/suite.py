"""The whole suite from nothing: starts a shop, Playwright and each engine, fires the channels, keeps what came of them.

``browsermw doctor`` runs it and shows the rows; the page ``docs/explanation/coverage.md`` is made of them.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from playwright.sync_api import Error as PlaywrightError
from playwright.sync_api import sync_playwright

from browsermw.errors import BrowsermwError
from browsermw.testing.channels.engines import opened
from browsermw.testing.channels.expected import expected
from browsermw.testing.channels.measuring import Measured, measure
from browsermw.testing.channels.states import State
from browsermw.testing.shop_site import Shop

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from browsermw.testing.channels.states import Engine
    from browsermw.testing.channels.table import Channel

TEMPLATE = Path(__file__).with_name("coverage.md")
"""The page of the docs without its table: what no measurement can say."""
_STRENGTH = {None: 0, State.NOT_COVERED: 1, State.ARMED: 2}
_STRONGEST = 3


@dataclass(frozen=True)
class Row:
    """One channel on one engine.

    Attributes:
        channel: Its name.
        group: Under which it is shown.
        engine: The engine.
        state: What was measured; ``None`` when nothing could be concluded.
        expected: What the table says.
        evidence: For people.
        took_s: How long it took.
    """

    channel: str
    group: str
    engine: Engine
    state: State | None
    expected: State
    evidence: str
    took_s: float

    @property
    def is_weaker(self) -> bool:
        """Whether less is held than was expected."""
        return _STRENGTH.get(self.state, _STRONGEST) < _STRENGTH.get(self.expected, _STRONGEST)


def run_suite(engines: Sequence[Engine], channels: Sequence[Channel], tell: Callable[[Row], None]) -> list[Row]:
    """Fire the channels on one engine after another.

    Args:
        engines: Which engines.
        channels: Which channels.
        tell: Called with each row as it is there.

    Returns:
        All rows. An engine that cannot be opened has its channels without a state, and its own words as evidence.
    """
    rows: list[Row] = []
    with Shop.start() as shop, sync_playwright() as playwright, tempfile.TemporaryDirectory(prefix="browsermw-") as at:
        for engine in engines:
            try:
                with opened(engine, playwright, shop, Path(at)) as place:
                    for channel in channels:
                        rows.append(_row(channel, engine, measure(channel, place)))
                        tell(rows[-1])
            except (BrowsermwError, PlaywrightError) as error:
                seen = {row.channel for row in rows if row.engine is engine}
                lost = Measured(None, f"the engine failed: {error}", 0.0)
                rows += [_row(channel, engine, lost) for channel in channels if channel.name not in seen]
    return rows


def _row(channel: Channel, engine: Engine, measured: Measured) -> Row:
    wanted = expected(channel.name, engine)
    return Row(channel.name, channel.group, engine, measured.state, wanted, measured.evidence, measured.took_s)


def condensed(rows: Sequence[Row]) -> Iterator[tuple[str, list[str], list[State | None]]]:
    """Yield group, channels and their states on each engine: channels of a group that are alike make one line."""
    engines = list(dict.fromkeys(row.engine for row in rows))
    found: dict[tuple[str, tuple[State | None, ...]], list[str]] = {}
    for name, group in dict.fromkeys((row.channel, row.group) for row in rows):
        states = {row.engine: row.state for row in rows if row.channel == name}
        found.setdefault((group, tuple(states.get(engine) for engine in engines)), []).append(name)
    groups = list(dict.fromkeys(row.group for row in rows))
    for (group, alike), names in sorted(found.items(), key=lambda item: groups.index(item[0][0])):
        yield group, names, list(alike)


def markdown_table(rows: Sequence[Row]) -> str:
    """The rows as a table for the docs."""
    engines = list(dict.fromkeys(row.engine.value for row in rows))
    lines = [f"| | channels | {' | '.join(engines)} |", "|---|---|" + "---|" * len(engines)]
    for group, names, states in condensed(rows):
        shown = " | ".join(_marked(state) for state in states)
        lines.append(f"| {group} | {', '.join(f'`{name}`' for name in names)} | {shown} |")
    return "\n".join(lines)


def _marked(state: State | None) -> str:
    return "**no result**" if state is None else f"**{state}**" if state is State.NOT_COVERED else state.value


def markdown_page(rows: Sequence[Row], measured_with: str) -> str:
    """The page ``docs/explanation/coverage.md``.

    Args:
        rows: What was measured.
        measured_with: Browser and Playwright, by version.
    """
    text = TEMPLATE.read_text(encoding="utf-8")
    return text.replace("{measured_with}", measured_with).replace("{table}", markdown_table(rows))
