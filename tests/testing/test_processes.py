"""Whose a process is, and that nobody else's is ended."""

from __future__ import annotations

import shutil
import subprocess
import sys
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from browsermw.testing import processes
from browsermw.testing.processes import end, family, left_of, running, wait_gone

if TYPE_CHECKING:
    from collections.abc import Iterator

PARENT = """
import subprocess, sys
wait = [sys.executable, "-c", "import time; time.sleep(600)"]
apart = subprocess.Popen(wait, start_new_session=True)
beside = subprocess.Popen(wait)
print(apart.pid, beside.pid, flush=True)
apart.wait()
"""


@pytest.fixture
def tree() -> Iterator[tuple[subprocess.Popen[str], set[int]]]:
    """A process with two children, one of them in a session of its own, and all their numbers."""
    with subprocess.Popen(
        [sys.executable, "-c", PARENT], stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as parent:
        assert parent.stdout is not None
        children = {int(pid) for pid in parent.stdout.readline().split()}
        known = family(parent.pid)
        yield parent, {parent.pid, *children}
        parent.kill()
        end(known)


def test_a_family_holds_what_was_started_in_a_session_of_its_own(tree: tuple[subprocess.Popen[str], set[int]]) -> None:
    parent, pids = tree
    assert {it.pid for it in family(parent.pid)} == pids


def test_orphans_are_known_after_their_parent_died_and_are_ended(
    tree: tuple[subprocess.Popen[str], set[int]],
) -> None:
    parent, pids = tree
    known = family(parent.pid)
    parent.kill()
    parent.wait()
    assert family(parent.pid) == []
    assert {it.pid for it in left_of(known)} == pids - {parent.pid}
    assert wait_gone(known, 0.0) != []
    end(known)
    assert left_of(known) == []


def test_another_process_with_the_same_number_is_left_alone(tree: tuple[subprocess.Popen[str], set[int]]) -> None:
    parent, _ = tree
    (it,) = [one for one in running() if one.pid == parent.pid]
    end([replace(it, started="long ago", group=-1)])
    assert parent.poll() is None


@pytest.mark.skipif(shutil.which("ps") is None, reason="there is no ps")
def test_ps_tells_the_same_as_proc(
    tree: tuple[subprocess.Popen[str], set[int]],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    parent, pids = tree
    monkeypatch.setattr(processes, "_PROC", tmp_path_factory.mktemp("empty"))
    seen = {it.pid: it for it in running()}
    assert {it.pid for it in family(parent.pid)} == pids
    assert seen[parent.pid].group == parent.pid
