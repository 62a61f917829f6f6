"""The life of a click, on both databases."""

from __future__ import annotations

import uuid
from datetime import UTC
from typing import TYPE_CHECKING, Any

import pytest

from browsermw.errors import Held, IllegalTransition, Quarantined, Superseded
from browsermw.ledger.contract import ActionPlan, Sighting
from browsermw.protocol.admission import Refusal
from browsermw.protocol.outcome import Outcome
from browsermw.protocol.phases import Phase, RunPhase
from browsermw.protocol.recovery import Wire

if TYPE_CHECKING:
    from collections.abc import Callable

    Make = Callable[..., Any]
    Sql = Callable[[str], list[Any]]


def test_a_click_with_one_answered_effect_ends_observed(agent: Make) -> None:
    it = agent()
    it.claim()
    action = it.plan()
    assert (action.seq, action.phase) == (1, Phase.PLANNED)
    effect = it.send(action)
    assert (effect.phase, effect.ordinal) == (Phase.DISPATCHED, 1)
    answered = it.answer(effect, status=201, external_request_id="x-order-id=9", location="/orders/9")
    assert (answered.phase, answered.outcome, answered.status) == (Phase.ACKNOWLEDGED, Outcome.ACCEPTED, 201)
    closed = it.close(action)
    assert closed.phase is Phase.OBSERVED
    assert [stored.phase for stored in closed.effects] == [Phase.OBSERVED]
    assert it.ledger.actions("invoice-8472") == (closed,)


def test_each_step_is_one_line_of_the_log_with_boot_and_fence(agent: Make) -> None:
    it = agent()
    it.claim()
    action = it.plan()
    it.answer(it.send(action))
    it.close(action)
    lines = it.ledger.transitions("invoice-8472")
    assert [(line.entity, line.old, line.new) for line in lines] == [
        ("run", None, "ACTIVE"),
        ("action", None, "PLANNED"),
        ("effect", None, "DISPATCHED"),
        ("action", "PLANNED", "DISPATCHED"),
        ("effect", "DISPATCHED", "ACKNOWLEDGED"),
        ("action", "DISPATCHED", "ACKNOWLEDGED"),
        ("effect", "ACKNOWLEDGED", "OBSERVED"),
        ("action", "ACKNOWLEDGED", "OBSERVED"),
    ]
    assert {(line.boot_id, line.fence) for line in lines} == {(it.boot_id, 1)}


def test_checkpoints_chain_and_name_the_last_submission(agent: Make) -> None:
    it = agent()
    it.claim()
    action = it.plan()
    it.answer(it.send(action), external_request_id="x-order-id=9")
    it.close(action)
    before, after = it.ledger.checkpoints("invoice-8472")
    assert (before.moment, before.last_action_seq, before.external_request_id) == ("before", None, None)
    assert (after.moment, after.last_action_seq, after.external_request_id) == ("after", 1, "x-order-id=9")
    assert before.digest != after.digest
    assert after.at.tzinfo is UTC
    assert before.at < after.at


def test_text_that_a_database_cannot_hold_is_stored_and_checked_all_the_same(agent: Make) -> None:
    it = agent()
    it.claim()
    plan = ActionPlan(uuid.uuid4().hex, "click", "Page.click", "a\0b\ud800", Wire.SEALED)
    it.ledger.plan_action(it.grant, plan, Sighting(url="https://shop.test/\0\udfff\u00e9\U0001f600"))
    it.die()
    after = agent()
    report = after.claim().resume
    assert report.last_checkpoint.url == "https://shop.test/\ufffd\ufffd\u00e9\U0001f600"
    assert report.never_left[0].target == "a\ufffdb\ufffd"


def test_an_action_without_effect_is_observed_or_abandoned_if_it_failed(agent: Make) -> None:
    it = agent()
    it.claim()
    assert it.close(it.plan()).phase is Phase.OBSERVED
    failed = it.close(it.plan(), failed="the button is gone")
    assert (failed.phase, failed.reason) == (Phase.ABANDONED, "the button is gone")


def test_a_failed_action_with_an_answered_effect_leaves_the_effect_acknowledged(agent: Make) -> None:
    it = agent()
    it.claim()
    action = it.plan()
    it.answer(it.send(action))
    closed = it.close(action, failed="timed out")
    assert closed.phase is Phase.ACKNOWLEDGED
    assert closed.effects[0].phase is Phase.ACKNOWLEDGED
    assert it.ledger.mark_observed(it.grant, closed.effects[0].effect_id).phase is Phase.OBSERVED
    assert it.ledger.actions("invoice-8472")[0].phase is Phase.OBSERVED


def test_an_answer_after_the_closing_is_observed_by_the_next_action_s_checkpoint(agent: Make) -> None:
    it = agent()
    it.claim()
    action = it.plan()
    effect = it.send(action)
    assert it.close(action).phase is Phase.DISPATCHED
    it.answer(effect)
    assert it.ledger.actions("invoice-8472")[0].phase is Phase.ACKNOWLEDGED
    it.plan()
    first = it.ledger.actions("invoice-8472")[0]
    assert (first.phase, first.effects[0].phase) == (Phase.OBSERVED, Phase.OBSERVED)


def test_an_answer_after_the_closing_is_unread_by_the_next_boot(agent: Make) -> None:
    it = agent()
    it.claim()
    action = it.plan()
    effect = it.send(action)
    it.close(action)
    it.answer(effect)
    it.ledger.release_run(it.grant, failed=True)
    resume = it.claim().resume
    assert resume is not None
    assert [unread.effect_id for unread in resume.answered_unread] == [effect.effect_id]
    it.plan()
    assert it.ledger.actions("invoice-8472")[0].phase is Phase.ACKNOWLEDGED


def test_a_run_left_without_an_error_has_observed_its_answers(agent: Make) -> None:
    it = agent()
    it.claim()
    action = it.plan()
    effect = it.send(action)
    it.close(action)
    it.answer(effect)
    it.ledger.release_run(it.grant, failed=False)
    assert it.ledger.actions("invoice-8472")[0].phase is Phase.OBSERVED


def test_an_action_is_closed_once(agent: Make) -> None:
    it = agent()
    it.claim()
    action = it.plan()
    it.close(action)
    with pytest.raises(IllegalTransition, match="closed at"):
        it.close(action)
    assert len(it.ledger.checkpoints("invoice-8472")) == 2


def test_an_ended_action_takes_no_further_effect(agent: Make) -> None:
    it = agent()
    it.claim()
    action = it.plan()
    it.close(action)
    with pytest.raises(IllegalTransition, match="has ended as OBSERVED"):
        it.dispatch(action)
    assert it.ledger.actions("invoice-8472")[0].effects == ()


def test_an_id_that_exists_changes_nothing(agent: Make) -> None:
    it = agent()
    it.claim()
    action = it.plan()
    plan = ActionPlan(action.action_id, "click", "Page.click", "#send", Wire.SEALED)
    with pytest.raises(IllegalTransition, match="exists already"):
        it.ledger.plan_action(it.grant, plan, Sighting())
    assert it.ledger.run("invoice-8472").action_count == 1


def test_a_request_that_was_not_sent_may_be_sent_again_within_the_action(agent: Make) -> None:
    it = agent()
    it.claim()
    action = it.plan()
    it.dispatch(action, refusal=Refusal.REPLAYED_NAVIGATION)
    assert it.answer(it.send(action), Outcome.NOT_SENT).phase is Phase.ABANDONED
    it.answer(it.send(action))
    closed = it.close(action)
    assert [effect.phase for effect in closed.effects] == [Phase.REFUSED, Phase.ABANDONED, Phase.OBSERVED]
    assert closed.phase is Phase.OBSERVED


def test_the_same_request_is_refused_while_the_first_is_unanswered(agent: Make) -> None:
    it = agent()
    it.claim()
    action = it.plan()
    first = it.send(action)
    second = it.dispatch(action)
    assert (second.effect, second.refusal, second.rival) == (None, Refusal.IN_FLIGHT_DUPLICATE, first)
    it.answer(first)
    assert it.dispatch(action).effect is not None
    stored = it.ledger.actions("invoice-8472")[0].effects
    assert [(effect.phase, effect.reason) for effect in stored] == [
        (Phase.ACKNOWLEDGED, None),
        (Phase.REFUSED, "in_flight_duplicate"),
        (Phase.DISPATCHED, None),
    ]


def test_redirect_hops_are_no_duplicates_of_their_chain(agent: Make) -> None:
    it = agent()
    it.claim()
    action = it.plan()
    first = it.send(action)
    second = it.send(action, continues=first.effect_id)
    third = it.send(action, continues=second.effect_id)
    assert third.ordinal == 3
    assert it.dispatch(action).refusal is Refusal.IN_FLIGHT_DUPLICATE


def test_a_refused_only_effect_leaves_the_action_planned_until_it_is_closed(agent: Make) -> None:
    it = agent()
    it.claim()
    action = it.plan()
    dispatch = it.dispatch(action, refusal=Refusal.REPLAYED_NAVIGATION)
    assert (dispatch.effect, dispatch.refusal) == (None, Refusal.REPLAYED_NAVIGATION)
    assert it.ledger.actions("invoice-8472")[0].phase is Phase.PLANNED
    assert it.close(action).phase is Phase.REFUSED


def test_a_doubt_makes_the_run_read_only(agent: Make) -> None:
    it = agent()
    it.claim()
    action = it.plan()
    effect = it.answer(it.send(action), Outcome.UNKNOWN, reason="connection reset")
    assert (effect.phase, effect.reason) == (Phase.NEEDS_REVIEW, "connection reset")
    with pytest.raises(Quarantined, match=effect.effect_id) as caught:
        it.plan()
    assert caught.value.facts["quarantine_ids"] == [effect.effect_id]
    assert it.plan(reads_only=True).phase is Phase.PLANNED
    other = it.dispatch(action, "f2")
    assert (other.refusal, other.rival) == (Refusal.QUARANTINED, effect)
    assert it.dispatch(action, "f1").refusal is Refusal.IN_FLIGHT_DUPLICATE


def test_a_hold_admits_nothing(agent: Make, sql: Sql) -> None:
    it = agent()
    it.claim()
    action = it.plan()
    sql("UPDATE runtimes SET state = 'DRAINING'")
    with pytest.raises(Held, match="DRAINING"):
        it.plan()
    assert it.dispatch(action).refusal is Refusal.HELD
    with pytest.raises(Held):
        it.claim("another-run")
    assert [run.run_id for run in it.ledger.runs()] == ["invoice-8472"]


def test_nothing_is_written_after_the_run_was_released(agent: Make) -> None:
    it = agent()
    it.claim()
    action = it.plan()
    effect = it.send(action)
    assert it.ledger.release_run(it.grant, failed=False) is RunPhase.NEEDS_REVIEW
    assert it.dispatch(action, "f2").refusal is Refusal.SUPERSEDED
    for call in (it.plan, lambda: it.answer(effect), lambda: it.close(action)):
        with pytest.raises(Superseded):
            call()
    assert len(it.ledger.actions("invoice-8472")[0].effects) == 1


@pytest.mark.parametrize(("failed", "phase"), [(False, RunPhase.FINISHED), (True, RunPhase.SUSPENDED)])
def test_a_run_left_without_doubt_is_finished_or_suspended(agent: Make, failed: bool, phase: RunPhase) -> None:
    it = agent()
    it.claim()
    it.plan()
    assert it.ledger.release_run(it.grant, failed=failed) is phase
    summary = it.ledger.run("invoice-8472")
    assert (summary.phase, summary.owner, summary.runtime) == (phase, None, "agent-7")
    assert it.ledger.actions("invoice-8472")[0].phase is Phase.ABANDONED
    assert it.claim().grant.fence == 2


def test_the_weakest_wire_is_kept(agent: Make) -> None:
    it = agent()
    it.claim()
    for wire in (Wire.SEALED, Wire.ROUTED, Wire.ATTACHED):
        it.ledger.set_wire(it.grant, wire)
    assert it.ledger.run("invoice-8472").wire is Wire.ROUTED


def test_a_late_answer_is_evidence_and_changes_nothing(agent: Make) -> None:
    it = agent()
    it.claim()
    effect = it.answer(it.send(it.plan()), Outcome.UNKNOWN)
    late = it.answer(effect, Outcome.ACCEPTED, status=201, external_request_id="x-order-id=9")
    assert late == effect
    ((evidence, _at),) = it.ledger.verdicts(effect.effect_id)
    assert (evidence.verdict, evidence.source, evidence.external_request_id) == (
        "unknown",
        "late answer",
        "x-order-id=9",
    )
    assert "status 201" in evidence.note


def test_the_idempotency_key_belongs_to_the_chain_of_hops_and_the_pages_own_is_kept(agent: Make) -> None:
    it = agent()
    it.claim()
    action = it.plan()
    first = it.send(action, "f1", key_header="Idempotency-Key")
    it.answer(first, status=307)
    hop = it.send(action, "f2", key_header="Idempotency-Key", continues=first.effect_id)
    own = it.send(action, "f3", key_header="Idempotency-Key", own_key="the page's\0")
    assert (first.idempotency_key, hop.idempotency_key) == (first.effect_id, first.effect_id)
    assert own.idempotency_key == "the page's\ufffd"
    assert it.send(action, "f4").idempotency_key is None
    refused = it.dispatch(action, "f4", key_header="Idempotency-Key")
    assert refused.rival.idempotency_key is None
    (stored,) = it.ledger.actions("invoice-8472")
    assert [effect.idempotency_key for effect in stored.effects] == [
        first.effect_id,
        first.effect_id,
        "the page's\ufffd",
        None,
        None,
    ]
