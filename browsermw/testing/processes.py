"""Which processes a child has started, and how they are ended without touching anybody else's.

The demo asks before it kills its agent, because afterwards nobody can tell whose the orphans are. A process is known
by its number together with its start, since numbers are used again. Reads ``/proc``, else ``ps``; signals nothing but
what ``family`` returned.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection

_PROC = Path("/proc")
_LOOK_EVERY_S = 0.02


@dataclass(frozen=True)
class Process:
    """One process.

    Attributes:
        pid: Its number.
        started: Its start, as the system writes it; with the number it is unique.
        parent: Number of its parent.
        group: Number of its process group.
    """

    pid: int
    started: str
    parent: int
    group: int

    def is_same(self, other: Process) -> bool:
        """Whether both are one process, though its parent may have died in between."""
        return (self.pid, self.started) == (other.pid, other.started)


def family(pid: int) -> list[Process]:
    """The process, all that descend from it, and all in a process group that one of them leads.

    Playwright gives each browser a group of its own, which keeps its members together when a parent is gone.
    """
    every = running()
    found = {it.pid: it for it in every if it.pid == pid}
    while True:
        more = [it for it in every if it.pid not in found and (it.parent in found or it.group in found)]
        if not more:
            return list(found.values())
        found |= {it.pid: it for it in more}


def left_of(known: Collection[Process]) -> list[Process]:
    """What still runs of these, and what was born into their groups since."""
    groups = {it.group for it in known if any(it.group == other.pid for other in known)}
    return [it for it in running() if it.group in groups or any(it.is_same(other) for other in known)]


def wait_gone(known: Collection[Process], within_s: float) -> list[Process]:
    """Wait until none of these runs any more.

    Args:
        known: From ``family``.
        within_s: How long at most, in seconds.

    Returns:
        What is left when the time is over; nothing, if all went well.
    """
    deadline_s = time.monotonic() + within_s
    while (left := left_of(known)) and time.monotonic() < deadline_s:
        time.sleep(_LOOK_EVERY_S)  # nobody tells us of the end of a process that is not our child
    return left


def end(known: Collection[Process], within_s: float = 5.0) -> None:
    """Kill what still runs of these and wait for it to be gone.

    Raises:
        TimeoutError: One is still there after ``within_s``; names it.
    """
    for it in left_of(known):
        with contextlib.suppress(ProcessLookupError):
            os.kill(it.pid, signal.SIGKILL)
    left = wait_gone(known, within_s)
    if left:
        raise TimeoutError(f"processes {sorted(it.pid for it in left)} outlive SIGKILL")


def running() -> list[Process]:
    """Every process that this user can see; one that is dead and not yet collected counts as gone."""
    return _from_proc() if (_PROC / "self" / "stat").exists() else _from_ps()


def _from_proc() -> list[Process]:
    found = []
    for folder in _PROC.iterdir():
        if not folder.name.isdigit():
            continue
        try:
            # The name stands in brackets and may hold brackets itself.
            state, *fields = (folder / "stat").read_text().rpartition(") ")[2].split()
        except OSError:
            continue
        if state not in "ZX":
            found.append(Process(int(folder.name), started=fields[18], parent=int(fields[0]), group=int(fields[1])))
    return found


def _from_ps() -> list[Process]:
    command = ["ps", "-A", "-o", "pid=,ppid=,pgid=,stat=,lstart="]
    listed = subprocess.run(command, capture_output=True, text=True, check=True, env={**os.environ, "LC_ALL": "C"})  # noqa: S603
    found = []
    for line in listed.stdout.splitlines():
        pid, parent, group, state, started = line.split(None, 4)
        if not state.startswith("Z"):
            found.append(Process(int(pid), started.strip(), int(parent), int(group)))
    return found
