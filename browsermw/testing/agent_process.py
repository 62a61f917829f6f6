"""The demo's agent as a process: started apart, listened to, killed, and cleared away.

Used by ``demo_story``. The agent has a session of its own, so that it and the browser that it starts can be ended
together, and nothing else with them.
"""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from typing import TYPE_CHECKING, Any, Self

from browsermw.testing.processes import end, family, wait_gone

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path
    from types import TracebackType

    from browsermw.testing.processes import Process

LEDGER_NAME = "BROWSERMW_LEDGER"
ORPHANS_END_S = 5.0
"""How long the browser of a killed agent may take to end by itself. Measured: 0.2 to 0.7 s, because Playwright's driver
ends with its pipe and takes the browser along."""


class DemoFailed(Exception):
    """A step of the demo did not come out as it must; the message says which and why."""


class AgentProcess:
    """One start of the agent; use it as a context manager, so that nothing of it is left.

    Attributes:
        pid: Its process id, also of its process group.
    """

    def __init__(self, arguments: Sequence[str], *, ledger_url: str, log: Path, temporary: Path) -> None:
        """Start it.

        Args:
            arguments: For ``demo_agent``.
            ledger_url: Its ledger; handed over in the environment, because others can read arguments.
            log: File that its log is appended to.
            temporary: Folder for the browser's temporary files, which a killed browser does not clear away.
        """
        self._log = log
        with log.open("ab") as errors:
            self._running = subprocess.Popen(  # noqa: S603 - our own module
                [sys.executable, "-m", "browsermw.testing.demo_agent", *arguments],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                env={**os.environ, LEDGER_NAME: ledger_url, "TMPDIR": str(temporary)},
                start_new_session=True,
            )
        self.pid = self._running.pid
        self._family: list[Process] = []
        self._said: queue.SimpleQueue[dict[str, Any] | None] = queue.SimpleQueue()
        threading.Thread(target=self._listen, daemon=True).start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End whatever is left of it, by number and start."""
        if self._running.poll() is None:
            self._family = family(self.pid)
            self._running.kill()
        self._running.wait()
        end(self._family)

    def hear(self, step: str, within_s: float) -> dict[str, Any]:
        """Wait for the agent's line about this step and return its facts.

        Raises:
            DemoFailed: Another line or the agent's end came first, or nothing for ``within_s``.
        """
        try:
            said = self._said.get(timeout=within_s)
        except queue.Empty:
            raise DemoFailed(f"the agent did not get to {step!r} within {within_s:.0f} s") from None
        if said is None:
            code = self._running.wait()
            raise DemoFailed(f"the agent ended ({code}) before it got to {step!r}: {self._last_words()}")
        if said["step"] != step:
            raise DemoFailed(f"the agent said {said} instead of {step!r}")
        # While it lives, because a dead parent names no children.
        self._family = family(self.pid) or self._family
        return said

    def kill(self) -> tuple[int, int]:
        """Kill the agent as a crash would: SIGKILL, no warning, only the agent itself.

        Returns:
            How it ended, as ``Popen.returncode``, and how many of its processes (driver, browser) were orphaned.

        Raises:
            DemoFailed: It had ended before.
        """
        self._family = family(self.pid)
        if self._running.poll() is not None:
            raise DemoFailed(f"the agent ended by itself before it was killed: {self._last_words()}")
        os.kill(self.pid, signal.SIGKILL)
        return self._running.wait(), len(self._family) - 1

    def clear(self) -> float:
        """See the orphans of a killed agent off, and return how long that took, in seconds."""
        started_s = time.monotonic()
        if wait_gone(self._family, ORPHANS_END_S):
            end(self._family)
        return time.monotonic() - started_s

    def wait(self, within_s: float) -> None:
        """Wait for the agent to end by itself, its browser with it.

        Raises:
            DemoFailed: It does not, or ends with an error.
        """
        try:
            code = self._running.wait(within_s)
        except subprocess.TimeoutExpired:
            raise DemoFailed(f"the agent did not end within {within_s:.0f} s") from None
        if code:
            raise DemoFailed(f"the agent ended with {code}: {self._last_words()}")
        if wait_gone(self._family, ORPHANS_END_S):
            raise DemoFailed("the agent ended and left its browser running")

    def _listen(self) -> None:
        assert self._running.stdout is not None
        with self._running.stdout as lines:
            for line in lines:
                self._said.put(json.loads(line))
        self._said.put(None)

    def _last_words(self) -> str:
        lines = self._log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
        return lines[-1] if lines else "it left no message"
