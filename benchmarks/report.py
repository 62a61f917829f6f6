"""Rows for people: tables on the terminal, and the page ``docs/reference/benchmarks.md``, never typed by hand."""

from __future__ import annotations

import importlib
from dataclasses import dataclass, field
from itertools import groupby
from typing import TYPE_CHECKING

from rich.table import Table

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import Console

    from benchmarks.machine import Machine
    from benchmarks.measures import Row

EXPLAINED = {
    "Clicks": "benchmarks.clicks",
    "Page load": "benchmarks.page_load",
    "Download": "benchmarks.download",
    "Load": "benchmarks.load",
    "Recovery": "benchmarks.recovery",
    "Contexts that nobody wrapped": "benchmarks.unwrapped",
}
HEADINGS = ("measured", "median", "10 % … 90 %", "samples", "mark")
_SECOND_THOUGHTS = {True: "met", False: "**missed**"}


@dataclass
class Report:
    """All that one call of the command found.

    Attributes:
        machine: What it ran on.
        rows: The figures.
        loads: Benchmark → load of the machine before and after it.
        skipped: What could not be measured, and why.
    """

    machine: Machine
    rows: list[Row] = field(default_factory=list)
    loads: dict[str, dict[str, float]] = field(default_factory=dict)
    skipped: list[str] = field(default_factory=list)


def show(report: Report, console: Console) -> None:
    """Print the tables on a terminal."""
    for name, rows in groupby(report.rows, key=lambda it: it.table):
        table = Table(*HEADINGS, title=name, title_justify="left")
        for found in rows:
            style = "red" if found.is_met is False else None
            table.add_row(*(cell.replace("**", "") for cell in _cells(found)), style=style)
        console.print(table)
    for line in _afterwards(report):
        console.print(line)


def markdown(report: Report) -> str:
    """The reference page."""
    return "\n".join([*_head(report), *_marks(report), *_tables(report), *_definitions()]) + "\n"


def _head(report: Report) -> Iterator[str]:
    yield "# Benchmarks"
    yield ""
    yield "Written by `python -m benchmarks --markdown`; do not edit. Each figure is a median; what is compared took"
    yield "turns in one run, with random pauses. `--quick` takes a tenth of the samples, names choose benchmarks,"
    yield "`--json` is for programs, and `--folder` names the disk that the ledgers are made on."
    yield ""
    yield "| machine | |"
    yield "|---|---|"
    yield from (f"| {name} | {value} |" for name, value in report.machine.facts.items())
    yield ""
    yield from _afterwards(report)
    yield ""


def _afterwards(report: Report) -> Iterator[str]:
    busy = ", ".join(
        f"{name} {it.get('before', 0):.1f} to {it.get('after', 0):.1f}" for name, it in report.loads.items()
    )
    yield f"Load of the machine (processes that wanted to run, minute's average) before and after: {busy}."
    yield from (f"Not measured: {why}." for why in report.skipped)


def _marks(report: Report) -> Iterator[str]:
    marked = [found for found in report.rows if found.limit is not None]
    if not marked:
        return
    yield "## Marks"
    yield ""
    yield "| table | measured | median | mark | |"
    yield "|---|---|---:|---:|---|"
    for found in marked:
        verdict = _SECOND_THOUGHTS[bool(found.is_met)]
        yield f"| {found.table} | {found.what} | {_figure(found)} | ≤ {found.limit:g} | {verdict} |"
    yield ""


def _tables(report: Report) -> Iterator[str]:
    for name, rows in groupby(report.rows, key=lambda it: it.table):
        yield f"## {name}"
        yield ""
        yield f"| {' | '.join(HEADINGS)} |"
        yield "|---|---:|---:|---:|---|"
        yield from (f"| {' | '.join(_cells(found))} |" for found in rows)
        yield ""


def _definitions() -> Iterator[str]:
    yield "# What is counted"
    for heading, module in EXPLAINED.items():
        said = importlib.import_module(module).__doc__ or ""
        yield ""
        yield f"## {heading}"
        yield ""
        yield said.strip()


def _cells(found: Row) -> tuple[str, ...]:
    spread = "" if found.p10 is None or found.p90 is None else f"{_number(found.p10)} … {_number(found.p90)}"
    mark = "" if found.limit is None else f"≤ {found.limit:g}: {_SECOND_THOUGHTS[bool(found.is_met)]}"
    return found.what, _figure(found), spread, str(found.count), mark


def _figure(found: Row) -> str:
    unit = {"ratio": "x", "count": ""}.get(found.unit, f" {found.unit}")
    return f"{found.median:.0f}" if found.unit == "count" else f"{_number(found.median)}{unit}"


def _number(value: float) -> str:
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.2f}"
