"""Starts agents as processes of their own, kills them with SIGKILL, and ends what they leave behind.

Used by the crash tests of both flavours. An agent (``crash_agent.py``) stops at the fault point that a test names and
says so; then it is killed there. Its browser lives in a session of its own and outlives it, and that is what the
tests are about: the driver between the two, which would end the browser within a moment, is stopped before the kill,
so that the browser surely has the time to send what it held.
"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self
from urllib.request import ProxyHandler, build_opener

import browsermw
from browsermw.testing.processes import end, family, wait_gone

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from browsermw import Run, Runtime
    from browsermw.faults import Point
    from browsermw.testing.processes import Process
    from tests.shop_site import Shop

AGENT = Path(__file__).with_name("crash_agent.py")
ROOT = AGENT.parents[1]
RUNTIME = "agent-7"
PATIENCE_S = 60.0
LOOK_AGAIN_S = 0.02


@dataclass(frozen=True)
class Job:
    """One click on one page, in one run.

    Attributes:
        run: Id of the run.
        page: URL.
        button: What is clicked.
        until: JavaScript that says when the click has come to something; by default the shop's own pages are asked.
    """

    run: str
    page: str
    button: str
    until: str | None = None


def order_form(shop: Shop, action: str = "/order", run: str = "invoice-8472") -> Job:
    """A job whose button sends a form."""
    return Job(run, f"{shop.url}/form?action={action}", "#send")


def order_fetch(shop: Shop, button: str = "#pay", run: str = "invoice-8472") -> Job:
    """A job whose button sends by ``fetch``; ``#pay`` posts to ``/api/checkout``, ``#pay-KIND`` to ``/api/KIND``."""
    return Job(run, f"{shop.url}/checkout", button)


@dataclass(frozen=True)
class Spec:
    """What ``crash_agent.py`` is to do.

    Attributes:
        flavour: ``sync`` or ``async``.
        ledger: URL of the ledger.
        runtime: Name of the runtime.
        jobs: One run after the other.
        steps: What it does in each: ``click``; ``committed`` or ``not_committed`` for a verdict on what was in doubt
            at the claim; ``observed`` to take its result.
        stop: Fault point, and its detail where that matters; armed before the click.
        cdp: Debugging address of a browser that somebody else started.
        routed: Whether its browser has no gate, so that Playwright's routes have to do.
        speaks: Where the named pipe is made into which it speaks.
        policy: Keys of its policy.
    """

    flavour: str
    ledger: str
    runtime: str
    jobs: tuple[Job, ...]
    steps: tuple[str, ...]
    stop: tuple[str, ...] | None
    cdp: str | None
    routed: bool
    speaks: str
    policy: dict[str, Any]


class Nest:
    """The process that forks agents."""

    def __init__(self) -> None:
        self._running = subprocess.Popen(
            [sys.executable, str(AGENT)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with self._running:  # closes both pipes and waits
            pass

    def fork(self, spec: Spec) -> int:
        """Start an agent; return its process id."""
        assert self._running.stdin is not None
        assert self._running.stdout is not None
        self._running.stdin.write(json.dumps(asdict(spec)) + "\n")
        self._running.stdin.flush()
        return int(json.loads(self._running.stdout.readline())["pid"])


class Agent:
    """A running agent."""

    def __init__(self, nest: Nest, spec: Spec) -> None:
        os.mkfifo(spec.speaks)
        self.pid = nest.fork(spec)
        self._words = Path(spec.speaks).open(encoding="utf-8")  # noqa: SIM115 - ``end`` closes it
        self._family: list[Process] = []
        self._note_family()
        self._browser_port = int(spec.cdp.rpartition(":")[2]) if spec.cdp else 0

    def hears(self, word: str) -> dict[str, Any]:
        """Read what the agent says until it says that word."""
        said = []
        for words in self._lines():
            said.append(words)
            if word in words:
                return words
        raise AssertionError(f"the agent ended without {word!r}; it said {said}")

    def finishes(self) -> list[str]:
        """Wait for its end; return what came of its clicks: ``clicked``, or the name of the error."""
        said = list(self._lines())
        assert said[-1:] == [{"done": True}], said
        assert wait_gone(self._family, PATIENCE_S) == [], "an agent that ends in order takes its browser along"
        return [words.get("refused", "clicked") for words in said if words.keys() & {"clicked", "refused"}]

    def _lines(self) -> Iterator[dict[str, Any]]:
        for line in self._words:
            words = json.loads(line)
            self._browser_port = words.get("browser", self._browser_port)
            self._note_family()
            yield words

    def crashes(self, *, holding: bool = False, lives_on_s: float = 0.0) -> None:
        """Kill the agent where it stands.

        Args:
            lives_on_s: How long its browser lives after it, for what the browser lets go without a word; seconds.
            holding: Its browser holds a request: wait until the browser, whose gate is dead, has let go of it and the
                page knows what came of that.
        """
        self._note_family()
        for process in self._family:
            if process.parent == self.pid:
                stop(process.pid)
        titles = self._titles() if holding else None
        kill(self.pid)
        if holding:
            wait_until(lambda: self._titles() != titles, "the browser let go of what it held")
        time.sleep(lives_on_s)
        self.end()

    def end(self) -> None:
        """End what is left of it and its browser; return when nothing is."""
        self._note_family()
        end(self._family)
        self._words.close()

    def _note_family(self) -> None:
        """Note its processes while it lives, because a dead parent names no children."""
        known = {(process.pid, process.started) for process in self._family}
        self._family += [it for it in family(self.pid) if (it.pid, it.started) not in known]

    def _titles(self) -> list[str]:
        """Titles of the browser's pages, as its debugging port lists them.

        A page has another one once a held form has led to a page or to an error, or a held ``fetch`` has come to
        something (the agent sees to that).
        """
        with build_opener(ProxyHandler({})).open(f"http://127.0.0.1:{self._browser_port}/json/list", timeout=5) as got:
            return [page["title"] for page in json.load(got) if page["type"] == "page"]


class Bench:
    """Where agents of one flavour are started on one ledger."""

    def __init__(self, nest: Nest, flavour: str, folder: Path) -> None:
        self.flavour = flavour
        self.ledger = f"sqlite:///{folder}/agent.db"
        self._nest = nest
        self._folder = folder
        self._agents: list[Agent] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for agent in self._agents:
            agent.end()

    def starts(
        self,
        *jobs: Job,
        stop: Sequence[Point | str] | None = None,
        steps: Sequence[str] = ("click",),
        cdp: str | None = None,
        routed: bool = False,
        policy: dict[str, Any] | None = None,
    ) -> Agent:
        """Start an agent; see ``Spec``."""
        where = tuple(map(str, stop)) if stop is not None else None
        speaks = str(self._folder / f"agent-{len(self._agents)}")
        spec = Spec(self.flavour, self.ledger, RUNTIME, jobs, tuple(steps), where, cdp, routed, speaks, policy or {})
        agent = Agent(self._nest, spec)
        self._agents.append(agent)
        return agent

    def stopped_at(self, job: Job, point: Point, *detail: str, cdp: str | None = None, routed: bool = False) -> Agent:
        """Start an agent and wait until it stands at that fault point."""
        agent = self.starts(job, stop=(point, *detail), cdp=cdp, routed=routed)
        agent.hears("reached")
        return agent

    def has_sent(self, job: Job, shop: Shop, path: str, count: int = 1, **more: Any) -> Agent:
        """Start an agent and wait until that many requests have arrived at the shop there."""
        agent = self.starts(job, **more)
        agent.hears("clicks")
        shop.wait_for(path, count, timeout_s=PATIENCE_S)
        return agent

    def again(
        self, *jobs: Job, steps: Sequence[str] = ("click",), cdp: str | None = None, routed: bool = False
    ) -> list[str]:
        """Do the jobs in a restarted agent, to its end; see ``Agent.finishes``."""
        return self.starts(*jobs, steps=steps, cdp=cdp, routed=routed).finishes()

    @contextmanager
    def looks(self, run_id: str, runtime: str = RUNTIME) -> Iterator[tuple[Runtime, Run]]:
        """Claim a run in this process, as a restarted agent would, and look at what was left of it."""
        with browsermw.open(self.ledger, runtime=runtime) as mw, mw.run(run_id) as run:
            yield mw, run


def stop(pid: int) -> None:
    """Stop a process; a busy one goes on for some milliseconds after the signal."""
    os.kill(pid, signal.SIGSTOP)
    stat = Path(f"/proc/{pid}/stat")
    wait_until(lambda: stat.read_text().rpartition(") ")[2].startswith("T"), f"process {pid} is stopped")


def kill(pid: int) -> None:
    """Kill this one process, none of its family, and wait for its end."""
    descriptor = os.pidfd_open(pid)
    try:
        os.kill(pid, signal.SIGKILL)
        ended, _, _ = select.select([descriptor], [], [], PATIENCE_S)
        assert ended, f"process {pid} survived SIGKILL"
    finally:
        os.close(descriptor)


def wait_until(is_so: Callable[[], object], what: str) -> None:
    """Ask again and again, for what sends no word when it happens."""
    deadline = time.monotonic() + PATIENCE_S
    while not is_so():
        assert time.monotonic() < deadline, f"not within {PATIENCE_S} s: {what}"
        time.sleep(LOOK_AGAIN_S)
