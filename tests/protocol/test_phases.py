"""The phase tables: what they allow, what they refuse, and that they hold all that live effects can bring about."""

from __future__ import annotations

from collections import deque
from itertools import combinations_with_replacement, product
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from browsermw.errors import IllegalTransition
from browsermw.protocol.phases import (
    ACTION_STEPS,
    EFFECT_STEPS,
    IN_DOUBT_PHASES,
    OPEN_PHASES,
    STEPS_OF,
    Phase,
    RunPhase,
    RuntimeState,
    action_phase,
    check_step,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from enum import StrEnum

    from hypothesis.strategies import DataObject

PHASES_OF: dict[str, type[StrEnum]] = {"action": Phase, "effect": Phase, "run": RunPhase, "runtime": RuntimeState}
EVERY_PAIR = [
    (kind, old, new) for kind, phases in PHASES_OF.items() for old, new in product([None, *phases], list(phases))
]
LEFT_OR_MAY = {Phase.DISPATCHED, Phase.ACKNOWLEDGED, Phase.OBSERVED, Phase.NEEDS_REVIEW}
EFFECT_PHASES = [
    Phase.DISPATCHED,
    Phase.ACKNOWLEDGED,
    Phase.OBSERVED,
    Phase.NEEDS_REVIEW,
    Phase.ABANDONED,
    Phase.REFUSED,
]


@pytest.mark.parametrize(("kind", "old", "new"), EVERY_PAIR)
def test_a_step_is_allowed_only_if_its_table_has_it(kind: str, old: StrEnum | None, new: StrEnum) -> None:
    if (old, new) in STEPS_OF[kind]:
        assert check_step(kind, old, new) == STEPS_OF[kind][old, new]
        return
    with pytest.raises(IllegalTransition) as refused:
        check_step(kind, old, new)
    message = str(refused.value)
    assert message.startswith("Nothing was changed")
    assert f"{old or 'new'} -> {new}" in message
    assert kind in message
    assert refused.value.facts == {"kind": kind, "from": old and str(old), "to": str(new)}


@pytest.mark.parametrize("kind", STEPS_OF)
def test_every_step_says_why_in_words_of_its_own_line(kind: str) -> None:
    for reason in STEPS_OF[kind].values():
        assert reason.strip() == reason != ""
        assert "|" not in reason
        assert "\n" not in reason


@pytest.mark.parametrize("kind", STEPS_OF)
def test_every_phase_that_a_table_names_can_be_reached_from_nothing(kind: str) -> None:
    steps = STEPS_OF[kind]
    reached: set[StrEnum | None] = {None}
    while more := {new for old, new in steps if old in reached} - reached:
        reached |= more
    named = {phase for pair in steps for phase in pair}
    assert reached == named
    if kind != "effect":  # an effect has no PLANNED: before DISPATCHED it is part of its action's intent
        assert reached == {None, *PHASES_OF[kind]}


def test_an_effect_that_was_observed_abandoned_or_refused_has_reached_its_end() -> None:
    assert {old for old, _ in EFFECT_STEPS}.isdisjoint({Phase.OBSERVED, Phase.ABANDONED, Phase.REFUSED})


def test_an_effect_that_was_answered_or_doubted_is_never_dispatched_again() -> None:
    assert [old for old, new in EFFECT_STEPS if new is Phase.DISPATCHED] == [None]


def test_a_settled_action_changes_only_by_a_further_effect_of_a_call_that_still_runs() -> None:
    assert [pair for pair in ACTION_STEPS if pair[0] in SETTLED] == [(Phase.ABANDONED, Phase.DISPATCHED)]


def test_no_action_goes_back_to_planned() -> None:
    assert [old for old, new in ACTION_STEPS if new is Phase.PLANNED] == [None]


@pytest.mark.parametrize("kind", ["run", "runtime"])
def test_a_run_and_a_runtime_can_always_be_taken_up_again(kind: str) -> None:
    steps = STEPS_OF[kind]
    start = {"run": RunPhase.ACTIVE, "runtime": RuntimeState.RUNNING}[kind]
    reaches_start: set[StrEnum] = {start}
    while more := {old for old, new in steps if old is not None and new in reaches_start} - reaches_start:
        reaches_start |= more
    assert reaches_start == set(PHASES_OF[kind])


def test_every_live_runtime_state_may_come_into_doubt() -> None:
    for state in set(RuntimeState) - {RuntimeState.NEEDS_REVIEW}:
        check_step("runtime", state, RuntimeState.NEEDS_REVIEW)


def test_what_a_restart_looks_at_is_what_can_still_change_by_itself() -> None:
    assert {old for old, _ in EFFECT_STEPS if old is not None} <= OPEN_PHASES
    assert {Phase.DISPATCHED, Phase.NEEDS_REVIEW} == IN_DOUBT_PHASES
    assert IN_DOUBT_PHASES < OPEN_PHASES


EVERY_SMALL_COMBINATION = [
    (effects, closed)
    for size in range(5)
    for effects in combinations_with_replacement(EFFECT_PHASES, size)
    for closed in (False, True)
]


def test_the_phase_of_an_action_follows_from_its_effects() -> None:
    for effects, closed in EVERY_SMALL_COMBINATION:
        assert action_phase(effects, closed=closed) is expected_phase(effects, closed=closed), (effects, closed)


def expected_phase(effects: tuple[Phase, ...], *, closed: bool) -> Phase:
    """The same rule said the other way round, from the least that may be claimed to the most."""
    left = LEFT_OR_MAY.intersection(effects)
    if not left:
        if Phase.ABANDONED in effects:
            return Phase.ABANDONED
        if not closed:
            return Phase.PLANNED
        return Phase.REFUSED if effects else Phase.OBSERVED
    if left == {Phase.OBSERVED}:
        return Phase.OBSERVED if closed else Phase.ACKNOWLEDGED
    if left <= {Phase.ACKNOWLEDGED, Phase.OBSERVED}:
        return Phase.ACKNOWLEDGED
    return Phase.NEEDS_REVIEW if Phase.NEEDS_REVIEW in left else Phase.DISPATCHED


def test_an_action_with_an_effect_in_doubt_is_never_called_done() -> None:
    for effects, closed in EVERY_SMALL_COMBINATION:
        if IN_DOUBT_PHASES.intersection(effects):
            assert action_phase(effects, closed=closed) in IN_DOUBT_PHASES


def test_the_order_of_the_effects_does_not_matter() -> None:
    for effects in product(EFFECT_PHASES, repeat=3):
        for closed in (False, True):
            assert action_phase(effects, closed=closed) is action_phase(sorted(effects), closed=closed)


SETTLED = {Phase.OBSERVED, Phase.ABANDONED, Phase.REFUSED}

# A model of a live action: what the gate, the answers, the hook and the verdicts do to its effects.
Live = tuple[tuple[Phase, ...], bool]
LIVE_ANSWERS = {
    Phase.DISPATCHED: (Phase.ACKNOWLEDGED, Phase.ABANDONED, Phase.NEEDS_REVIEW),
    Phase.ACKNOWLEDGED: (Phase.OBSERVED,),
    Phase.NEEDS_REVIEW: (Phase.ACKNOWLEDGED, Phase.ABANDONED),
}


def next_steps(live: Live, effect_count: int) -> Iterator[Live]:
    """All that can happen next to an action; one that has ended gets no more effects (the page has its own)."""
    effects, closed = live
    ended = closed and action_phase(effects, closed=True) in SETTLED
    if len(effects) < effect_count and not ended:
        yield (*effects, Phase.REFUSED), closed
        if Phase.NEEDS_REVIEW not in effects:  # the gate refuses effects of a run in doubt
            yield (*effects, Phase.DISPATCHED), closed
    if not closed:
        yield effects, True
        yield tuple(Phase.OBSERVED if phase is Phase.ACKNOWLEDGED else phase for phase in effects), True
    for place, phase in enumerate(effects):
        for answer in LIVE_ANSWERS.get(phase, ()):
            check_step("effect", phase, answer)
            yield (*effects[:place], answer, *effects[place + 1 :]), closed
    swept = tuple(Phase.NEEDS_REVIEW if phase is Phase.DISPATCHED else phase for phase in effects)
    if swept != effects:  # the run is left, or a new boot sweeps it
        yield swept, closed


def check_action_step(before: Live, after: Live, old: Phase) -> Phase:
    new = action_phase(after[0], closed=after[1])
    assert new is old or (old, new) in ACTION_STEPS, f"{before} -> {after}: {old} -> {new}"
    return new


def test_all_that_live_effects_can_bring_about_is_in_the_action_table() -> None:
    start: Live = ((), False)
    seen, waiting = {start}, deque([start])
    used: set[tuple[Phase, Phase]] = set()
    while waiting:
        live = waiting.popleft()
        old = action_phase(live[0], closed=live[1])
        for after in next_steps(live, effect_count=4):
            used.add((old, check_action_step(live, after, old)))
            key = (tuple(sorted(after[0])), after[1])
            if key not in seen:
                seen.add(key)
                waiting.append(key)
    by_opinion = {
        (None, Phase.PLANNED),
        (Phase.PLANNED, Phase.ABANDONED),  # the call failed, or the boot died, without any effect
        (Phase.PLANNED, Phase.NEEDS_REVIEW),  # the boot died on a weak wire
        (Phase.DISPATCHED, Phase.REFUSED),  # armed beside a WebSocket, and no frame followed
        (Phase.ACKNOWLEDGED, Phase.NEEDS_REVIEW),  # a further effect was dispatched and doubted in one transaction
    }
    assert {pair for pair in used if pair[0] is not pair[1]} == set(ACTION_STEPS) - by_opinion


@given(st.data())
def test_no_story_of_one_action_asks_for_a_step_that_the_table_lacks(data: DataObject) -> None:
    live: Live = ((), False)
    phase = Phase.PLANNED
    for _ in range(data.draw(st.integers(1, 25), label="length")):
        choices = list(next_steps(live, effect_count=8))
        if not choices:
            break
        after = data.draw(st.sampled_from(choices), label="next")
        phase = check_action_step(live, after, phase)
        live = after
