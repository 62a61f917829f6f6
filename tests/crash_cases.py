"""What is asked of an agent killed with SIGKILL in the life of a click; the server's own count is the answer.

The two browser folders run these classes, each in its flavour (fixture ``flavour``).
"""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import product
from typing import TYPE_CHECKING

import pytest

from browsermw.faults import Point
from browsermw.protocol.phases import Phase
from browsermw.protocol.recovery import Wire
from tests.crashes import PATIENCE_S, Job, order_fetch, order_form, wait_until
from tests.socket_server import SocketServer
from tests.streamlit_site import BUTTON, THANKED, StreamlitSite

if TYPE_CHECKING:
    from pathlib import Path

    from browsermw import ResumeReport
    from tests.crashes import Bench
    from tests.shop_site import Shop

RUN = "invoice-8472"
KILLS = [range(first, first + 5) for first in range(0, 20, 5)]
"""Twenty, in tests of five that several workers can share."""

in_fives = pytest.mark.parametrize("kills", KILLS, ids=lambda kills: f"{kills[0] + 1}-{kills[-1] + 1}")
HOLDING = [(Point.GATE_HOLDS, "POST"), (Point.LEDGER_BEFORE_COMMIT, "dispatch_effect")]
ANSWERED = [(Point.GATE_ANSWER_RECORDED,), (Point.LEDGER_BEFORE_COMMIT, "close_action")]


def targets(report: ResumeReport | None) -> list[str]:
    """What the actions that never left aimed at."""
    assert report is not None
    return [action.target for action in report.never_left]


def answered_effect(bench: Bench, shop: Shop, path: str) -> str:
    """Check that exactly one effect is answered and unread, by the shop's own request id; return its id."""
    (arrival,) = shop.arrivals(path, "POST")
    with bench.looks(RUN) as (_, run):
        assert run.quarantined == []
        assert run.resume is not None
        (effect,) = run.resume.answered_unread
    assert effect.phase is Phase.ACKNOWLEDGED
    assert effect.status == 303
    assert effect.external_request_id == f"x-request-id=req-{arrival['n']}"
    return effect.effect_id


class KilledBeforeTheClick:
    """Stopped when the click is PLANNED and not made."""

    def test_it_never_left_and_may_be_done_again(self, bench: Bench, each_shop: Shop) -> None:
        shop, job = each_shop, order_form(each_shop)
        bench.stopped_at(job, Point.LEDGER_AFTER_COMMIT, "plan_action").crashes()
        assert shop.count("/order") == 0
        with bench.looks(RUN) as (mw, run):
            assert run.quarantined == []
            assert targets(run.resume) == ["#send"]
            assert mw.ledger_call("actions", RUN)[-1].phase is Phase.ABANDONED
        assert bench.again(job) == ["clicked"]
        assert shop.count("/order") == 1


class KilledHolding:
    """Stopped while the gate holds the request: when the relay dies with the gate, nothing leaves."""

    @in_fives
    def test_nothing_leaves_and_nothing_is_in_doubt(self, bench: Bench, shops: list[Shop], kills: range) -> None:
        ways = list(product(HOLDING, (order_form, order_fetch), shops))
        jobs: list[Job] = []
        for number in kills:
            stop, order, shop = ways[number % len(ways)]
            job = order(shop, run=f"invoice-{number}")
            bench.stopped_at(job, *stop).crashes(holding=True)
            assert [each.arrivals(method="POST") for each in shops] == [[], []], (number, stop, job)
            with bench.looks(job.run) as (_, run):
                assert run.quarantined == []
                # A click may be over before a script of its page has sent anything; a form goes with the click.
                assert order is order_fetch or targets(run.resume) == [job.button]
            jobs.append(job)
        assert bench.again(*jobs) == ["clicked"] * len(kills)
        assert sum(len(each.arrivals(method="POST")) for each in shops) == len(kills)


class KilledAfterRelease:
    """Killed when the shop has the order and has not answered: nobody can know, so nobody may repeat it."""

    @in_fives
    def test_it_is_quarantined_and_never_sent_again(self, bench: Bench, shops: list[Shop], kills: range) -> None:
        jobs: list[Job] = []
        for number in kills:
            shop, run_id = shops[number % 2], f"invoice-{number}"
            path, job = [
                ("/order-never", order_form(shop, "/order-never", run_id)),
                ("/api/never", order_fetch(shop, "#pay-never", run_id)),
                ("/order-slow", order_form(shop, "/order-slow%3Fms%3D60000", run_id)),
            ][number % 3]
            started_at = datetime.now(UTC)
            bench.has_sent(job, shop, path, shop.count(path) + 1).crashes()
            with bench.looks(run_id) as (_, run):
                (doubt,) = run.quarantined
            assert doubt.effect is not None
            assert doubt.effect.method == "POST"
            assert doubt.effect.url.partition("?")[0] == shop.url + path
            assert started_at < doubt.effect.dispatched_at < datetime.now(UTC)
            jobs.append(job)
        assert bench.again(*jobs) == ["Quarantined"] * len(kills)
        assert sum(len(each.arrivals(method="POST")) for each in shops) == len(kills)

    def test_it_can_be_looked_up_by_the_idempotency_key_on_record(self, bench: Bench, shop: Shop) -> None:
        policy = {"idempotency_headers": {f"POST {shop.url}/**": "Idempotency-Key"}}
        for job, path in (
            (order_form(shop, "/order-never", "by form"), "/order-never"),
            (order_fetch(shop, "#pay-never", "by fetch"), "/api/never"),
        ):
            bench.has_sent(job, shop, path, policy=policy).crashes()
            with bench.looks(job.run) as (_, run):
                (doubt,) = run.quarantined
            assert doubt.effect is not None
            found = shop.look_up(idempotency_key=doubt.effect.idempotency_key)
            assert [order["path"] for order in found] == [path]

    def test_what_was_committed_is_refused_until_its_result_is_taken(self, bench: Bench, shop: Shop) -> None:
        job = self._killed(bench, shop)
        agent = bench.starts(job, steps=["click", "committed", "click", "observed", "click"])
        assert agent.hears("refused")["refused"] == "Quarantined"
        second = agent.hears("refused")
        assert second["refused"] == "EffectRefused"
        assert "mark_observed" in second["message"]
        shop.wait_for("/order-never", 2, timeout_s=PATIENCE_S)
        assert shop.release("/order-never") == 2
        assert agent.finishes() == ["clicked"]
        assert shop.count("/order-never") == 2

    def test_what_was_not_committed_may_be_sent_again(self, bench: Bench, shop: Shop) -> None:
        job = self._killed(bench, shop)
        agent = bench.starts(job, steps=["click", "not_committed", "click"])
        assert agent.hears("refused")["refused"] == "Quarantined"
        shop.wait_for("/order-never", 2, timeout_s=PATIENCE_S)
        shop.release("/order-never")
        assert agent.finishes() == ["clicked"]
        assert shop.count("/order-never") == 2

    @staticmethod
    def _killed(bench: Bench, shop: Shop) -> Job:
        job = order_form(shop, "/order-never")
        bench.has_sent(job, shop, "/order-never").crashes()
        return job


class KilledWithTheAnswer:
    """Stopped around the moment at which the answer becomes durable."""

    @pytest.mark.parametrize("stop", ANSWERED, ids=["recorded", "before the result is stored"])
    def test_a_recorded_answer_is_read_and_not_sent_again(
        self, bench: Bench, each_shop: Shop, stop: tuple[Point, ...]
    ) -> None:
        shop, job = each_shop, order_form(each_shop)
        bench.stopped_at(job, *stop).crashes()
        answered_effect(bench, shop, "/order")
        agent = bench.starts(job, steps=["click", "observed", "click"])
        assert agent.hears("refused")["refused"] == "EffectRefused"
        assert agent.finishes() == ["clicked"]
        assert shop.count("/order") == 2

    def test_an_answer_that_was_not_recorded_is_a_doubt(self, bench: Bench, shop: Shop) -> None:
        job = order_form(shop)
        bench.stopped_at(job, Point.GATE_ANSWER_HELD).crashes()
        with bench.looks(RUN) as (_, run):
            (doubt,) = run.quarantined
            assert doubt.effect is not None
            assert doubt.effect.url == f"{shop.url}/order"
            assert doubt.effect.status is None
        assert bench.again(job) == ["Quarantined"]
        assert shop.count("/order") == 1


class KilledInACheckpoint:
    """Stopped inside the transaction that writes one: it is there as a whole or not at all."""

    def test_before_the_click_nothing_of_it_is_there(self, bench: Bench, shop: Shop) -> None:
        job = order_form(shop)
        bench.stopped_at(job, Point.LEDGER_BEFORE_COMMIT, "plan_action").crashes()
        with bench.looks(RUN) as (mw, run):
            assert run.resume is not None
            assert run.resume.last_checkpoint is not None
            assert (run.resume.last_checkpoint.action_seq, run.resume.last_checkpoint.moment) == (1, "after")
            assert targets(run.resume) == []
            assert [action.kind for action in mw.ledger_call("actions", RUN)] == ["navigate"]
        assert shop.count("/order") == 0
        assert bench.again(job) == ["clicked"]
        assert shop.count("/order") == 1

    def test_after_the_click_the_run_does_not_advance(self, bench: Bench, shop: Shop) -> None:
        bench.stopped_at(order_form(shop), Point.LEDGER_BEFORE_COMMIT, "close_action").crashes()
        with bench.looks(RUN) as (mw, run):
            assert run.resume is not None
            assert run.resume.last_checkpoint is not None
            assert (run.resume.last_checkpoint.action_seq, run.resume.last_checkpoint.moment) == (2, "before")
            action = mw.ledger_call("actions", RUN)[-1]
            assert action.phase is Phase.ACKNOWLEDGED
            assert action.closed_at is None
        assert shop.count("/order") == 1


class KilledBesideASocket:
    """A click whose only effect is a frame on a WebSocket."""

    def test_its_frame_is_in_doubt_and_sent_no_second_time(self, bench: Bench) -> None:
        with SocketServer() as server:
            job = Job(RUN, f"{server.url}/?at-once", "#send")
            agent = bench.stopped_at(job, Point.LEDGER_BEFORE_COMMIT, "close_action")
            server.wait_for(1, PATIENCE_S)
            agent.crashes()
            with bench.looks(RUN) as (_, run):
                (doubt,) = run.quarantined
            assert doubt.effect is not None
            assert (doubt.effect.channel, doubt.effect.url) == ("WebSocket", f"ws{server.url[4:]}/socket/echo")
            assert bench.again(job) == ["Quarantined"]
            assert server.wait_for(1) == ["order"]

    def test_left_alone_it_costs_no_review(self, bench: Bench) -> None:
        with SocketServer() as server:
            assert bench.again(Job(RUN, f"{server.url}/?at-once", "#send")) == ["clicked"]
            assert server.wait_for(1) == ["order"]
        with bench.looks(RUN) as (_, run):
            assert run.quarantined == []
            assert run.resume is not None
            assert run.resume.answered_unread == ()


class KilledInAStreamlitApplication:
    """A real application that lives on a WebSocket."""

    def test_a_killed_click_is_in_doubt_and_one_left_alone_costs_no_review(self, bench: Bench, tmp_path: Path) -> None:
        with StreamlitSite(tmp_path) as site:
            jobs = [Job(run, site.url, BUTTON, until=THANKED) for run in ("left-alone", "again")]
            assert bench.again(*jobs) == ["clicked"] * 2
            wait_until(lambda: site.order_count() == 2, "both orders were taken")
            with bench.looks("left-alone") as (_, run):
                assert run.quarantined == []
                assert run.resume is not None
                assert run.resume.answered_unread == ()
            job = Job(RUN, site.url, BUTTON)
            agent = bench.stopped_at(job, Point.LEDGER_BEFORE_COMMIT, "close_action")
            wait_until(lambda: site.order_count() == 3, "the order was taken")
            agent.crashes()
            with bench.looks(RUN) as (_, run):
                (doubt,) = run.quarantined
            assert doubt.effect is not None
            assert (doubt.effect.channel, doubt.effect.url) == ("WebSocket", f"ws{site.url[4:]}/_stcore/stream")
            assert bench.again(job) == ["Quarantined"]
            assert site.order_count() == 3


class KilledOnRoutes:
    """On the wire ``routed`` a dying Playwright may let go of what it held: what is not known is in doubt."""

    def test_what_was_sent_is_quarantined_and_never_sent_again(self, bench: Bench, shop: Shop) -> None:
        for path, job in (
            ("/order-never", order_form(shop, "/order-never", "by-form")),
            ("/api/never", order_fetch(shop, "#pay-never", "by-fetch")),
        ):
            bench.has_sent(job, shop, path, routed=True).crashes()
            with bench.looks(job.run) as (_, run):
                (doubt,) = run.quarantined
                assert doubt.effect is not None
                assert (doubt.effect.method, doubt.effect.url) == ("POST", shop.url + path)
                assert doubt.action.wire is Wire.ROUTED
            assert bench.again(job, routed=True) == ["Quarantined"]
            assert shop.count(path) == 1

    def test_a_click_whose_request_was_held_is_in_doubt(self, bench: Bench, shop: Shop) -> None:
        job = order_form(shop)
        bench.stopped_at(job, Point.GATE_HOLDS, "POST", routed=True).crashes()
        with bench.looks(RUN) as (_, run):
            (doubt,) = run.quarantined
            assert doubt.effect is None
            assert (doubt.action.target, doubt.action.phase, doubt.action.wire) == (
                "#send",
                Phase.NEEDS_REVIEW,
                Wire.ROUTED,
            )
            assert "routed wire" in doubt.reason
        assert bench.again(job, routed=True) == ["Quarantined"]

    def test_a_recorded_answer_is_read_and_not_sent_again(self, bench: Bench, shop: Shop) -> None:
        job = order_form(shop)
        bench.stopped_at(job, Point.LEDGER_BEFORE_COMMIT, "close_action", routed=True).crashes()
        answered_effect(bench, shop, "/order")
        assert bench.again(job, routed=True) == ["EffectRefused"]
        assert shop.count("/order") == 1
