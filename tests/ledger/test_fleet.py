"""Many writers on one ledger, on both databases."""

from __future__ import annotations

import os
import threading
import time
from typing import TYPE_CHECKING, Any

import pytest
from sqlalchemy import event

from browsermw import faults
from browsermw.errors import LedgerUnavailable, RunOwned
from browsermw.ledger import dialects, open_ledger
from browsermw.protocol.admission import Refusal

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable, Iterator

    Make = Callable[..., Any]
    Start = Callable[..., subprocess.Popen[str]]


def test_eight_processes_write_at_once(child: Start, url: str) -> None:
    """Also the first opening: eight processes make and migrate one new file."""
    writers = [child(url, "write", "5") for _ in range(8)]
    outs = [writer.communicate()[0] for writer in writers]
    assert outs == ["ready\n"] * 8
    ledger = open_ledger(url)
    assert [run.action_count for run in ledger.runs()] == [5] * 8
    ledger.close()


def test_two_threads_of_one_run_never_send_the_same_request_twice(agent: Make) -> None:
    it = agent()
    it.claim()
    action = it.plan()
    start, answers = threading.Barrier(4), []

    def send() -> None:
        start.wait()
        answers.append(it.dispatch(action))

    threads = [threading.Thread(target=send) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(answer.effect is not None for answer in answers) == 1
    assert {answer.refusal for answer in answers} == {None, Refusal.IN_FLIGHT_DUPLICATE}
    assert [effect.ordinal for effect in it.ledger.actions("invoice-8472")[0].effects] == [1, 2, 3, 4]


@pytest.fixture
def pause() -> Iterator[tuple[threading.Event, threading.Event]]:
    """Stops whoever is about to commit a dispatch, until the second event is set."""
    reached, go_on = threading.Event(), threading.Event()

    def stop(point: faults.Point, call: str) -> None:
        if (point, call) == (faults.Point.LEDGER_BEFORE_COMMIT, "dispatch_effect"):
            reached.set()
            go_on.wait(20)

    faults.arm(stop)
    yield reached, go_on
    go_on.set()
    faults.arm(None)


def claim_when_dead(it: Any) -> Any:
    deadline = time.monotonic() + 5
    while True:
        try:
            return it.claim()
        except RunOwned:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.01)


def test_a_takeover_waits_for_a_dispatch_that_began_before_it(
    agent: Make, url: str, pause: tuple[threading.Event, threading.Event]
) -> None:
    if url.startswith("sqlite"):
        pytest.skip("SQLite has one writer")
    zombie, it = agent(lease_s=0.2), agent("agent-8")
    zombie.claim()
    action = zombie.plan()
    sent, claims = [], []
    threads = [threading.Thread(target=lambda: sent.append(zombie.dispatch(action)))]
    threads[0].start()
    assert pause[0].wait(10)
    threads.append(threading.Thread(target=lambda: claims.append(claim_when_dead(it))))
    threads[1].start()
    threads[1].join(0.6)
    assert claims == []
    pause[1].set()
    for thread in threads:
        thread.join()
    assert sent[0].effect is not None
    assert [doubt.quarantine_id for doubt in claims[0].resume.in_doubt] == [sent[0].effect.effect_id]


def test_a_process_that_stalls_in_a_transaction_does_not_stop_a_takeover(
    agent: Make, url: str, pause: tuple[threading.Event, threading.Event], monkeypatch: pytest.MonkeyPatch
) -> None:
    if url.startswith("sqlite"):
        pytest.skip("SQLite has one writer")
    monkeypatch.setattr(dialects, "_STALLED_S", 1)
    zombie, it = agent(lease_s=0.2), agent("agent-8")
    zombie.claim()
    action = zombie.plan()
    errors: list[Exception] = []

    def dispatch() -> None:
        try:
            zombie.dispatch(action)
        except LedgerUnavailable as error:
            errors.append(error)

    thread = threading.Thread(target=dispatch)
    thread.start()
    assert pause[0].wait(10)
    assert claim_when_dead(it).resume.in_doubt == ()
    pause[1].set()
    thread.join()
    assert len(errors) == 1
    assert it.ledger.actions("invoice-8472")[0].effects == ()


def test_a_forked_child_is_refused(agent: Make) -> None:
    it = agent()
    it.claim()
    pid = os.fork()
    if not pid:
        try:
            it.plan()
        except LedgerUnavailable:
            os._exit(7)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7
    assert it.plan().seq == 1


def test_no_call_reads_a_whole_table(sqlite_agent: Make) -> None:
    """What a claim or a click costs must not depend on how many runs there are."""
    it = sqlite_agent()
    statements: list[str] = []
    event.listen(it.ledger._engine, "begin", lambda conn: conn.connection.set_trace_callback(statements.append))
    it.claim()
    action = it.plan()
    effect = it.send(action)
    it.answer(effect)
    it.close(action)
    it.send(it.plan())
    it.ledger.release_run(it.grant, failed=False)
    resume = it.claim().resume
    it.settle(resume.in_doubt[0].quarantine_id, "committed")
    asked = [text for text in statements if text.startswith(("SELECT", "UPDATE"))]
    assert len(asked) > 40
    cursor = it.ledger._engine.raw_connection().cursor()
    plans = [line[3] for text in asked for line in cursor.execute(f"EXPLAIN QUERY PLAN {text}")]
    assert [plan for plan in plans if plan.startswith("SCAN") and "CONSTANT ROW" not in plan] == []
