"""The demo, step by step: an agent is killed between its click and the answer, and the order is made once.

Called by ``browsermw demo``, which prints the steps. The judge is the shop's own count, never the ledger and never the
agent. Every wait is for something that happened; whatever was started is ended, also when a step fails.
"""

from __future__ import annotations

import tempfile
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from browsermw.ledger import open_ledger
from browsermw.testing.agent_process import AgentProcess, DemoFailed
from browsermw.testing.shop_site import Shop

if TYPE_CHECKING:
    from collections.abc import Callable

RUNTIME = "demo-agent"
RUN = "demo-order"
ITEM = "teapot"
ORDER_PATH = "/order-slow"
START_LIMIT_S = 60.0
"""For whatever includes the start of a browser, on a busy machine."""
STEP_LIMIT_S = 30.0


@dataclass(frozen=True)
class Step:
    """One step of the demo.

    Attributes:
        number: From 1.
        title: What happened.
        meaning: What it means.
        facts: What was seen.
    """

    number: int
    title: str
    meaning: str
    facts: dict[str, object] = field(default_factory=dict)


@dataclass(frozen=True)
class Ending:
    """What the demo came to.

    Attributes:
        run_id: The run in the ledger.
        orders: How many orders the shop counts.
        reference: What the agent read at the end.
    """

    run_id: str
    orders: int
    reference: str


def play(ledger_url: str, tell: Callable[[Step], None], *, log: Path, headed: bool = False) -> Ending:
    """Play the demo.

    Args:
        ledger_url: The agent's ledger; made where there is none.
        tell: Called with each step as it happens.
        log: File that the agents' log is appended to.
        headed: Show the browser.

    Raises:
        DemoFailed: A step did not come out as it must, the count of orders among them.
        LedgerUnavailable: The ledger cannot be opened.
    """
    run_id = _free_run_id(ledger_url)
    with ExitStack() as stack:
        temporary = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="bmw-", ignore_cleanup_errors=True)))
        try:
            shop = stack.enter_context(Shop.start())
        except RuntimeError as error:
            raise DemoFailed(str(error)) from error
        return _Play(shop, ledger_url, run_id, tell, log, temporary, headed=headed).play()


def _free_run_id(ledger_url: str) -> str:
    """``demo-order``, or with a number where the ledger has it from an earlier demo."""
    ledger = open_ledger(ledger_url)
    try:
        taken = {run.run_id for run in ledger.runs()}
    finally:
        ledger.close()
    names = (RUN, *(f"{RUN}-{number}" for number in range(2, len(taken) + 3)))
    return next(name for name in names if name not in taken)


class _Play:
    def __init__(
        self,
        shop: Shop,
        ledger_url: str,
        run_id: str,
        tell: Callable[[Step], None],
        log: Path,
        temporary: Path,
        *,
        headed: bool,
    ) -> None:
        self._shop, self._ledger_url, self._run_id = shop, ledger_url, run_id
        self._tell, self._log, self._temporary, self._headed = tell, log, temporary, headed
        self._told_count = 0

    def play(self) -> Ending:
        self._step(
            "A shop opens",
            "It is a process of its own and counts what reaches it. Its count is the judge.",
            shop=self._shop.url,
        )
        with self._agent() as first:
            self._click(first)
            self._kill(first)
        with self._agent() as second:
            doubt = self._restart(second)
            self._refuse(second)
            self._look_up(second, doubt)
            reference = self._finish(second)
        return Ending(self._run_id, self._count(), reference)

    def _click(self, agent: AgentProcess) -> None:
        started = agent.hear("ready", START_LIMIT_S)
        self._step(
            "An agent starts",
            "A Playwright script under browsermw, in a child process with a browser of its own.",
            pid=started["pid"],
            runtime=RUNTIME,
            run=self._run_id,
        )
        agent.hear("clicking", STEP_LIMIT_S)
        self._shop.wait_for(ORDER_PATH, timeout_s=STEP_LIMIT_S)
        self._step(
            "It clicks Send, and the shop commits the order",
            "The request left only after its record was on disk. The shop keeps its answer back for a minute.",
            orders=self._demand_one(),
            ledger=self._ledger_says(),
        )

    def _kill(self, agent: AgentProcess) -> None:
        code, orphan_count = agent.kill()
        self._step(
            "The agent is killed between request and answer",
            "SIGKILL: no handler runs, nothing is saved. Nobody on this side knows whether the order went through.",
            pid=agent.pid,
            exit_status=code,
            orders=self._demand_one(),
            ledger=self._ledger_says(),
            orphans=f"{orphan_count} processes, gone after {agent.clear():.1f} s",
        )

    def _restart(self, agent: AgentProcess) -> dict[str, Any]:
        started = agent.hear("ready", START_LIMIT_S)
        doubt: dict[str, Any] = agent.hear("told", STEP_LIMIT_S)["doubt"]
        if not started["read_only"]:
            raise DemoFailed("the agent was not told that its run is read-only")
        effect = doubt["effect"]
        self._step(
            "The same agent starts again",
            "It is told what may have happened, and that its run is read-only until that is settled.",
            pid=started["pid"],
            quarantine=doubt["quarantine_id"],
            run=doubt["run_id"],
            seq=doubt["action_seq"],
            page=doubt["action"]["url"],
            request=f"{effect['method']} {effect['url']}",
            left_at=effect["dispatched_at"],
            why=doubt["reason"],
        )
        return doubt

    def _refuse(self, agent: AgentProcess) -> None:
        agent.hear("clicking", STEP_LIMIT_S)
        refusal = agent.hear("refused", STEP_LIMIT_S)["message"]
        self._step(
            "It clicks Send again, and is refused",
            "What a retry loop would do. No second request leaves the browser.",
            refusal=refusal,
            orders=self._demand_one(),
        )

    def _look_up(self, agent: AgentProcess, doubt: dict[str, Any]) -> None:
        found = agent.hear("looked up", STEP_LIMIT_S)
        self._step(
            "It looks the order up at the shop",
            "Reading is allowed. The application knows what happened; nobody has to guess.",
            request=f"GET {found['url']}",
            found=", ".join(order["id"] for order in found["orders"]) or "nothing",
        )
        settled = agent.hear("settled", STEP_LIMIT_S)
        self._step(
            "It records its verdict",
            "The evidence is the note. The order is never sent again, and the run may go on.",
            quarantine=doubt["quarantine_id"],
            phase=settled["doubt"]["effect"]["phase"],
            note=settled["note"],
        )

    def _finish(self, agent: AgentProcess) -> str:
        finished = agent.hear("finished", STEP_LIMIT_S)
        agent.wait(STEP_LIMIT_S)
        (order,) = self._shop.orders()
        if finished["reference"] != order["id"]:
            raise DemoFailed(f"the agent read {finished['reference']!r}, and the shop's order is {order['id']!r}")
        self._step(
            "It reads the reference and ends the run",
            "From the order's page, as it would have done after the answer that never came.",
            reference=finished["reference"],
            run=finished["phase"],
        )
        self._step(
            "The shop counts",
            "One order, from one request, although the agent clicked twice and died once.",
            requests=self._shop.count(ORDER_PATH),
            orders=self._demand_one(),
        )
        return str(finished["reference"])

    def _agent(self) -> AgentProcess:
        arguments = {"runtime": RUNTIME, "run": self._run_id, "shop": self._shop.url, "item": ITEM}
        flat = [word for name, value in arguments.items() for word in (f"--{name}", value)]
        if self._headed:
            flat.append("--headed")
        return AgentProcess(flat, ledger_url=self._ledger_url, log=self._log, temporary=self._temporary)

    def _step(self, title: str, meaning: str, **facts: object) -> None:
        self._told_count += 1
        self._tell(Step(self._told_count, title, meaning, facts))

    def _count(self) -> int:
        return len(self._shop.orders())

    def _demand_one(self) -> int:
        """The shop's count of orders, which must be one, from one request."""
        counts = (self._count(), self._shop.count(ORDER_PATH))
        if counts != (1, 1):
            raise DemoFailed(f"the shop counts {counts[0]} orders from {counts[1]} requests; it must be one from one")
        return 1

    def _ledger_says(self) -> str:
        ledger = open_ledger(self._ledger_url, create=False)
        try:
            effects = [effect for action in ledger.actions(self._run_id) for effect in action.effects]
        finally:
            ledger.close()
        return ", ".join(f"{it.method} {it.url} {it.phase}, answer {it.status or 'none'}" for it in effects)
