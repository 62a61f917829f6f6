"""Named fault points: places where a crash test may stop, kill or fail the process.

The ledger and the gate call ``reach`` there; ``browsermw.testing`` installs a hook with ``arm``. Without a hook a
fault point is one read of a global. Nothing here decides anything, and nothing in production may arm it.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


class Point(StrEnum):
    """The places, named by what has and what has not happened yet."""

    LEDGER_BEFORE_COMMIT = "ledger_before_commit"
    LEDGER_AFTER_COMMIT = "ledger_after_commit"
    GATE_HOLDS = "gate_holds"
    GATE_RULED = "gate_ruled"
    GATE_RELEASED = "gate_released"
    GATE_ANSWER_HELD = "gate_answer_held"
    GATE_ANSWER_RECORDED = "gate_answer_recorded"


_hook: Callable[[Point, str], None] | None = None


def arm(hook: Callable[[Point, str], None] | None) -> None:
    """Install the hook of this process, or take it away with ``None``.

    Args:
        hook: Called with the point and its detail (the ledger's call, say), on the thread that reached it. What
            it raises is raised there.
    """
    global _hook  # noqa: PLW0603 - one switch for the whole process is what a fault point is
    _hook = hook


def reach(point: Point, detail: str = "") -> None:
    """Say that a point was reached.

    Args:
        point: Which one.
        detail: What was being done, such as the name of the ledger's call.
    """
    if _hook is not None:
        _hook(point, detail)
