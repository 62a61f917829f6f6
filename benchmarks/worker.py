"""One benchmark in a process of its own: ``python -m benchmarks.worker NAME COUNT``, started by ``__main__``.

Of its own, because the hooks on Playwright, the stopwatch and Playwright's flavours would meet otherwise.
"""

from __future__ import annotations

import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks import clicks, download, load, page_load, recovery, unwrapped
from benchmarks.reporting import Reporter

if TYPE_CHECKING:
    from collections.abc import Callable

BENCHMARKS: dict[str, Callable[[int, Path, Reporter], None]] = {
    "clicks-sync": partial(clicks.measure, "sync"),
    "clicks-async": partial(clicks.measure, "async"),
    "page-load": page_load.measure,
    "download": download.measure,
    "load": load.measure,
    "recovery-sqlite": recovery.measure_sqlite,
    "recovery-postgresql": recovery.measure_postgres,
    "unwrapped-sync": partial(unwrapped.measure, "sync"),
    "unwrapped-async": partial(unwrapped.measure, "async"),
}


def main() -> None:
    """Run the named benchmark."""
    name, count = sys.argv[1], int(sys.argv[2])
    reporter = Reporter()
    # Where the ledger lies decides what a commit costs, hence not in a folder that is kept in memory.
    with tempfile.TemporaryDirectory(prefix="bmw-bench-", dir=sys.argv[3] if len(sys.argv) > 3 else None) as folder:
        reporter.load("before")
        BENCHMARKS[name](count, Path(folder), reporter)
        reporter.load("after")


if __name__ == "__main__":
    main()
