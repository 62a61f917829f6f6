"""The desk against a real ledger; the browser is what the gate would have said of it."""

from __future__ import annotations

import asyncio
import threading
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from browsermw import faults
from browsermw.boundary import CloseAction, OpenAction
from browsermw.desk import Desk
from browsermw.faults import Point
from browsermw.ledger import open_ledger
from browsermw.ledger.contract import Boot, Sighting
from browsermw.policy import Policy
from browsermw.protocol.recovery import Wire
from browsermw.sight import Sight
from browsermw.wire.held import HeldRequest
from browsermw.wire.targets import TargetMap

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from browsermw.boundary import Seen
    from browsermw.ledger.contract import Ledger
    from browsermw.scopes import GuardedRun

RUN, PAGE, CONTEXT = "invoice-8472", "page-1", "context-1"


class _Glance(Sight):
    """Sees a page without a browser."""

    async def look(
        self, run: GuardedRun, page_id: str | None, *, next_turn: bool = False, seen: Seen | None = None
    ) -> Sighting:
        await asyncio.sleep(0)
        return self.address(run, page_id)


async def _caught_up(_page_id: str, *, turned: bool = False) -> None:
    """The browser has said all that it had to say."""


@dataclass
class Pause:
    """Holds a ledger call just before its commit."""

    call: str
    reached: threading.Event = field(default_factory=threading.Event)
    go_on: threading.Event = field(default_factory=threading.Event)

    def __call__(self, point: Point, detail: str) -> None:
        if point is Point.LEDGER_BEFORE_COMMIT and detail == self.call:
            self.reached.set()
            assert self.go_on.wait(10)


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    ledger = open_ledger(f"sqlite:///{tmp_path}/agent.db")
    ledger.open_boot(Boot("b-1", "agent-7", "host", 1))
    yield ledger
    faults.arm(None)
    ledger.close()


@pytest.fixture
def desk(ledger: Ledger) -> Desk:
    policy = Policy()
    desk = Desk(ledger, asyncio.to_thread, policy, _Glance(policy, b"key"), lambda: True)
    run = desk.add_run(ledger.claim_run(RUN, "b-1", {}).grant)
    targets = TargetMap()
    targets.attached("s-1", {"targetId": PAGE, "type": "page", "browserContextId": CONTEXT, "url": "http://shop.test/"})
    browser = SimpleNamespace(targets=targets, sockets_beside=lambda _: [], caught_up=_caught_up, gate_is_gone=False)
    run.contexts[CONTEXT] = cast("Any", browser)
    run.wires[CONTEXT] = Wire.SEALED
    return desk


def posted(desk: Desk) -> HeldRequest:
    page = desk.runs[RUN].contexts[CONTEXT].targets.targets[PAGE]
    return HeldRequest(
        method="POST",
        url="http://shop.test/api/checkout",
        content_type="application/json",
        body=b'{"item": "book"}',
        channel="Fetch",
        context_id=CONTEXT,
        pages=(page,),
        repeats=False,
        continues=None,
        origin=("shop.test", 80),
    )


async def test_a_request_that_comes_while_its_action_is_being_closed_leaves_on_record(
    desk: Desk, ledger: Ledger
) -> None:
    action_id = await desk.open_action(OpenAction(RUN, "click", "Page.click", "#pay", PAGE))
    pause = Pause("close_action")
    faults.arm(pause)
    closing = asyncio.create_task(desk.close_action(CloseAction(RUN, action_id)))
    assert await asyncio.to_thread(pause.reached.wait, 10)
    ruling = asyncio.create_task(desk.rule(posted(desk)))
    await asyncio.sleep(0)
    pause.go_on.set()

    closed, ruled = await asyncio.gather(closing, ruling)

    assert ruled.refusal is None
    assert closed.refusals == ()
    found = [(action.kind, [effect.effect_id for effect in action.effects]) for action in ledger.actions(RUN)]
    assert found == [("click", []), ("page", [ruled.effect_id])]


@pytest.mark.parametrize("kind", ["click", "script"])
async def test_a_page_that_never_stops_sending_does_not_keep_a_call_from_returning(desk: Desk, kind: str) -> None:
    action_id = await desk.open_action(OpenAction(RUN, kind, "Page.evaluate", "", PAGE, lazy=kind == "script"))
    returned = asyncio.Event()

    async def send_on_and_on() -> None:
        while not returned.is_set():
            await desk.rule(posted(desk))

    senders = [asyncio.create_task(send_on_and_on()) for _ in range(4)]
    await asyncio.sleep(0)
    try:
        async with asyncio.timeout(20):
            await desk.close_action(CloseAction(RUN, action_id))
    finally:
        returned.set()
        await asyncio.gather(*senders)
