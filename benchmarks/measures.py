"""Samples to rows: medians, ratios, and which mark each has to meet.

Every benchmark makes its rows here, and the report only prints them, so that one rule holds for all: a figure is a
median over its samples, beside it the 10th and the 90th percentile, and the number of samples. A ratio is the ratio
of two medians whose samples were taken by turns in one run.
"""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

Unit = Literal["ms", "µs", "ratio", "count", "MB"]
Interval = tuple[float, float]
"""Start and end in seconds of ``time.perf_counter``, which all threads of a process share."""

_SCALE: dict[Unit, float] = {"ms": 1e3, "µs": 1e6, "ratio": 1.0, "count": 1.0, "MB": 1.0}


@dataclass(frozen=True)
class Row:
    """One measured figure.

    Attributes:
        table: Heading that it stands under.
        what: What was measured.
        unit: Of the figures.
        median: The figure; of ``total`` the sum, of ``longest`` the longest.
        p10: 10th percentile; ``None`` for a ratio.
        p90: 90th percentile; ``None`` for a ratio.
        count: Number of samples.
        limit: The mark: the figure should not be above it; ``None`` where it has none.
    """

    table: str
    what: str
    unit: Unit
    median: float
    p10: float | None
    p90: float | None
    count: int
    limit: float | None = None

    @property
    def is_met(self) -> bool | None:
        """Whether the mark is met; ``None`` where there is none."""
        return None if self.limit is None else self.median <= self.limit


def row(table: str, what: str, samples: Sequence[float], *, unit: Unit = "ms", limit: float | None = None) -> Row:
    """The row of some samples.

    Args:
        table: Heading.
        what: What was measured.
        samples: In seconds for ``ms`` and ``µs``, as they are for the rest; at least two.
        unit: Of the row.
        limit: The mark, in that unit.
    """
    scaled = [sample * _SCALE[unit] for sample in samples]
    tenths = statistics.quantiles(scaled, n=10, method="inclusive")
    return Row(table, what, unit, statistics.median(scaled), tenths[0], tenths[-1], len(scaled), limit)


def ratio(table: str, what: str, samples: Sequence[float], base: Sequence[float], *, limit: float | None = None) -> Row:
    """The row of one variant's median over another's."""
    found = statistics.median(samples) / statistics.median(base)
    return Row(table, what, "ratio", found, None, None, min(len(samples), len(base)), limit)


def total(table: str, what: str, samples: Sequence[float], *, limit: float | None = None) -> Row:
    """The row of something that is counted over all samples."""
    return Row(table, what, "count", sum(samples), None, None, len(samples), limit)


def longest(table: str, what: str, samples: Sequence[float], *, limit: float | None = None) -> Row:
    """The row of the longest of all samples, in milliseconds; a median would hide what happened once."""
    return Row(table, what, "ms", max(samples) * _SCALE["ms"], None, None, len(samples), limit)


def covered_s(intervals: Iterable[Interval]) -> float:
    """How long at least one of the intervals ran; what overlaps counts once."""
    total, until = 0.0, float("-inf")
    for start, end in sorted(intervals):
        total += max(0.0, end - max(start, until))
        until = max(until, end)
    return total


def summed_s(intervals: Iterable[Interval]) -> float:
    """The lengths of the intervals added up."""
    return sum(end - start for start, end in intervals)
