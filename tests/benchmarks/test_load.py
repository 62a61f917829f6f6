from __future__ import annotations

from collections import Counter
from typing import Any

from benchmarks.load import Plan, Ticker, _rows

PLAN = Plan(contexts=1, seconds=1)


def sent(number: int, *, is_effect: bool, took_ms: float | None = 5.0, status: object = 200) -> dict[str, Any]:
    return {"id": f"{number}-0", "isEffect": is_effect, "tookMs": took_ms, "status": status}


def arrived(n: int, number: int, method: str = "GET") -> dict[str, Any]:
    return {"n": n, "query": f"id={number}-0", "method": method}


def test_what_is_lost_double_stalled_or_not_on_record_is_counted() -> None:
    requests = [
        sent(0, is_effect=False),
        sent(1, is_effect=True, status=201),
        sent(2, is_effect=True, status="Failed to fetch"),
        sent(3, is_effect=False, took_ms=None, status=None),
    ]
    arrivals = [arrived(1, 0), arrived(2, 1, "POST"), arrived(3, 1, "POST"), arrived(4, 3)]
    ticks = Ticker([0.001, 0.15], [0.0, 0.001])
    rows = _rows(PLAN, requests, arrivals, Counter({"req-2": 1, "": 1}), ticks, ticks)
    found = {it.what.partition(":")[0]: it for it in rows}
    assert {name: found[name].median for name in ("lost", "double", "stalled", "failed")} == {
        "lost": 1,
        "double": 1,
        "stalled": 1,
        "failed": 2,
    }
    assert found["requests that they should have sent and did not"].median == 46
    assert found["effects at the server"].median == 2
    assert found["of these without one record of their answer"].median == 1
    assert found["records without an answer, or of what never arrived"].median == 1
    assert found["loop's longest stall under load"].is_met is False
