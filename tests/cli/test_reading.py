"""``status``, ``runs`` and ``show``: what people and scripts read about a ledger."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner

from browsermw.cli import app
from browsermw.cli.output import moment, plain

if TYPE_CHECKING:
    from tests.cli.conftest import Scene

ROOT = Path(__file__).parents[2]


def test_status_counts_runs_and_doubts_and_names_the_runtime(scene: Scene) -> None:
    scene.answered_run("invoice-1")
    scene.doubtful_run("invoice-2")
    status = scene.json("status")
    assert status["runs"] == {"total": 2, "by_phase": {"FINISHED": 1, "NEEDS_REVIEW": 1}}
    assert (status["in_doubt_count"], status["left_by_a_dead_process"]) == (1, {})
    assert [(it["runtime"], it["state"], it["in_doubt_count"]) for it in status["runtimes"]] == [
        ("agent-7", "RUNNING", 1)
    ]
    shown = scene.call("status").stdout
    assert "agent-7" in shown
    assert "2 runs: 1 FINISHED, 1 NEEDS_REVIEW" in shown
    assert "1 in doubt" in shown


def test_status_tells_of_a_run_whose_process_died_with_a_request_under_way(scene: Scene) -> None:
    scene.send(scene.claim("invoice-1"))
    assert scene.json("status")["left_by_a_dead_process"] == {}
    scene.die()
    assert scene.json("status")["left_by_a_dead_process"] == {"invoice-1": 1}
    assert "invoice-1 was left by a process that died; 1 of its actions will be in doubt" in scene.call("status").stdout


def test_runs_come_newest_first_and_can_be_filtered(scene: Scene) -> None:
    assert scene.call("runs").stdout == "No run yet.\n"
    scene.answered_run("invoice-1")
    scene.doubtful_run("invoice-2")
    assert [run["run_id"] for run in scene.json("runs")] == ["invoice-2", "invoice-1"]
    assert [run["run_id"] for run in scene.json("runs", "--phase", "finished")] == ["invoice-1"]
    assert [run["run_id"] for run in scene.json("runs", "--in-doubt")] == ["invoice-2"]
    assert scene.json("runs", "--in-doubt", "--phase", "FINISHED") == []
    assert scene.call("runs", "--phase", "DONE").exit_code == 2


def test_runs_say_that_an_owner_is_dead(scene: Scene) -> None:
    scene.claim("invoice-1")
    assert f"pid {os.getpid()} on host-a, dead" not in scene.call("runs").stdout
    scene.die()
    assert f"pid {os.getpid()} on host-a, dead" in scene.call("runs").stdout


def test_show_tells_what_was_sent_what_came_back_and_how_to_settle_what_is_in_doubt(scene: Scene) -> None:
    doubt_id = scene.doubtful_run()
    shown = scene.call("show", "invoice-8472").stdout
    head, doubt = shown.split("In doubt")
    assert head.startswith("Run invoice-8472: NEEDS_REVIEW, 1 in doubt\n")
    for word in ("agent-7", "customer=acme", "click #send", "POST https://shop.test/orders (Document)", "ago)"):
        assert word in head
    for verdict in ("committed", "not_committed", "unknown"):
        command = f"browsermw quarantine resolve {doubt_id} --verdict {verdict} --note 'what you saw, and where'"
        assert f"{command} --ledger {scene.url}\n" in doubt
    assert "the same request may be sent again" in doubt


def test_show_has_the_status_and_the_external_id_of_an_answer(scene: Scene) -> None:
    scene.answered_run("invoice-1")
    line = next(line for line in scene.call("show", "invoice-1").stdout.splitlines() if "POST" in line)
    assert all(word in line for word in ("OBSERVED", "201", "x-request-id=req-7"))
    assert "In doubt" not in scene.call("show", "invoice-1").stdout
    assert "idempotency key key-7" in scene.call("show", "invoice-1").stdout


def test_show_adds_transitions_and_checkpoints_where_asked(scene: Scene) -> None:
    scene.answered_run("invoice-1")
    assert set(scene.json("show", "invoice-1")) == {"run", "actions", "quarantined", "unswept_doubt_count"}
    assert "checkpoints" not in scene.json("show", "invoice-1", "--transitions")
    assert "transitions" not in scene.json("show", "invoice-1", "--checkpoints")
    story = scene.json("show", "invoice-1", "--transitions", "--checkpoints")
    assert [it["moment"] for it in story["checkpoints"]] == ["before", "after"]
    assert story["transitions"][0]["new"] == "ACTIVE"
    shown = scene.call("show", "invoice-1", "--transitions", "--checkpoints").stdout
    assert "first claim" in shown.split("Transitions")[1]
    assert "https://shop.test/done" in shown.split("Checkpoints")[1]


def test_show_says_that_the_dead_owner_left_a_request_under_way(scene: Scene) -> None:
    scene.send(scene.claim("invoice-1"))
    scene.die()
    shown = scene.call("show", "invoice-1").stdout
    assert "Its process died; 1 of its actions will be in doubt" in shown
    assert scene.json("show", "invoice-1")["unswept_doubt_count"] == 1


def test_an_unknown_run_is_named_with_the_ledger(scene: Scene) -> None:
    result = scene.call("show", "invoice-9")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "No run 'invoice-9'" in result.stderr
    assert scene.url in result.stderr


@pytest.mark.parametrize("arguments", [["status"], ["runs"], ["show", "r"], ["quarantine", "list"]])
def test_a_missing_ledger_is_named_and_not_made(tmp_path: Path, arguments: list[str]) -> None:
    path = tmp_path / "state" / "agent.db"
    result = CliRunner().invoke(app, [*arguments, "--json"], env={"BROWSERMW_LEDGER": f"sqlite:///{path}"})
    assert (result.exit_code, result.stdout) == (2, "")
    assert f"sqlite:///{path}" in result.stderr
    assert "there is no ledger yet" in result.stderr
    assert list(tmp_path.iterdir()) == []


def test_an_older_ledger_is_not_migrated_by_looking_at_it(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("browsermw.ledger.schema.HEAD", "r9999")
    result = scene.call("status")
    assert (result.exit_code, result.stdout) == (3, "")
    assert "written by an older browsermw" in result.stderr


def test_a_ledger_that_cannot_be_used_and_one_that_is_damaged_have_codes_of_their_own(
    scene: Scene, tmp_path: Path
) -> None:
    unreachable = ["status", "--ledger", "postgresql://u:secret@127.0.0.1:1/x"]
    result = CliRunner().invoke(app, unreachable)
    assert (result.exit_code, result.stdout) == (3, "")
    assert "secret" not in result.stderr
    assert CliRunner().invoke(app, ["status", "--ledger", "mysql://h/x"]).exit_code == 2
    scene.die()
    path = tmp_path / "agent.db"
    content = path.read_bytes()
    path.write_bytes(content[:100] + b"\xff" * (len(content) - 100))
    result = scene.call("status")
    assert (result.exit_code, result.stdout) == (4, "")
    assert "damaged" in result.stderr


def test_the_text_of_a_page_cannot_speak_to_the_terminal(scene: Scene) -> None:
    scene.send(scene.claim("invoice-1"), target="\x1b[31m[bold]#send\u202e")
    shown = scene.call("show", "invoice-1").stdout
    assert r"\x1b[31m[bold]#send\u202e" in shown
    assert plain("ü 注文") == "ü 注文"


def test_off_a_terminal_there_is_no_colour_and_no_table_is_cut(scene: Scene) -> None:
    doubt_id = scene.doubtful_run()
    scene.die()
    command = [sys.executable, "-m", "browsermw"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "BROWSERMW_LEDGER": scene.url, "COLUMNS": "40"}
    shown = subprocess.run(
        [*command, "quarantine", "list"], env=environment, capture_output=True, text=True, check=True
    )
    assert "\x1b" not in shown.stdout
    row = next(line for line in shown.stdout.splitlines() if doubt_id in line)
    assert "POST https://shop.test/orders" in row
    assert "no answer before the run ended" in row
    runs = subprocess.run([*command, "runs", "--json"], env=environment, capture_output=True, text=True, check=True)
    assert [run["run_id"] for run in json.loads(runs.stdout)] == ["invoice-8472"]
    assert runs.stderr == ""


@pytest.mark.parametrize(
    ("age", "words"),
    [
        (timedelta(seconds=5), "5 s ago"),
        (timedelta(minutes=3), "3 min ago"),
        (timedelta(hours=30), "30 h ago"),
        (timedelta(days=9), "9 days ago"),
        (timedelta(seconds=-1), "just now"),
        (timedelta(hours=-2), "ahead of this clock"),
    ],
)
def test_a_moment_is_told_in_utc_with_its_age(age: timedelta, words: str) -> None:
    at = datetime(2026, 1, 2, 10, 20, 30, tzinfo=UTC)
    assert moment(at, at + age) == f"2026-01-02 10:20:30 UTC ({words})"


def test_help_lists_the_exit_codes() -> None:
    for arguments in (["--help"], ["status", "--help"], ["quarantine", "resolve", "--help"]):
        shown = CliRunner().invoke(app, arguments).stdout
        assert "5 it was settled before" in " ".join(shown.split())
