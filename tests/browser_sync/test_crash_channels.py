"""Killed in the middle of each channel: on a sealed wire nothing arrives, on an attached one nothing is forgotten.

The agent stops where the gate holds the channel's request and is killed there; its browser lives on and lets go of what
was held, which Chromium does within milliseconds (field note 2) and without a word.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from browsermw.faults import Point
from browsermw.protocol.effect_rules import SAFE_METHODS
from browsermw.protocol.phases import Phase
from browsermw.testing.channels import CHANNELS, Engine, State, expected
from browsermw.testing.channels.firing import click
from tests.crash_recovery import bare_browser
from tests.crashes import Job

if TYPE_CHECKING:
    from browsermw.testing.channels import Channel
    from tests.crashes import Bench
    from tests.shop_site import Shop

__all__ = ["bare_browser"]

LET_GO_S = 0.4
SLOW = {"service-worker-sync", "upload-50-mb"}
"""Seconds each, and held like the others."""

HELD = [
    it
    for it in CHANNELS
    if it.fire is click and expected(it.name, Engine.SEALED) is State.WRITE_AHEAD and it.name not in SLOW
]
IS_SHORT = os.environ.get("BROWSERMW_TEST_ROUNDS", "1") == "1"
"""Each kill takes seconds: by default a few of them, and with more rounds all."""

KILLED = HELD[::6] if IS_SHORT else HELD
ALSO_ATTACHED = HELD[::12] if IS_SHORT else HELD
METHODS = {"put": "PUT", "patch": "PATCH", "delete": "DELETE"}


@pytest.fixture
def flavour() -> str:
    return "sync"


def kill_holding(bench: Bench, channel: Channel, shop: Shop, cdp: str | None = None) -> None:
    job = Job(channel.name, f"{shop.url}/channels/{channel.name}?nonce=aa", "#go", until="() => false")
    method = METHODS.get(channel.name, "POST")
    bench.stopped_at(job, Point.GATE_HOLDS, method, cdp=cdp).crashes(lives_on_s=LET_GO_S)


def arrived(shop: Shop) -> list[str]:
    return [it["path"] for it in shop.arrivals("/sink/*") if it["method"] not in SAFE_METHODS]


@pytest.mark.parametrize("channel", KILLED, ids=lambda channel: channel.name)
def test_on_a_sealed_wire_nothing_arrives_and_nothing_is_in_doubt(bench: Bench, shop: Shop, channel: Channel) -> None:
    kill_holding(bench, channel, shop)
    assert arrived(shop) == []
    with bench.looks(channel.name) as (_, run):
        assert run.quarantined == []


@pytest.mark.parametrize("channel", ALSO_ATTACHED, ids=lambda channel: channel.name)
def test_on_an_attached_wire_what_arrived_is_in_doubt(
    bench: Bench, shop: Shop, bare_browser: str, channel: Channel
) -> None:
    kill_holding(bench, channel, shop, bare_browser)
    with bench.looks(channel.name) as (mw, run):
        clicked = next(it for it in mw.ledger_call("actions", channel.name) if it.kind == "click")
        assert run.resume is not None
        assert run.resume.unseen_since is not None
        if arrived(shop):
            assert clicked.phase is not Phase.ABANDONED
            # A page that sent when its click was over sent by itself: the report says from when on that went unseen.
            assert run.quarantined or clicked.closed_at is not None
