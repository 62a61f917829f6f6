"""How a run changes hands, on both databases."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from browsermw.errors import RunOwned, RuntimeOwned, Superseded
from browsermw.protocol.admission import Refusal
from browsermw.protocol.outcome import Outcome
from browsermw.protocol.phases import Phase, RunPhase
from browsermw.protocol.recovery import Wire

if TYPE_CHECKING:
    from collections.abc import Callable

    Make = Callable[..., Any]
    Sql = Callable[[str], list[Any]]


def test_a_new_run_has_nothing_to_resume(agent: Make) -> None:
    it = agent()
    claim = it.claim(customer="acme")
    assert (claim.grant.fence, claim.resume) == (1, None)
    run = it.ledger.run("invoice-8472")
    assert (run.phase, run.labels, run.fence) == (RunPhase.ACTIVE, {"customer": "acme"}, 1)
    assert "host-a" in run.owner
    assert it.ledger.runtimes()[0].active_runs == ("invoice-8472",)


def test_a_live_owner_is_not_robbed(agent: Make) -> None:
    it, other = agent(), agent("agent-8")
    it.claim()
    with pytest.raises(RunOwned, match=r"runtime agent-7, pid \d+ on host-a, since 20") as caught:
        other.claim()
    assert caught.value.facts["boot_id"] == it.boot_id
    with pytest.raises(RunOwned, match="this very process"):
        it.claim()
    assert it.plan().seq == 1


def test_two_live_boots_of_one_runtime_are_refused(agent: Make) -> None:
    it = agent()
    with pytest.raises(RuntimeOwned, match=r"pid \d+ on host-a, since 20"):
        agent()
    it.ledger.close_boot(it.boot_id)
    assert agent().claim().grant.fence == 1


def test_a_dead_owner_is_taken_over_at_once_and_its_zombie_is_fenced_off(agent: Make) -> None:
    it, other = agent(), agent("agent-8")
    it.claim()
    action = it.plan()
    effect = it.send(action)
    it.die()
    claim = other.claim()
    assert claim.grant.fence == 2
    assert it.dispatch(action, "f2").refusal is Refusal.SUPERSEDED
    for call in (it.plan, lambda: it.answer(effect), lambda: it.close(action)):
        with pytest.raises(Superseded, match="fence was 1"):
            call()
    assert [line.fence for line in other.ledger.transitions("invoice-8472")][-1] == 2


def test_the_sweep_classifies_what_was_left(agent: Make) -> None:
    it = agent()
    it.claim()
    done = it.plan()
    it.answer(it.send(done, "done"))
    it.close(done)
    unread = it.plan()
    answered = it.answer(it.send(unread, "unread"))
    planned = it.plan()
    flying = it.send(it.plan(), "flying")
    it.die()
    report = agent().claim().resume
    assert [action.action_id for action in report.done] == [done.action_id, unread.action_id]
    assert [action.action_id for action in report.never_left] == [planned.action_id]
    assert [doubt.quarantine_id for doubt in report.in_doubt] == [flying.effect_id]
    assert report.in_doubt[0].reason == "released, and the process ended before an answer was recorded"
    assert report.answered_unread == (answered,)
    assert report.last_checkpoint.seq == 5


def test_intent_on_a_weak_wire_is_in_doubt_unless_it_only_reads(agent: Make) -> None:
    it = agent()
    it.claim()
    click, read = it.plan(wire=Wire.ATTACHED), it.plan(wire=Wire.ATTACHED, reads_only=True)
    it.die()
    after = agent()
    report = after.claim().resume
    (doubt,) = report.in_doubt
    assert (doubt.quarantine_id, doubt.effect) == (click.action_id, None)
    assert [action.action_id for action in report.never_left] == [read.action_id]
    assert after.dispatch(after.plan(reads_only=True)).refusal is Refusal.QUARANTINED
    assert after.close(click).phase is Phase.NEEDS_REVIEW
    after.settle(click.action_id, "committed")
    assert after.ledger.actions("invoice-8472")[0].phase is Phase.ACKNOWLEDGED
    after.die()
    assert agent().claim().resume.in_doubt == ()


def test_what_never_left_is_offered_until_somebody_works_on(agent: Make) -> None:
    it = agent()
    it.claim()
    first = it.plan()
    it.die()
    it = agent()
    it.claim()
    it.die()
    it = agent()
    assert [action.action_id for action in it.claim().resume.never_left] == [first.action_id]
    it.close(it.plan())
    it.die()
    assert agent().claim().resume.never_left == ()


def test_an_unread_answer_blocks_its_repetition_until_it_was_observed(agent: Make) -> None:
    it = agent()
    it.claim()
    effect = it.answer(it.send(it.plan()))
    it.die()
    it = agent()
    it.claim()
    again = it.dispatch(it.plan())
    assert (again.refusal, again.rival) == (Refusal.ALREADY_ANSWERED, effect)
    it.ledger.mark_observed(it.grant, effect.effect_id)
    assert it.dispatch(it.plan()).effect is not None


def test_an_answer_of_this_very_boot_blocks_nothing(agent: Make) -> None:
    it = agent()
    it.claim()
    action = it.plan()
    it.answer(it.send(action))
    assert it.dispatch(action).effect is not None


@pytest.mark.parametrize("outcome", [Outcome.REJECTED])
def test_a_rejected_effect_may_be_sent_again_after_a_restart(agent: Make, outcome: Outcome) -> None:
    it = agent()
    it.claim()
    it.answer(it.send(it.plan()), outcome)
    it.die()
    it = agent()
    assert it.claim().resume.answered_unread == ()
    assert it.dispatch(it.plan()).effect is not None


def test_a_committed_verdict_blocks_the_repetition_even_of_a_closed_action(agent: Make) -> None:
    it = agent()
    it.claim()
    action = it.plan()
    effect = it.send(action)
    it.close(action)
    it.die()
    it = agent()
    it.claim()
    it.settle(effect.effect_id, "committed")
    assert it.dispatch(it.plan()).refusal is Refusal.ALREADY_ANSWERED
    it.ledger.mark_observed(it.grant, effect.effect_id)
    assert it.dispatch(it.plan()).effect is not None


def test_labels_are_merged_by_a_later_claim(agent: Make) -> None:
    it = agent()
    it.claim(customer="acme", kind="invoice")
    it.ledger.release_run(it.grant, failed=False)
    it.claim(kind="credit")
    assert it.ledger.run("invoice-8472").labels == {"customer": "acme", "kind": "credit"}


def test_a_hold_survives_the_next_boot(agent: Make, sql: Sql) -> None:
    it = agent()
    sql("UPDATE runtimes SET state = 'QUIESCED', generation = 4")
    it.die()
    after = agent()
    (status,) = after.ledger.runtimes()
    assert (status.state, status.generation, status.accepting_work) == ("QUIESCED", 4, False)
    assert status.boot_id == after.boot_id


def test_a_boot_that_is_dead_is_not_shown_as_owner(agent: Make) -> None:
    it, watcher = agent(), agent("agent-8")
    assert watcher.ledger.runtimes()[0].owner is not None
    it.die()
    assert watcher.ledger.runtimes()[0].owner is None


def test_a_boot_that_was_taken_for_dead_gets_no_more_runs(agent: Make, sql: Sql) -> None:
    it = agent()
    sql(f"UPDATE boots SET closed_at = started_at WHERE boot_id = '{it.boot_id}'")  # noqa: S608 - our own id
    with pytest.raises(Superseded, match="taken for dead"):
        it.claim()
