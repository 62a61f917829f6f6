"""The whole suite in random order, over a ledger that is slow, and over one that fails, at random.

The measure is the server's: what arrives there without an earlier durable record is a defect, whatever became of it.
``BROWSERMW_TEST_ROUNDS`` says how many rounds (1); a round's seed is its number, and is named where it fails.
"""

from __future__ import annotations

import os
import random
import secrets
import time
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import Error as PlaywrightError
from sqlalchemy.exc import OperationalError

from browsermw import BrowsermwError, faults
from browsermw.faults import Point
from browsermw.protocol.effect_rules import SAFE_METHODS
from browsermw.testing.channels import CHANNELS, Engine, State, expected, opened
from browsermw.testing.channels.firing import Stage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from playwright.sync_api import Page, Playwright

    from browsermw.testing.channels import Channel
    from browsermw.testing.channels.place import Place
    from tests.shop_site import Shop

    Hook = Callable[[Point, str], None]

ROUNDS = int(os.environ.get("BROWSERMW_TEST_ROUNDS", "1"))
SLOW = {"upload-50-mb", "service-worker-sync"}
"""They take seconds each and go the same way as others."""

HELD = [it for it in CHANNELS if expected(it.name, Engine.SEALED) is State.WRITE_AHEAD and it.name not in SLOW]
ACTION_LIMIT_MS = 5_000
SHORT_COUNT = 14
"""How many channels a single round takes; several rounds take all of them."""

WRITES = {"plan_action", "dispatch_effect", "answer_effect", "close_action"}


def slow(dice: random.Random) -> Hook:
    """A ledger whose commits take 0 to 20 ms longer."""

    def hook(point: Point, _call: str) -> None:
        if point is Point.LEDGER_BEFORE_COMMIT:
            time.sleep(dice.uniform(0, 0.02))

    return hook


def failing(dice: random.Random) -> Hook:
    """A ledger in which one in seven writes of a click's life fails, before its commit or after it."""

    def hook(point: Point, call: str) -> None:
        is_write = point in {Point.LEDGER_BEFORE_COMMIT, Point.LEDGER_AFTER_COMMIT} and call in WRITES
        if is_write and dice.random() < 1 / 14:
            raise OperationalError("", {}, Exception("the disk failed"))

    return hook


@pytest.fixture(scope="module")
def place(playwright: Playwright, _http_shop: Shop, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    with opened(Engine.SEALED, playwright, _http_shop, tmp_path_factory.mktemp("stress")) as made:
        yield made


@pytest.fixture(autouse=True)
def _disarmed() -> Iterator[None]:
    yield
    faults.arm(None)


def fired(channel: Channel, place: Place, page: Page, nonce: str, hook: Hook) -> None:
    page.set_default_timeout(ACTION_LIMIT_MS)
    page.goto(f"{place.shop.url}/channels/{channel.name}?nonce={nonce}")
    page.wait_for_selector("body[data-ready]", state="attached")
    faults.arm(hook)
    channel.fire(Stage(page, f"{place.shop.url}/sink/{nonce}.{channel.name}"))


def unrecorded(place: Place, run_id: str, nonce: str) -> list[str]:
    """What arrived at the server with a side effect and no earlier record of one that may have left."""
    left = [
        effect
        for action in place.mw.ledger_call("actions", run_id)
        for effect in action.effects
        if str(effect.phase) not in {"REFUSED", "ABANDONED"}
    ]
    lost = []
    for arrival in place.shop.arrivals(f"/sink/{nonce}.*"):
        if arrival["method"] in SAFE_METHODS:
            continue
        mine = (it for it in left if it.url.endswith(arrival["path"]))
        record = next((it for it in mine if it.dispatched_at.isoformat() < arrival["began_at"]), None)
        if record is None:
            lost.append(f"{arrival['method']} {arrival['path']}")
        else:
            left.remove(record)
    return lost


@pytest.mark.timeout(60 + 120 * ROUNDS)
@pytest.mark.parametrize("fault", [slow, failing])
def test_nothing_arrives_without_an_earlier_record(place: Place, fault: Callable[[random.Random], Hook]) -> None:
    arrived_count, fired_count, lost = 0, 0, []
    for seed in range(ROUNDS):
        dice = random.Random(seed)  # noqa: S311 - not for secrets
        for channel in dice.sample(HELD, len(HELD) if ROUNDS > 1 else SHORT_COUNT):
            nonce = secrets.token_hex(4)
            # What a failed write leaves in the air would keep a page that is lent again from settling.
            with place.page(alone=channel.alone or fault is failing) as (run_id, page):
                with suppress(BrowsermwError, PlaywrightError):
                    fired(channel, place, page, nonce, fault(dice))
                if fault is slow:
                    with suppress(TimeoutError):  # counted below
                        place.shop.wait_for(f"/sink/{nonce}.*", channel.arrivals, None, channel.limit_s)
            faults.arm(None)
            assert unrecorded(place, run_id, nonce) == [], f"round {seed}, {channel.name}"
            fired_count += 1
            came = bool(place.shop.arrivals(f"/sink/{nonce}.*"))
            arrived_count += came
            if fault is slow and not came:
                lost.append(f"round {seed}, {channel.name}")
    share = 0.95 if fault is slow else 0.25
    assert arrived_count >= fired_count * share, f"too little arrived to prove anything; missing: {lost}"
