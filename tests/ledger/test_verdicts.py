"""How doubts are settled, on both databases."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import pytest

from browsermw.errors import IllegalTransition
from browsermw.ledger import open_ledger
from browsermw.models import Verdict
from browsermw.protocol.outcome import Outcome
from browsermw.protocol.phases import Phase, RunPhase

if TYPE_CHECKING:
    from collections.abc import Callable

    Make = Callable[..., Any]


def in_doubt(it: Any) -> Any:
    it.claim()
    return it.answer(it.send(it.plan()), Outcome.UNKNOWN, reason="connection reset")


@pytest.mark.parametrize(("verdict", "phase"), [("committed", Phase.ACKNOWLEDGED), ("not_committed", Phase.ABANDONED)])
def test_a_verdict_settles_effect_and_action(agent: Make, verdict: str, phase: Phase) -> None:
    it = agent()
    effect = in_doubt(it)
    (doubt,) = it.ledger.quarantined("invoice-8472")
    assert (doubt.quarantine_id, doubt.reason) == (effect.effect_id, "connection reset")
    it.settle(effect.effect_id, verdict)
    assert it.ledger.quarantined() == ()
    (action,) = it.ledger.actions("invoice-8472")
    assert (action.phase, action.effects[0].phase) == (phase, phase)
    settled = it.ledger.quarantine(effect.effect_id)
    assert (settled.since, settled.reason) == (doubt.since, "connection reset")


def test_the_same_request_may_be_sent_again_after_not_committed_only(agent: Make) -> None:
    it = agent()
    effect = in_doubt(it)
    it.settle(effect.effect_id, "not_committed")
    assert it.dispatch(it.plan()).effect is not None


def test_unknown_adds_evidence_and_changes_nothing(agent: Make) -> None:
    it = agent()
    effect = in_doubt(it)
    it.settle(effect.effect_id, "unknown", "HttpLookup")
    it.settle(effect.effect_id, "committed")
    assert [(verdict.verdict, verdict.source) for verdict, _ in it.ledger.verdicts(effect.effect_id)] == [
        ("unknown", "HttpLookup"),
        ("committed", "person:alice"),
    ]


def test_the_first_verdict_stands(agent: Make) -> None:
    it = agent()
    effect = in_doubt(it)
    it.settle(effect.effect_id, "committed")
    with pytest.raises(IllegalTransition, match=r"settled already: committed, by person:alice at 20.*looked it up"):
        it.settle(effect.effect_id, "not_committed", "person:bob")
    assert it.ledger.actions("invoice-8472")[0].effects[0].phase is Phase.ACKNOWLEDGED


def test_of_two_reviewers_at_once_one_settles_it(agent: Make, url: str) -> None:
    effect = in_doubt(agent())
    start = threading.Barrier(6)
    outcomes: list[object] = []

    def review(number: int) -> None:
        ledger = open_ledger(url)
        verdict = Verdict(
            verdict="committed" if number % 2 else "not_committed", source=f"person:{number}", note="seen"
        )
        start.wait()
        try:
            outcomes.append(ledger.resolve(effect.effect_id, verdict).effect)
        except IllegalTransition as error:
            outcomes.append(error)
        ledger.close()

    threads = [threading.Thread(target=review, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(isinstance(outcome, IllegalTransition) for outcome in outcomes) == 5


def test_nothing_of_that_id_is_a_key_error(agent: Make) -> None:
    it = agent()
    it.claim()
    action = it.plan()
    effect = it.send(action)
    for quarantine_id in ("nothing", action.action_id, effect.effect_id):
        with pytest.raises(KeyError):
            it.settle(quarantine_id, "committed")


def test_the_last_doubt_of_a_run_that_nobody_owns_suspends_it(agent: Make) -> None:
    it = agent()
    it.claim()
    first, second = it.send(it.plan(), "f1"), it.send(it.plan(), "f2")
    it.ledger.release_run(it.grant, failed=False)
    assert it.ledger.run("invoice-8472").in_doubt_count == 2
    it.settle(first.effect_id, "committed")
    assert it.ledger.run("invoice-8472").phase is RunPhase.NEEDS_REVIEW
    it.settle(second.effect_id, "not_committed")
    assert it.ledger.run("invoice-8472").phase is RunPhase.SUSPENDED


def test_an_action_with_a_second_doubt_stays_in_doubt(agent: Make) -> None:
    it = agent()
    it.claim()
    action = it.plan()
    first, second = it.send(action, "f1"), it.send(action, "f2")
    it.answer(first, Outcome.UNKNOWN)
    it.settle(first.effect_id, "not_committed")
    assert it.ledger.actions("invoice-8472")[0].phase is Phase.DISPATCHED
    it.answer(second, Outcome.UNKNOWN)
    assert it.ledger.actions("invoice-8472")[0].phase is Phase.NEEDS_REVIEW


def test_a_late_answer_after_the_verdict_is_kept_as_evidence(agent: Make) -> None:
    it = agent()
    effect = in_doubt(it)
    it.settle(effect.effect_id, "not_committed")
    assert it.answer(effect, Outcome.ACCEPTED, status=201).phase is Phase.ABANDONED
    assert [verdict.source for verdict, _ in it.ledger.verdicts(effect.effect_id)] == ["person:alice", "late answer"]
