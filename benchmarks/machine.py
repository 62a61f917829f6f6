"""What the figures were measured on: without it they say nothing."""

from __future__ import annotations

import os
import platform
import sqlite3
import tempfile
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from browsermw.wire.browser_find import find_browser


@dataclass(frozen=True)
class Machine:
    """The facts, in words, in the order in which they are shown."""

    facts: dict[str, str]


def this_machine(folder: Path | None) -> Machine:
    """Describe this machine.

    Args:
        folder: Where the ledgers are made; ``None`` for the system's temporary folder.
    """
    found = find_browser()
    return Machine(
        {
            "measured at": f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC",
            "processor": f"{_processor()}, {os.cpu_count()} cores",
            "system": f"{platform.system()} {platform.release().partition('-')[0]}",
            "disk of the ledgers": _disk(folder or Path(tempfile.gettempdir())),
            "browser": f"{found.version if found else 'none'}, headless",
            "Playwright": version("playwright"),
            "Python": platform.python_version(),
            "SQLAlchemy, SQLite": f"{version('sqlalchemy')}, {sqlite3.sqlite_version}",
            "browsermw": version("browsermw") if _is_installed() else "from a checkout",
        }
    )


def _is_installed() -> bool:
    try:
        version("browsermw")
    except ModuleNotFoundError:
        return False
    return True


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.machine())


def _disk(folder: Path) -> str:
    """File system and device of a folder; a virtual disk may not flush for real, which no program can see."""
    try:
        mounts = [line.split() for line in Path("/proc/mounts").read_text(encoding="utf-8").splitlines()]
    except OSError:
        return "unknown"
    here = [mount for mount in mounts if folder.resolve().is_relative_to(mount[1])]
    if not here:
        return "unknown"
    device, _, kind, *_ = max(here, key=lambda mount: len(mount[1]))
    return f"{kind} on {Path(device).name}"
