"""Waiting for what a page has begun: on what the browser says next, and never longer than it takes."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from browsermw import Policy
from browsermw.wire import chromium
from browsermw.wire.chromium import GuardedBrowser

PAGE = {"targetId": "P", "type": "page", "url": "http://shop/", "browserContextId": "C"}


@pytest.fixture
async def guarded() -> GuardedBrowser:
    desk: Any = None
    made = GuardedBrowser(desk, Policy(), endpoint="ws://127.0.0.1:1/", relay=None)
    made.targets.attached("S", PAGE)
    return made


async def test_a_window_that_one_action_gives_up_waiting_for_is_not_waited_for_by_another(
    guarded: GuardedBrowser, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The browser says nothing then that would wake the other one."""
    guarded._event("Page.windowOpen", {"url": "http://shop/"}, "S")
    monkeypatch.setattr(chromium, "BEGUN_LIMIT_S", 0.1)
    first = asyncio.create_task(guarded.caught_up("P", turned=True))
    await asyncio.sleep(0)
    monkeypatch.setattr(chromium, "BEGUN_LIMIT_S", 30.0)
    async with asyncio.timeout(2):
        await asyncio.gather(first, guarded.caught_up("P", turned=True))


async def test_every_action_that_waits_is_woken_by_what_comes_to_the_gate(guarded: GuardedBrowser) -> None:
    sent = {"requestId": "1", "type": "Fetch", "request": {"method": "POST", "url": "http://shop/pay"}}
    guarded._event("Network.requestWillBeSent", sent, "S")
    waiting = [asyncio.create_task(guarded.caught_up("P", turned=True)) for _ in range(3)]
    await asyncio.sleep(0)
    assert not any(it.done() for it in waiting)
    guarded._event("Network.loadingFailed", {"requestId": "1"}, "S")
    for _ in range(4):
        await asyncio.sleep(0)
    assert all(it.done() for it in waiting)
