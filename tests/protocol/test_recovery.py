"""What a restart makes of each record, and the difference that the wire makes."""

from __future__ import annotations

from itertools import combinations_with_replacement, product

import pytest

from browsermw.protocol.phases import ACTION_STEPS, EFFECT_STEPS, Phase, action_phase
from browsermw.protocol.recovery import Wire, classify_action, classify_effect

AFTER_THE_SWEEP = [Phase.ACKNOWLEDGED, Phase.OBSERVED, Phase.NEEDS_REVIEW, Phase.ABANDONED, Phase.REFUSED]
BOOLEANS = (False, True)
EFFECTS_UP_TO_THREE = [effects for size in range(4) for effects in combinations_with_replacement(AFTER_THE_SWEEP, size)]


@pytest.mark.parametrize("phase", Phase)
def test_only_a_dispatched_effect_changes_and_it_comes_into_doubt(phase: Phase) -> None:
    found = classify_effect(phase)
    assert found.phase is (Phase.NEEDS_REVIEW if phase is Phase.DISPATCHED else phase)
    assert found.phase is phase or (phase, found.phase) in EFFECT_STEPS
    assert found.reason


@pytest.mark.parametrize(
    ("wire", "reads_only", "expected"),
    [
        (Wire.SEALED, False, Phase.ABANDONED),
        (Wire.SEALED, True, Phase.ABANDONED),
        (Wire.ATTACHED, True, Phase.ABANDONED),
        (Wire.ROUTED, True, Phase.ABANDONED),
        (Wire.ATTACHED, False, Phase.NEEDS_REVIEW),
        (Wire.ROUTED, False, Phase.NEEDS_REVIEW),
    ],
)
def test_a_planned_action_proves_that_nothing_left_only_on_a_sealed_wire(
    wire: Wire, reads_only: bool, expected: Phase
) -> None:
    for effects, closed in product([(), (Phase.REFUSED,)], BOOLEANS):
        found = classify_action(Phase.PLANNED, wire, effects, closed=closed, reads_only=reads_only)
        assert found.phase is expected
    if expected is Phase.NEEDS_REVIEW:
        assert str(wire) in found.reason


@pytest.mark.parametrize(("wire", "closed", "reads_only"), list(product(Wire, BOOLEANS, BOOLEANS)))
def test_an_action_that_sent_something_follows_its_effects(wire: Wire, closed: bool, reads_only: bool) -> None:
    for phase, effects in product((Phase.DISPATCHED, Phase.ACKNOWLEDGED), EFFECTS_UP_TO_THREE):
        if not set(effects) - {Phase.REFUSED}:
            continue
        found = classify_action(phase, wire, effects, closed=closed, reads_only=reads_only)
        assert found.phase is action_phase(effects, closed=closed)


@pytest.mark.parametrize(("wire", "closed"), list(product(Wire, BOOLEANS)))
@pytest.mark.parametrize("effects", [(), (Phase.REFUSED,)])
def test_an_action_written_as_dispatched_without_an_effect_on_record_is_in_doubt(
    wire: Wire, effects: tuple[Phase, ...], closed: bool
) -> None:
    """Armed beside an open WebSocket: the click is DISPATCHED before it is performed."""
    found = classify_action(Phase.DISPATCHED, wire, effects, closed=closed, reads_only=False)
    assert found.phase is Phase.NEEDS_REVIEW


@pytest.mark.parametrize(("wire", "closed"), list(product(Wire, BOOLEANS)))
@pytest.mark.parametrize("effects", [(), (Phase.REFUSED,)])
def test_an_action_that_a_verdict_called_committed_stays_so_at_each_later_restart(
    wire: Wire, effects: tuple[Phase, ...], closed: bool
) -> None:
    found = classify_action(Phase.ACKNOWLEDGED, wire, effects, closed=closed, reads_only=False)
    assert found.phase is Phase.ACKNOWLEDGED


@pytest.mark.parametrize("phase", [Phase.OBSERVED, Phase.NEEDS_REVIEW, Phase.ABANDONED, Phase.REFUSED])
def test_a_settled_or_doubted_action_is_left_as_it_is(phase: Phase) -> None:
    for wire, effects, closed, reads_only in product(Wire, EFFECTS_UP_TO_THREE, BOOLEANS, BOOLEANS):
        assert classify_action(phase, wire, effects, closed=closed, reads_only=reads_only).phase is phase


def test_the_sweep_asks_only_for_steps_that_the_table_has() -> None:
    live = [Phase.DISPATCHED, *AFTER_THE_SWEEP]
    for size, closed, wire, reads_only in product(range(4), BOOLEANS, Wire, BOOLEANS):
        for effects in combinations_with_replacement(live, size):
            old = action_phase(effects, closed=closed)
            swept = [classify_effect(phase).phase for phase in effects]
            new = classify_action(old, wire, swept, closed=closed, reads_only=reads_only).phase
            assert new is old or (old, new) in ACTION_STEPS, (old, effects, new)


def test_a_second_sweep_changes_nothing() -> None:
    for phase, wire, effects, closed, reads_only in product(Phase, Wire, EFFECTS_UP_TO_THREE, BOOLEANS, BOOLEANS):
        if (
            phase is Phase.ACKNOWLEDGED
            and Phase.ABANDONED in effects
            and not {Phase.ACKNOWLEDGED, Phase.OBSERVED} & set(effects)
        ):
            continue  # no ledger holds this: an answered action has an answered effect
        once = classify_action(phase, wire, effects, closed=closed, reads_only=reads_only).phase
        twice = classify_action(once, wire, effects, closed=closed, reads_only=reads_only).phase
        assert twice is once, (phase, effects)


def test_wires_are_ranked_from_weakest_to_strongest() -> None:
    assert sorted(Wire, key=lambda wire: wire.strength) == [Wire.ROUTED, Wire.ATTACHED, Wire.SEALED]
    assert Wire("sealed") is Wire.SEALED
