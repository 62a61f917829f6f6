"""Fires a channel and measures what became of it: the server's count against the ledger's records.

The tests and ``browsermw doctor`` call ``measure`` for one channel after another. The verdict rests on what arrived at
the shop; the ledger alone is never believed.
"""

from __future__ import annotations

import secrets
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from playwright.sync_api import Error as PlaywrightError

from browsermw.errors import BrowsermwError
from browsermw.protocol.effect_rules import SAFE_METHODS, SOCKET
from browsermw.protocol.phases import Phase
from browsermw.testing.channels.firing import Stage
from browsermw.testing.channels.states import State

if TYPE_CHECKING:
    from collections.abc import Sequence

    from playwright.sync_api import Page

    from browsermw.models import Effect
    from browsermw.testing.channels.place import Place
    from browsermw.testing.channels.table import Channel

_NOT_SENT = frozenset({Phase.REFUSED, Phase.ABANDONED})


@dataclass(frozen=True)
class Measured:
    """What became of one channel.

    Attributes:
        state: Its state; ``None`` when nothing arrived, nothing was refused, and the page had no word about it.
        evidence: What arrived, what is on record, and what the firing raised, for people.
        took_s: How long it took.
    """

    state: State | None
    evidence: str
    took_s: float


def measure(channel: Channel, place: Place) -> Measured:
    """Fire a channel once and say what became of it."""
    started_s = time.monotonic()
    nonce = secrets.token_hex(4)
    sinks = f"/sink/{nonce}.*"
    with place.page(alone=channel.alone) as (run_id, page):
        raised = _fire(channel, page, place.shop.url, nonce)
        _await_arrivals(channel, place, sinks)
    arrivals = place.shop.arrivals(sinks)
    effects = [
        effect
        for action in place.mw.ledger_call("actions", run_id)
        for effect in action.effects
        if f"/sink/{nonce}." in effect.url
    ]
    took_s = round(time.monotonic() - started_s, 2)
    return Measured(judge(arrivals, effects), _evidence(arrivals, effects, raised), took_s)


def _fire(channel: Channel, page: Page, shop_url: str, nonce: str) -> str:
    try:
        page.goto(f"{shop_url}/channels/{channel.name}?nonce={nonce}")
        page.wait_for_selector("body[data-ready]", state="attached")
        channel.fire(Stage(page, f"{shop_url}/sink/{nonce}.{channel.name}"))
    except (BrowsermwError, PlaywrightError) as error:
        return f"{type(error).__name__}: {str(error).splitlines()[0]}"
    return ""


def _await_arrivals(channel: Channel, place: Place, sinks: str) -> None:
    """Wait for what must arrive; whatever else comes of it is seen in the count."""
    with ThreadPoolExecutor(1) as aside:
        wait = aside.submit(place.shop.wait_for, sinks, channel.arrivals, None, channel.limit_s)
        with suppress(TimeoutError):
            place.wait(wait)


def judge(arrivals: Sequence[dict[str, Any]], effects: Sequence[Effect]) -> State | None:
    """Say what arrivals at the server and records in the ledger mean together."""
    sent = [arrival for arrival in arrivals if arrival["method"] not in SAFE_METHODS]
    if sent:
        return _covered(sent, effects)
    if any(effect.phase is Phase.REFUSED for effect in effects):
        return State.REFUSED
    if any(arrival["path"].endswith(".denied") for arrival in arrivals):
        return State.CANNOT_LEAVE
    if not arrivals:
        return None
    return State.WRITE_AHEAD if effects else State.NO_EFFECT


def _covered(sent: Sequence[dict[str, Any]], effects: Sequence[Effect]) -> State:
    armed = False
    # A record that says "not sent" does not cover what arrived.
    left = sorted((it for it in effects if it.phase not in _NOT_SENT), key=lambda it: it.dispatched_at)
    for arrival in sorted(sent, key=lambda it: str(it["began_at"])):
        effect = next((it for it in left if _precedes(it, arrival)), None)
        if effect is None:
            return State.NOT_COVERED
        if effect.channel == SOCKET:
            armed = True  # one record stands for all the frames that followed the click
        else:
            left.remove(effect)
    return State.ARMED if armed else State.WRITE_AHEAD


def _precedes(effect: Effect, arrival: dict[str, Any]) -> bool:
    same = effect.url.endswith(arrival["path"])
    return same and effect.dispatched_at < datetime.fromisoformat(arrival["began_at"])


def _evidence(arrivals: Sequence[dict[str, Any]], effects: Sequence[Effect], raised: str) -> str:
    arrived = ", ".join(f"{it['method']} {it['path'].partition('.')[2]}" for it in arrivals) or "nothing"
    recorded = ", ".join(f"{it.method} {it.url.rpartition('.')[2]} {it.phase} ({it.channel})" for it in effects)
    return f"arrived: {arrived}; on record: {recorded or 'nothing'}" + (f"; raised {raised}" if raised else "")
