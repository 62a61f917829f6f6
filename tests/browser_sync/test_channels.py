"""Every channel on every engine that works: what became of it at the server is what the table expects.

The suite itself is the package's (``browsermw.testing.channels``), because ``browsermw doctor`` runs it too. An
engine's channels share one browser, and most of them a page.
"""

from __future__ import annotations

from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from browsermw.models import Effect
from browsermw.protocol.phases import Phase
from browsermw.testing.channels import CHANNELS, Channel, Engine, Place, State, expected, measure, opened
from browsermw.testing.channels.expected import EXCEPTIONS
from browsermw.testing.channels.measuring import judge

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Playwright

    from tests.shop_site import Shop

ENGINES = tuple(Engine)


@pytest.fixture(scope="module")
def place(
    request: pytest.FixtureRequest, playwright: Playwright, _http_shop: Shop, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Place]:
    with ExitStack() as stack:
        yield stack.enter_context(opened(request.param, playwright, _http_shop, tmp_path_factory.mktemp("channels")))


@pytest.mark.parametrize("channel", CHANNELS, ids=lambda channel: channel.name)
@pytest.mark.parametrize("place", ENGINES, indirect=True, ids=str)
def test_a_channel_is_in_the_state_that_is_expected(
    place: Place, channel: Channel, request: pytest.FixtureRequest
) -> None:
    engine: Engine = request.node.callspec.params["place"]
    measured = measure(channel, place)
    assert measured.state is expected(channel.name, engine), measured.evidence


def test_every_exception_names_a_channel() -> None:
    assert set(EXCEPTIONS) <= {channel.name for channel in CHANNELS}
    assert len({channel.name for channel in CHANNELS}) == len(CHANNELS)


NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def arrival(method: str = "POST", path: str = "/sink/aa.x", after_s: float = 1) -> dict[str, Any]:
    return {"method": method, "path": path, "began_at": (NOON + timedelta(seconds=after_s)).isoformat()}


def effect(phase: Phase = Phase.OBSERVED, channel: str = "Fetch", path: str = "/sink/aa.x") -> Effect:
    return Effect(
        effect_id="e-1",
        run_id="r",
        action_seq=1,
        ordinal=1,
        phase=phase,
        method="POST",
        url=f"http://127.0.0.1:1{path}",
        fingerprint="",
        channel=channel,
        outcome=None,
        status=None,
        external_request_id=None,
        location=None,
        dispatched_at=NOON,
        acknowledged_at=None,
        reason=None,
    )


@pytest.mark.parametrize(
    ("arrivals", "effects", "state"),
    [
        ([arrival()], [effect()], State.WRITE_AHEAD),
        ([arrival()], [], State.NOT_COVERED),
        ([arrival(after_s=-1)], [effect()], State.NOT_COVERED),
        ([arrival()], [effect(Phase.REFUSED)], State.NOT_COVERED),
        ([arrival()], [effect(path="/sink/aa.other")], State.NOT_COVERED),
        ([arrival(), arrival(after_s=2)], [effect()], State.NOT_COVERED),
        ([arrival(), arrival(after_s=2)], [effect(), effect()], State.WRITE_AHEAD),
        ([arrival("GET"), arrival("FRAME")], [effect(channel="WebSocket")], State.ARMED),
        ([arrival("FRAME"), arrival("FRAME", after_s=2)], [effect(channel="WebSocket")], State.ARMED),
        ([arrival("FRAME", after_s=-1)], [effect(channel="WebSocket")], State.NOT_COVERED),
        ([arrival("DATAGRAM")], [], State.NOT_COVERED),
        ([], [effect(Phase.REFUSED)], State.REFUSED),
        ([arrival("GET", "/sink/aa.denied")], [], State.CANNOT_LEAVE),
        ([arrival("GET")], [], State.NO_EFFECT),
        ([arrival("GET")], [effect()], State.WRITE_AHEAD),
        ([], [effect()], None),
        ([], [], None),
    ],
)
def test_arrivals_and_records_are_judged_together(
    arrivals: list[dict[str, Any]], effects: list[Effect], state: State | None
) -> None:
    assert judge(arrivals, effects) is state
