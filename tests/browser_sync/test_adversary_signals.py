"""A signal's exception in the middle of a wait of ours: what was being opened is closed, and the exception stays."""

from __future__ import annotations

import signal
import threading
from typing import TYPE_CHECKING

import pytest

from browsermw import faults
from browsermw.faults import Point

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType

    from playwright.sync_api import BrowserContext

    from tests.browser_kit import Journal
    from tests.shop_site import Shop


class _Alarm(Exception):  # what an agent's own time limit may raise
    pass


def _ring(_number: int, _frame: FrameType | None) -> None:
    raise _Alarm


@pytest.fixture
def _alarm() -> Iterator[None]:
    before = signal.signal(signal.SIGUSR1, _ring)
    yield
    signal.signal(signal.SIGUSR1, before)
    faults.arm(None)


@pytest.mark.usefixtures("_alarm")
def test_a_call_interrupted_while_its_record_is_written_was_not_sent(
    context: BrowserContext, shop: Shop, journal: Journal
) -> None:
    main, go_on = threading.main_thread().ident, threading.Event()
    assert main is not None

    def interrupt(point: Point, call: str) -> None:
        if point is Point.LEDGER_BEFORE_COMMIT and call == "dispatch_effect":
            signal.pthread_kill(main, signal.SIGUSR1)
            go_on.wait(10)

    faults.arm(interrupt)
    with pytest.raises(_Alarm):
        context.request.post(f"{shop.url}/api/checkout", data={"item": "book"})
    faults.arm(None)
    go_on.set()
    journal.settled()
    assert journal.phases() == ["ABANDONED"]
    assert shop.count("/api/checkout") == 0
    assert context.request.post(f"{shop.url}/api/checkout", data={"item": "book"}).status == 201
