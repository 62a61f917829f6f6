"""What a benchmark's process tells the command that started it: JSON lines on standard output."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import asdict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from benchmarks.measures import Row


class Reporter:
    """Writes progress, rows and reasons for what was left out."""

    def step(self, done: int, total: int) -> None:
        """So far."""
        self._say({"step": done, "of": total})

    def row(self, row: Row) -> None:
        """A figure."""
        self._say({"row": asdict(row)})

    def skipped(self, why: str) -> None:
        """A part that cannot be measured here."""
        self._say({"skipped": why})

    def load(self, when: str) -> None:
        """How busy the machine is: processes that want to run, averaged over a minute."""
        self._say({"load": when, "value": os.getloadavg()[0]})

    def _say(self, line: dict[str, object]) -> None:
        sys.stdout.write(json.dumps(line) + "\n")
        sys.stdout.flush()
