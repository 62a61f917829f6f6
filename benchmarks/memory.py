"""How much memory this process holds, and the most that it held since it was last asked to forget (Linux only)."""

from __future__ import annotations

import re
from pathlib import Path

_STATUS, _FORGET = Path("/proc/self/status"), Path("/proc/self/clear_refs")
_FORGET_PEAK = "5"


def is_measurable() -> bool:
    """Whether this system tells."""
    return _STATUS.exists() and _FORGET.exists()


def forget_peak() -> None:
    """Have the peak counted from now on."""
    _FORGET.write_text(_FORGET_PEAK, encoding="ascii")


def resident_mb() -> float:
    """What the process holds now."""
    return _field_mb("VmRSS")


def peak_mb() -> float:
    """The most that it held since ``forget_peak``."""
    return _field_mb("VmHWM")


def _field_mb(name: str) -> float:
    found = re.search(rf"^{name}:\s+(\d+) kB$", _STATUS.read_text(encoding="ascii"), re.MULTILINE)
    assert found is not None
    return int(found.group(1)) / 1024
