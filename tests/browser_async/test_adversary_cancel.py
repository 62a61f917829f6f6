"""Tasks that are cancelled at the worst moments: nothing is left open, nothing is doubted that was not sent."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING

import pytest

from browsermw import InFlightDuplicate, OutcomeUnknown, faults
from browsermw.faults import Point
from tests.browser_kit import Journal, until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.async_api import Browser, BrowserContext, Page

    from browsermw import Run, Runtime
    from tests.shop_site import Shop


class _Hold:
    """Holds a ledger's call just before its commit."""

    def __init__(self, call: str) -> None:
        self.reached, self.go_on = threading.Event(), threading.Event()
        faults.arm(lambda point, called: self._wait(point, called == call))

    def _wait(self, point: Point, is_it: bool) -> None:
        if is_it and point is Point.LEDGER_BEFORE_COMMIT:
            self.reached.set()
            self.go_on.wait(10)

    async def cancel(self, task: asyncio.Task[object]) -> BaseException | None:
        """Cancel a task whose ledger call is held; what it ended with."""
        assert await asyncio.to_thread(self.reached.wait, 10)
        task.cancel()
        await asyncio.sleep(0.05)
        self.go_on.set()
        faults.arm(None)
        await asyncio.wait([task])
        return None if task.cancelled() else task.exception()


@pytest.fixture(autouse=True)
def _disarmed() -> Iterator[None]:
    yield
    faults.arm(None)


async def test_a_call_cancelled_while_its_record_is_written_was_not_sent(
    context: BrowserContext, shop: Shop, journal: Journal
) -> None:
    hold = _Hold("dispatch_effect")
    sent = asyncio.create_task(context.request.post(f"{shop.url}/api/checkout", data={"item": "book"}))
    assert await hold.cancel(sent) is None
    await asyncio.to_thread(journal.settled)
    assert journal.phases() == ["ABANDONED"]
    assert shop.count("/api/checkout") == 0
    assert (await context.request.post(f"{shop.url}/api/checkout", data={"item": "book"})).status == 201


async def test_an_action_cancelled_as_it_is_opened_is_closed(
    mw: Runtime, run: Run, page: Page, shop: Shop, journal: Journal
) -> None:
    await page.goto(f"{shop.url}/checkout")
    for _ in range(10):
        task = asyncio.create_task(page.hover("#pay"))
        while not mw.desk.runs[run.run_id].scopes and not task.done():
            await asyncio.wait([task], timeout=0)  # to the very turn in which it opens
        task.cancel()
        await asyncio.wait([task])
    await asyncio.to_thread(until, lambda: not mw.desk.runs[run.run_id].scopes)
    await page.click("#pay")
    assert [action.kind for action in journal.actions()] == ["navigate", "click"]


async def test_a_cancelled_click_whose_request_is_refused_stays_cancelled(
    page: Page, shop: Shop, journal: Journal
) -> None:
    await page.goto(f"{shop.url}/checkout")
    # The click is still busy when its request is held.
    await page.evaluate("() => document.querySelector('#pay').addEventListener('mousedown', e => e.target.click())")
    hold = _Hold("dispatch_effect")
    assert await hold.cancel(asyncio.create_task(page.click("#pay", delay=500))) is None
    await asyncio.to_thread(journal.settled)
    assert journal.phases() == ["ABANDONED"]
    assert shop.count("/api/checkout") == 0


async def test_a_call_cancelled_while_the_driver_dials_is_in_doubt_until_somebody_knows(
    context: BrowserContext, shop: Shop, journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The relay has seen nothing of it yet, and the driver has not given up yet: that proves nothing."""
    dialled = asyncio.Event()
    here = asyncio.get_running_loop()

    async def dial(*_: object) -> None:
        here.call_soon_threadsafe(dialled.set)
        await asyncio.Event().wait()

    monkeypatch.setattr("browsermw.wire.relay.dial", dial)
    sent = asyncio.create_task(context.request.post(f"{shop.url}/api/checkout", data={"item": "book"}))
    await asyncio.wait_for(dialled.wait(), 10)
    sent.cancel()
    await asyncio.wait([sent])
    assert sent.cancelled()
    assert journal.phases() == ["NEEDS_REVIEW"]


async def test_a_call_cancelled_after_it_arrived_is_in_doubt(
    context: BrowserContext, shop: Shop, journal: Journal
) -> None:
    sent = asyncio.create_task(context.request.post(f"{shop.url}/api/never", data={"item": "book"}))
    await asyncio.to_thread(shop.wait_for, "/api/never")
    sent.cancel()
    await asyncio.wait([sent])
    assert sent.cancelled()
    assert journal.phases() == ["NEEDS_REVIEW"]
    with pytest.raises(InFlightDuplicate):
        await context.request.post(f"{shop.url}/api/never", data={"item": "book"})
    assert shop.count("/api/never") == 1


async def test_a_context_closed_over_a_call_leaves_it_in_doubt_and_says_so(
    mw: Runtime, browser: Browser, shop: Shop
) -> None:
    async with mw.run("closed-over-a-call") as run:
        context = run.wrap(await browser.new_context())
        sent = asyncio.create_task(context.request.post(f"{shop.url}/api/never", data={"item": "book"}))
        await asyncio.to_thread(shop.wait_for, "/api/never")
        await context.close()
        with pytest.raises(OutcomeUnknown, match="do not repeat it"):
            await sent
        assert Journal(mw, "closed-over-a-call").phases() == ["NEEDS_REVIEW"]
    assert shop.count("/api/never") == 1
