"""Who is admitted: each rule, and which rule speaks first."""

from __future__ import annotations

from itertools import product

import pytest

from browsermw.protocol.admission import Refusal, Standing, refuse_action, refuse_claim, refuse_effect
from browsermw.protocol.phases import RuntimeState

EVERY_STANDING = [
    Standing(owns, runtime, doubt_count, in_flight, answered)
    for owns, runtime, doubt_count, in_flight, answered in product(
        (False, True), RuntimeState, (0, 1, 7), (None, "effect-1"), (None, "effect-2")
    )
]


@pytest.mark.parametrize("state", RuntimeState)
def test_a_run_is_claimed_only_while_the_runtime_is_running(state: RuntimeState) -> None:
    assert refuse_claim(state) is (None if state is RuntimeState.RUNNING else Refusal.HELD)


def test_the_first_rule_that_refuses_an_effect_names_the_reason() -> None:
    for standing in EVERY_STANDING:
        rules = [
            (not standing.owns, Refusal.SUPERSEDED),
            (standing.same_in_flight is not None, Refusal.IN_FLIGHT_DUPLICATE),
            (standing.doubt_count > 0, Refusal.QUARANTINED),
            (standing.same_answered is not None, Refusal.ALREADY_ANSWERED),
            (standing.runtime is not RuntimeState.RUNNING, Refusal.HELD),
        ]
        assert refuse_effect(standing) is next((refusal for applies, refusal in rules if applies), None), standing


@pytest.mark.parametrize("reads_only", [False, True])
def test_the_first_rule_that_refuses_an_action_names_the_reason(reads_only: bool) -> None:
    for standing in EVERY_STANDING:
        rules = [
            (not standing.owns, Refusal.SUPERSEDED),
            (standing.runtime is not RuntimeState.RUNNING, Refusal.HELD),
            (standing.doubt_count > 0 and not reads_only, Refusal.QUARANTINED),
        ]
        expected = next((refusal for applies, refusal in rules if applies), None)
        assert refuse_action(standing, reads_only=reads_only) is expected, standing


def test_an_effect_passes_only_with_ownership_a_running_runtime_no_doubt_and_no_twin() -> None:
    passing = [standing for standing in EVERY_STANDING if refuse_effect(standing) is None]
    assert passing == [Standing(owns=True, runtime=RuntimeState.RUNNING)]


def test_a_read_passes_in_quarantine_and_a_click_does_not() -> None:
    doubted = Standing(owns=True, runtime=RuntimeState.RUNNING, doubt_count=1)
    assert refuse_action(doubted, reads_only=True) is None
    assert refuse_action(doubted, reads_only=False) is Refusal.QUARANTINED


def test_whoever_lost_the_run_is_told_so_whatever_else_is_wrong() -> None:
    lost = Standing(False, RuntimeState.DRAINING, 3, "effect-1", "effect-2")
    assert refuse_effect(lost) is Refusal.SUPERSEDED
    assert refuse_action(lost, reads_only=True) is Refusal.SUPERSEDED
