"""Relays that are closed after each test, and what a client of one needs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from browsermw.wire.relay import Relay

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


@pytest.fixture
async def relay() -> AsyncIterator[Relay]:
    """A started relay whose gate is not attached yet."""
    relay = Relay()
    await relay.start()
    yield relay
    await relay.close()
