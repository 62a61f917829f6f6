"""Browsers and flavours: one benchmark body for sync and async Playwright, a bare browser beside a guarded one.

A body is written once, as a coroutine. In the async flavour ``asyncio`` drives it; in the sync flavour nothing in it
ever suspends (``settled`` returns what is no awaitable at once), so one ``send`` runs it to its end on this thread, as
plain sync code would run.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import os
import time
from typing import TYPE_CHECKING, Any, Literal

import playwright.async_api
import playwright.sync_api

from browsermw.wire.browser_find import find_browser

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from types import ModuleType

Flavour = Literal["sync", "async"]

API: dict[Flavour, ModuleType] = {"sync": playwright.sync_api, "async": playwright.async_api}
# A CI machine's /dev/shm is small; the guarded browser is given the same, so that the two differ by the guard alone.
COMMON_ARGS = ("--disable-dev-shm-usage",)
_BARE_ARGS = (*COMMON_ARGS, "--disable-background-networking")


async def settled(result: Any) -> Any:
    """What a Playwright call gave, awaited in the async flavour."""
    return await result if inspect.isawaitable(result) else result


async def pause(flavour: Flavour, seconds: float) -> None:
    """Let the agent think."""
    if flavour == "sync":
        time.sleep(seconds)  # noqa: ASYNC251 - no loop runs in this flavour
    else:
        await asyncio.sleep(seconds)


def run_flavour(flavour: Flavour, body: Callable[[Any], Coroutine[Any, Any, None]]) -> None:
    """Run a body with a started Playwright of a flavour."""
    if flavour == "async":
        asyncio.run(_run_async(body))
        return
    with playwright.sync_api.sync_playwright() as started:
        work = body(started)
        with contextlib.suppress(StopIteration):
            work.send(None)
            work.close()
            raise AssertionError("a sync body has awaited something")


async def _run_async(body: Callable[[Any], Coroutine[Any, Any, None]]) -> None:
    async with playwright.async_api.async_playwright() as started:
        await body(started)


def bare_options() -> dict[str, Any]:
    """Launch arguments of a browser without a gate or a relay, otherwise the same."""
    args = list(_BARE_ARGS)
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        args.append("--no-sandbox")
    options: dict[str, Any] = {"headless": True, "args": args}
    found = find_browser()
    if found is not None and found.source != "playwright":
        options["executable_path"] = found.path
    return options
