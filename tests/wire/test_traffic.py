"""What the engine knows of requests on their way to the gate, in whatever order the browser tells it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from browsermw import Policy
from browsermw.wire.gate import Gate
from browsermw.wire.targets import Target, TargetMap
from browsermw.wire.traffic import Traffic

if TYPE_CHECKING:
    from collections.abc import Coroutine

PAGE = {"targetId": "P", "type": "page", "url": "http://shop/", "browserContextId": "C"}
SENT = {"requestId": "1", "type": "Fetch", "request": {"method": "POST", "url": "http://shop/pay", "hasPostData": True}}


class Engine:
    """What ``Traffic`` needs of one; uploads are late at once."""

    def __init__(self) -> None:
        self.targets = TargetMap()
        self.page: Target = self.targets.attached("S", PAGE, parent_session=None)
        self.refused: list[Coroutine[Any, Any, None]] = []
        desk: Any = None
        self.traffic = Traffic(
            desk, self.targets, Gate(desk, Policy(), self.targets, None), 0.0, spawn=self.refused.append, order=_order
        )

    def announces(self) -> None:
        self.traffic.event("requestWillBeSent", SENT, self.page)

    def holds(self) -> None:
        self.traffic.at_the_gate("1")


async def _order(*_: object) -> None:
    return


@pytest.fixture
async def engine() -> Engine:
    return Engine()


async def test_a_request_is_on_its_way_until_it_is_at_the_gate(engine: Engine) -> None:
    engine.announces()
    assert engine.traffic.is_on_the_way("P")
    engine.holds()
    assert not engine.traffic.is_on_the_way("P")


async def test_one_that_is_announced_after_it_was_held_is_waited_for_no_more(engine: Engine) -> None:
    """Page and gate speak through two processes: every click would wait, and an upload be given up that had left."""
    engine.holds()
    engine.announces()
    assert not engine.traffic.is_on_the_way("P")
    await _turns()
    assert engine.refused == []


async def test_an_upload_that_does_not_come_is_refused_once_its_time_is_up(engine: Engine) -> None:
    engine.announces()
    await _turns()
    (refusal,) = engine.refused
    refusal.close()


async def _turns() -> None:
    for _ in range(3):
        await asyncio.sleep(0)
