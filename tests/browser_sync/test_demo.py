"""``browsermw demo`` as its user meets it: a process of its own, its output, and nothing left behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import uuid
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from browsermw.ledger import open_ledger
from browsermw.testing.processes import running

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]
pytestmark = [
    pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="reads /proc to see whose a process is"),
    pytest.mark.timeout(240),
]


@dataclass
class Demo:
    """A running demo; all that it starts inherits its mark."""

    process: subprocess.Popen[str]
    mark: str

    def pids(self) -> list[int]:
        """Every living process that carries the mark."""
        return [it.pid for it in running() if self.mark.encode() in environment_of(it.pid)]


def environment_of(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return b""


@contextmanager
def demo(*arguments: str) -> Iterator[Demo]:
    mark = f"demo-{uuid.uuid4().hex}"
    process = subprocess.Popen(
        [sys.executable, "-m", "browsermw", "demo", *arguments],
        env={**os.environ, "PYTHONPATH": str(ROOT), "BROWSERMW_TEST_MARK": mark},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    it = Demo(process, mark)
    try:
        yield it
    finally:
        process.terminate()
        process.communicate()


def test_the_demo_proves_one_order_and_leaves_nothing_running(tmp_path: Path) -> None:
    with demo("--json", "--keep", str(tmp_path)) as it:
        assert it.process.pid in it.pids()
        printed, errors = it.process.communicate()
        assert (it.process.returncode, errors) == (0, "")
        assert it.pids() == []
    told = json.loads(printed)
    assert (told["ok"], told["orders"], told["reference"]) == (True, 1, "ORD-0001")
    facts = {step["title"]: step["facts"] for step in told["steps"]}
    killed = facts["The agent is killed between request and answer"]
    assert killed["exit_status"] == -signal.SIGKILL
    assert "DISPATCHED, answer none" in killed["ledger"]
    restarted = facts["The same agent starts again"]
    assert restarted["pid"] != killed["pid"]
    assert (restarted["run"], restarted["seq"]) == ("demo-order", 2)
    assert "POST" in restarted["request"]
    assert restarted["quarantine"] in facts["It clicks Send again, and is refused"]["refusal"]
    assert "ORD-0001" in facts["It records its verdict"]["note"]
    assert facts["The shop counts"] == {"requests": 1, "orders": 1}

    ledger = open_ledger(f"sqlite:///{tmp_path}/ledger.db", create=False)
    try:
        assert ledger.run("demo-order").phase == "FINISHED"
        ((verdict, _),) = ledger.verdicts(restarted["quarantine"])
        assert (verdict.verdict, verdict.source) == ("committed", "demo-agent")
    finally:
        ledger.close()


def test_a_demo_that_is_ended_half_way_ends_its_shop_agent_and_browser(tmp_path: Path) -> None:
    with demo("--keep", str(tmp_path)) as it:
        assert it.process.stdout is not None
        for line in it.process.stdout:
            if "An agent starts" in line:
                break
        assert len(it.pids()) > 3
        it.process.send_signal(signal.SIGTERM)
        it.process.communicate()
        assert it.process.returncode != 0
        assert it.pids() == []


def test_a_demo_that_fails_says_so_in_json_too(tmp_path: Path) -> None:
    with demo("--json", "--ledger", "sqlite://") as it:
        printed, errors = it.process.communicate()
    assert it.process.returncode == 2
    assert json.loads(printed)["ok"] is False
    assert "kept in memory" in errors
