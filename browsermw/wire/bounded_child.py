"""Run a command of somebody else's for a bounded time, with its output as it comes.

Decides when such a command has had its time, and ends it together with everything that it started: a download
forks workers, a browser's start script forks a browser. Called by the browser look-up and installation; never
asks for input, never leaves a process behind, never raises for what the command did.
"""

from __future__ import annotations

import contextlib
import os
import queue
import re
import signal
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

_ESCAPES = re.compile(r"\x1b\[[0-9;]*m")
# The first line of this kind says more than the last one, which is often a stack frame.
_TELLING = re.compile(r"(?i)(error|e|failed|fatal)\b.*:")
_GRACE_S = 3.0
_LOOK_EVERY_S = 0.1
_TAIL_S = 0.5
_KEPT_LINES = 200


@dataclass(frozen=True)
class ChildEnd:
    """How a bounded command ended.

    Attributes:
        exit_code: The command's own exit code; None when it never started or was ended at a limit.
        lines: The last lines that it printed (standard output and error together), without colours.
        failure: Why it counts as failed, in words; None when it ended by itself with exit code 0.
    """

    exit_code: int | None
    lines: tuple[str, ...]
    failure: str | None


def run_bounded(
    command: Sequence[str],
    *,
    limit_s: float,
    sign_of_life: re.Pattern[str] | None = None,
    sign_within_s: float | None = None,
    on_line: Callable[[str], None] | None = None,
    environment: Mapping[str, str] | None = None,
) -> ChildEnd:
    """Run a command, pass its lines on, and end it with all its children when its time is up.

    Args:
        command: The program and its arguments; no shell is involved.
        limit_s: Seconds that the command may take in all.
        sign_of_life: What a line must match to show that the command gets anywhere.
        sign_within_s: Seconds after which a command that gave no sign of life is given up.
        on_line: Called with each line as it comes.
        environment: Variables set on top of this process's own.

    Returns:
        The end of it, also when the command could not be started.
    """
    try:
        child = subprocess.Popen(  # noqa: S603 (an argument list, never a shell line)
            list(command),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            errors="replace",
            env={**os.environ, **(environment or {})},
            start_new_session=True,
        )
    except OSError as error:
        return ChildEnd(None, (), f"cannot be started: {error.strerror or error}")
    watch = _Watch(limit_s, sign_of_life, sign_within_s if sign_of_life else None)
    lines: list[str] = []
    try:
        given_up = _follow(child, watch, lines, on_line)
    finally:
        _end_group(child)
    if given_up is not None:
        return ChildEnd(None, tuple(lines), given_up)
    failure = None if child.returncode == 0 else _exit_words(child.returncode, lines)
    return ChildEnd(child.returncode, tuple(lines), failure)


class _Watch:
    """The clock of one command: how long it may go on, and what to say when it may not."""

    def __init__(self, limit_s: float, sign: re.Pattern[str] | None, sign_within_s: float | None) -> None:
        self._started = time.monotonic()
        self._limit_s = limit_s
        self._sign = sign
        self._sign_within_s = sign_within_s

    def see(self, line: str) -> None:
        if self._sign is not None and self._sign.search(line):
            self._sign_within_s = None

    def left_s(self) -> float:
        allowed_s = min(self._limit_s, self._sign_within_s if self._sign_within_s is not None else self._limit_s)
        return self._started + allowed_s - time.monotonic()

    def verdict(self) -> str:
        if self._sign_within_s is not None and self._sign_within_s < self._limit_s:
            return f"given up after {self._sign_within_s:g} s without any progress"
        return f"given up after its limit of {self._limit_s:g} s"


def _follow(
    child: subprocess.Popen[str], watch: _Watch, lines: list[str], on_line: Callable[[str], None] | None
) -> str | None:
    """Take lines until the command has ended (None) or its time is up (the reason)."""
    incoming: queue.SimpleQueue[str] = queue.SimpleQueue()
    reader = threading.Thread(target=_read, args=(child, incoming), daemon=True)
    reader.start()
    while watch.left_s() > 0:
        # The command's end counts, not its output's: a grandchild may keep the pipe open for good.
        ended = child.poll() is not None
        if ended:
            reader.join(timeout=_TAIL_S)
        try:
            line = incoming.get(timeout=0 if ended else min(_LOOK_EVERY_S, watch.left_s()))
        except (queue.Empty, ValueError):
            if ended:
                return None
            continue
        watch.see(line)
        lines.append(line)
        del lines[:-_KEPT_LINES]
        if on_line is not None:
            on_line(line)
    return watch.verdict()


def _read(child: subprocess.Popen[str], incoming: queue.SimpleQueue[str]) -> None:
    if child.stdout is None:
        return
    with child.stdout as lines:
        for line in lines:
            incoming.put(_ESCAPES.sub("", line).rstrip())


def _end_group(child: subprocess.Popen[str]) -> None:
    """End the command and everything in its process group: asked first, then without asking."""
    _signal_group(child, signal.SIGTERM)
    try:
        child.wait(timeout=_GRACE_S)
    except subprocess.TimeoutExpired:
        child.kill()
    if sys.platform != "win32":
        _signal_group(child, signal.SIGKILL)
    child.wait()


def _signal_group(child: subprocess.Popen[str], number: signal.Signals) -> None:
    # A group without members is gone already, which is what was wanted.
    with contextlib.suppress(ProcessLookupError, PermissionError):
        if sys.platform == "win32":
            child.terminate()
        else:
            os.killpg(child.pid, number)


def _exit_words(exit_code: int, lines: Sequence[str]) -> str:
    said = [line.strip() for line in lines if line.strip()]
    telling = next((line for line in said if _TELLING.match(line)), said[-1] if said else "")
    return f"exit code {exit_code}" + (f": {telling}" if telling else "")
