"""Processes that are killed, stopped or forked while they hold a boot."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from typing import TYPE_CHECKING, Any

import pytest

from browsermw.errors import RunOwned, RuntimeOwned, Superseded
from browsermw.protocol.phases import Phase

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable
    from pathlib import Path

    Make = Callable[..., Any]
    Start = Callable[..., subprocess.Popen[str]]


def line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def eventually(attempt: Callable[[], Any], error: type[Exception], *, within_s: float) -> Any:
    """Try until it does not raise: a server notices a dead connection soon, not at once."""
    deadline = time.monotonic() + within_s
    while True:
        try:
            return attempt()
        except error:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.01)


def test_a_killed_process_is_taken_over_at_once(agent: Make, child: Start, url: str) -> None:
    process = child(url, "hold")
    assert line(process) == "ready"
    it = agent("agent-8")
    with pytest.raises(RunOwned, match="host-c"):
        it.claim("run-child")
    with pytest.raises(RuntimeOwned, match=f"pid {process.pid} on host-c"):
        agent("child")
    process.kill()
    process.wait()
    claim = eventually(lambda: it.claim("run-child"), RunOwned, within_s=2.0)
    assert claim.grant.fence == 2
    assert len(claim.resume.in_doubt) == 1
    assert agent("child").claim().grant.fence == 1


@pytest.mark.parametrize("call", ["plan_action", "dispatch_effect", "answer_effect", "close_action"])
def test_a_kill_before_the_commit_leaves_no_part_of_the_record(agent: Make, child: Start, url: str, call: str) -> None:
    process = child(url, "die", call)
    assert process.wait() == -signal.SIGKILL
    it = agent("agent-8")
    claim = eventually(lambda: it.claim("run-child"), RunOwned, within_s=2.0)
    actions, checkpoints = it.ledger.actions("run-child"), it.ledger.checkpoints("run-child")
    assert len(actions) == len(checkpoints) == (0 if call == "plan_action" else 1)
    phases = {
        "plan_action": [],
        "dispatch_effect": [Phase.ABANDONED],
        "answer_effect": [Phase.NEEDS_REVIEW],
        "close_action": [Phase.ACKNOWLEDGED],
    }
    assert [action.phase for action in actions] == phases[call]
    assert len(claim.resume.answered_unread) == (1 if call == "close_action" else 0)


def test_children_of_a_dead_agent_do_not_keep_its_lock(agent: Make, child: Start, url: str) -> None:
    process = child(url, "parent")
    children = [int(pid) for pid in line(process).split()]
    try:
        assert line(process) == "ready"
        process.kill()
        process.wait()
        it = agent("agent-8")
        assert eventually(lambda: it.claim("run-child"), RunOwned, within_s=2.0).grant.fence == 2
        for pid in children:
            os.kill(pid, 0)
    finally:
        for pid in children:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def test_of_two_processes_that_race_for_a_runtime_one_wins(child: Start, url: str) -> None:
    racers = [child(url, "idle") for _ in range(3)]
    assert sorted(line(racer) for racer in racers) == ["owned", "owned", "ready"]


def test_a_stopped_process_is_taken_over_when_its_lease_ran_out(agent: Make, url: str) -> None:
    if url.startswith("sqlite"):
        pytest.skip("on one host the lock speaks, and a stopped process still holds it")
    zombie, it = agent(lease_s=0.3), agent("agent-8")
    zombie.claim()
    action = zombie.plan()
    zombie.ledger.renew(zombie.boot_id)
    with pytest.raises(RunOwned):
        it.claim()
    claim = eventually(it.claim, RunOwned, within_s=5.0)
    assert claim.grant.fence == 2
    assert zombie.dispatch(action).refusal == "superseded"
    second = agent()
    with pytest.raises(Superseded, match="taken for dead"):
        zombie.ledger.renew(zombie.boot_id)
    second.ledger.renew(second.boot_id)


def test_a_lock_file_is_removed_by_close_and_by_whoever_finds_its_owner_dead(
    sqlite_agent: Make, child: Start, sqlite_url: str, sqlite_file: Path
) -> None:
    folder = sqlite_file.with_name("agent.db.boots")
    it = sqlite_agent("agent-8")
    assert [path.name for path in folder.iterdir()] == [f"{it.boot_id}.lock"]
    process = child(sqlite_url, "hold")
    line(process)
    process.kill()
    process.wait()
    assert len(list(folder.iterdir())) == 2
    it.claim("run-child")
    assert len(list(folder.iterdir())) == 1
    it.ledger.close_boot(it.boot_id)
    assert list(folder.iterdir()) == []
