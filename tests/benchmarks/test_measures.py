from __future__ import annotations

import pytest

from benchmarks.machine import Machine
from benchmarks.measures import Row, covered_s, longest, ratio, row, summed_s, total
from benchmarks.report import Report, markdown


def test_what_overlaps_counts_once_and_what_does_not_is_added() -> None:
    laps = [(5.0, 6.0), (0.0, 2.0), (1.0, 3.0), (1.5, 1.6)]
    assert covered_s(laps) == pytest.approx(4.0)
    assert summed_s(laps) == pytest.approx(5.1)
    assert covered_s([]) == 0


def test_a_row_is_the_median_in_its_unit_with_its_spread() -> None:
    found = row("t", "w", [0.001, 0.002, 0.009], limit=2.0)
    assert found.median == pytest.approx(2.0)
    assert (found.count, found.is_met) == (3, True)
    assert found.p10 == pytest.approx(1.2)
    assert found.p90 == pytest.approx(7.6)


def test_a_ratio_is_that_of_the_medians_and_is_held_against_its_mark() -> None:
    found = ratio("t", "w", [3.0, 4.0, 50.0], [2.0, 2.0, 2.0], limit=1.3)
    assert (found.median, found.is_met) == (2.0, False)


def test_what_may_not_happen_once_is_held_against_its_mark() -> None:
    assert total("t", "lost", [0.0, 0.0], limit=0).is_met
    assert not total("t", "lost", [0.0, 1.0], limit=0).is_met
    found = longest("t", "stall", [0.001, 0.2, 0.002], limit=100)
    assert (found.median, found.unit, found.count, found.is_met) == (200.0, "ms", 3, False)


def test_the_page_shows_marks_figures_and_what_is_counted() -> None:
    rows = [
        Row("Click", "inside", "ms", 9.0, 8.0, 10.0, 100, limit=8.0),
        Row("Click", "whole", "ms", 123.4, 99.0, 140.0, 100),
        total("Click", "late", [0.0, 1.0, 1.0]),
    ]
    page = markdown(Report(Machine({"Python": "3.11"}), rows, {"clicks": {"before": 0.5, "after": 1.0}}, ["no server"]))
    assert "| Click | inside | 9.00 ms | ≤ 8 | **missed** |" in page
    assert "| whole | 123 ms | 99.00 … 140 | 100 |  |" in page
    assert "| late | 2 |  | 3 |  |" in page
    assert "clicks 0.5 to 1.0" in page
    assert "Not measured: no server." in page
    assert "Time inside our code per click" in page
