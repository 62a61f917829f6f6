"""Takes the time of calls inside browsermw without a line of it in the package.

``wrapt`` puts a stopwatch around named methods for the life of the benchmark's process. The one around Playwright's
method has to be there before browsermw puts its hook on it, so that the hook is measured from both sides: from
outside by the benchmark, from inside by the stopwatch.
"""

from __future__ import annotations

import inspect
import threading
import time
from collections import defaultdict
from typing import TYPE_CHECKING, Any

import wrapt

from browsermw.ledger.store import SqlLedger
from browsermw.sight import Sight
from browsermw.wire.cdp import CdpConnection
from browsermw.wire.chromium import GuardedBrowser
from browsermw.wire.gate import Gate

if TYPE_CHECKING:
    from benchmarks.measures import Interval

PLAYWRIGHT, LOOK, CATCH_UP, HELD, ANSWER_HELD = "playwright", "look", "catch up", "held", "answer held"
COMMITS = ("plan_action", "dispatch_effect", "answer_effect", "close_action")

_END_OF_PAUSE = {"Fetch.continueRequest": HELD, "Fetch.continueResponse": ANSWER_HELD}


class Stopwatch:
    """Laps by name; other threads add theirs, the benchmark takes them all after each click."""

    def __init__(self) -> None:
        self._laps: dict[str, list[Interval]] = defaultdict(list)
        self._paused: dict[tuple[str, object, object], float] = {}

    def take(self) -> dict[str, list[Interval]]:
        """The laps since the last call."""
        taken, self._laps = self._laps, defaultdict(list)
        return taken

    def watch(self, owner: Any, name: str, lap: str) -> None:
        """Time a method, plain or ``async``.

        Args:
            owner: Class or module.
            name: Of the method, or ``Class.method``.
            lap: Under which its calls are noted.
        """

        def plain(wrapped: Any, _instance: object, args: Any, kwargs: Any) -> Any:
            started = time.perf_counter()
            try:
                return wrapped(*args, **kwargs)
            finally:
                self._laps[lap].append((started, time.perf_counter()))

        async def awaited(wrapped: Any, _instance: object, args: Any, kwargs: Any) -> Any:
            started = time.perf_counter()
            try:
                return await wrapped(*args, **kwargs)
            finally:
                self._laps[lap].append((started, time.perf_counter()))

        method = owner
        for part in name.split("."):
            method = getattr(method, part)
        wrapt.wrap_function_wrapper(owner, name, awaited if inspect.iscoroutinefunction(method) else plain)

    def watch_ledger_and_page(self) -> None:
        """Time the ledger's writes on its own thread, and what the page is asked."""
        for name in COMMITS:
            self.watch(SqlLedger, name, name)
        self.watch(Sight, "look", LOOK)
        self.watch(GuardedBrowser, "caught_up", CATCH_UP)

    def processor_s(self) -> float:
        """Processor time that browsermw's own threads have used so far: less disturbed by a busy machine."""
        own = (thread.ident for thread in threading.enumerate() if thread.name.startswith("browsermw-"))
        return sum(time.clock_gettime(time.pthread_getcpuclockid(ident)) for ident in own if ident is not None)

    def watch_gate(self) -> None:
        """Time how long the gate keeps a request, and then its answer: from the pause event to the order to go on."""
        wrapt.wrap_function_wrapper(Gate, "paused", self._note_pause)
        wrapt.wrap_function_wrapper(CdpConnection, "send", self._note_order)

    def _note_pause(self, wrapped: Any, _instance: object, args: Any, kwargs: Any) -> Any:
        _connection, params, session = args
        stage = ANSWER_HELD if "responseStatusCode" in params else HELD
        self._paused[stage, session, params["requestId"]] = time.perf_counter()
        return wrapped(*args, **kwargs)

    def _note_order(self, wrapped: Any, _instance: object, args: Any, kwargs: Any) -> Any:
        stage = _END_OF_PAUSE.get(args[0])
        if stage is not None:
            started = self._paused.pop((stage, kwargs.get("session"), args[1]["requestId"]), None)
            if started is not None:
                self._laps[stage].append((started, time.perf_counter()))
        return wrapped(*args, **kwargs)
