"""Channels in the async flavour: a few of each kind, because below the hooks both flavours are one.

All of them are fired in ``tests/browser_sync/test_channels.py``.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from browsermw.testing.channels.expected import expected
from browsermw.testing.channels.measuring import judge
from browsermw.testing.channels.states import Engine
from browsermw.testing.channels.table import BY_NAME

if TYPE_CHECKING:
    from playwright.async_api import Page

    from tests.browser_kit import Journal
    from tests.shop_site import Shop

CLICKED = (
    *("fetch", "beacon", "beacon-at-pagehide", "form", "form-new-tab", "form-dialog", "ping", "window-open-noopener"),
    *("iframe-cross-origin", "dedicated-worker", "shared-worker", "service-worker-sends", "redirect-307-other-host"),
    *("websocket-after", "event-source"),
)


async def settle(shop: Shop, journal: Journal, name: str) -> None:
    """Wait for what must arrive, then hold the count against the ledger."""
    sinks = "/sink/aa.*"
    arrivals = await asyncio.to_thread(shop.wait_for, sinks, BY_NAME[name].arrivals, None)
    assert judge(arrivals, journal.effects("/sink/aa.")) is expected(name, Engine.SEALED)


@pytest.mark.parametrize("name", CLICKED)
async def test_a_channel_that_a_click_fires(page: Page, shop: Shop, journal: Journal, name: str) -> None:
    await page.goto(f"{shop.url}/channels/{name}?nonce=aa")
    await page.wait_for_selector("body[data-ready]", state="attached")
    await page.click("#go")
    await settle(shop, journal, name)


@pytest.mark.parametrize("owner", ["context", "page"])
async def test_a_channel_that_a_call_is(page: Page, shop: Shop, journal: Journal, owner: str) -> None:
    api = page.request if owner == "page" else page.context.request
    await api.post(f"{shop.url}/sink/aa.{owner}-request-post", data="x")
    await settle(shop, journal, f"{owner}-request-post")
