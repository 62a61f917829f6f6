"""Many writers on one ledger, on both databases."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from browsermw.ledger import open_ledger
from browsermw.protocol.admission import Refusal

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable

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
