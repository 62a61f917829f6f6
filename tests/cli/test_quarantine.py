"""``quarantine list|show|resolve``: a person settles what nobody else can."""

from __future__ import annotations

import getpass
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.cli.conftest import Scene


def settle(scene: Scene, doubt_id: str, verdict: str = "committed", *more: str) -> int:
    exit_code: int = scene.call(
        "quarantine", "resolve", doubt_id, "--verdict", verdict, "--note", "order 7 is there", *more
    ).exit_code
    return exit_code


def test_the_list_names_the_request_and_why_it_is_in_doubt(scene: Scene) -> None:
    assert scene.call("quarantine", "list").stdout == "Nothing is in doubt.\n"
    assert scene.json("quarantine", "list") == []
    doubt_id = scene.doubtful_run()
    scene.doubtful_run("invoice-2")
    row = next(line for line in scene.call("quarantine", "list").stdout.splitlines() if doubt_id in line)
    assert "POST https://shop.test/orders" in row
    assert [it["quarantine_id"] for it in scene.json("quarantine", "list", "--run", "invoice-8472")] == [doubt_id]
    assert len(scene.json("quarantine", "list")) == 2
    assert scene.call("quarantine", "list", "--run", "invoice-9").exit_code == 2


def test_a_script_learns_from_the_exit_code_whether_something_is_in_doubt(scene: Scene) -> None:
    assert scene.call("quarantine", "list", "--exit-code").exit_code == 0
    doubt_id = scene.doubtful_run()
    assert scene.call("quarantine", "list").exit_code == 0
    assert scene.call("quarantine", "list", "--exit-code").exit_code == 1
    settle(scene, doubt_id)
    assert scene.call("quarantine", "list", "--exit-code").exit_code == 0


def test_a_request_that_a_dead_process_had_under_way_is_in_doubt_before_the_sweep(scene: Scene) -> None:
    scene.send(scene.claim("invoice-1"))
    assert scene.call("quarantine", "list", "--exit-code").exit_code == 0
    scene.die()
    result = scene.call("quarantine", "list", "--exit-code", "--json")
    assert (result.exit_code, result.stdout) == (1, "[]\n")
    assert "invoice-1 was left by a process that died" in result.stderr


@pytest.mark.parametrize(
    ("verdict", "phase", "run_phase"),
    [
        ("committed", "ACKNOWLEDGED", "SUSPENDED"),
        ("not_committed", "ABANDONED", "SUSPENDED"),
        ("unknown", "NEEDS_REVIEW", "NEEDS_REVIEW"),
    ],
)
def test_a_verdict_is_recorded_with_who_gave_it(scene: Scene, verdict: str, phase: str, run_phase: str) -> None:
    doubt_id = scene.doubtful_run()
    arguments = ("quarantine", "resolve", doubt_id, "--verdict", verdict, "--note", "order 7 is there")
    answer = scene.json(*arguments)
    assert answer["quarantine"]["effect"]["phase"] == phase
    (said,) = answer["verdicts"]
    assert (said["verdict"], said["note"]) == (verdict, "order 7 is there")
    assert said["source"] == f"person:{getpass.getuser()}"
    assert scene.ledger.run("invoice-8472").phase == run_phase
    assert scene.json("quarantine", "show", doubt_id) == answer


def test_the_source_can_be_named(scene: Scene) -> None:
    doubt_id = scene.doubtful_run()
    assert settle(scene, doubt_id, "committed", "--source", "nightly-check") == 0
    assert scene.ledger.verdicts(doubt_id)[0][0].source == "nightly-check"


def test_the_first_verdict_stands_and_the_second_is_told_so(scene: Scene) -> None:
    doubt_id = scene.doubtful_run()
    assert settle(scene, doubt_id, "committed", "--source", "person:alice") == 0
    result = scene.call("quarantine", "resolve", doubt_id, "--verdict", "not_committed", "--note", "no such order")
    assert (result.exit_code, result.stdout) == (5, "")
    assert "committed, by person:alice" in result.stderr
    assert len(result.stderr.splitlines()) == 1
    assert len(scene.ledger.verdicts(doubt_id)) == 1


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--verdict", "committed", "--note", "  "], "a verdict without evidence is a guess"),
        (["--verdict", "committed"], "--note"),
        (["--verdict", "perhaps", "--note", "x"], "committed, not_committed, unknown"),
    ],
)
def test_a_verdict_without_evidence_changes_nothing(scene: Scene, options: list[str], said: str) -> None:
    doubt_id = scene.doubtful_run()
    result = scene.call("quarantine", "resolve", doubt_id, *options)
    assert (result.exit_code, result.stdout) == (2, "")
    assert said in result.stderr
    assert scene.ledger.verdicts(doubt_id) == ()


@pytest.mark.parametrize("command", [["show", "e-9"], ["resolve", "e-9", "--verdict", "unknown", "--note", "x"]])
def test_an_id_that_was_never_in_doubt_is_named(scene: Scene, command: list[str]) -> None:
    result = scene.call("quarantine", *command)
    assert (result.exit_code, result.stdout) == (2, "")
    assert "'e-9' was ever in doubt" in result.stderr


def test_show_tells_the_evidence_and_offers_no_verdict_once_it_is_settled(scene: Scene) -> None:
    doubt_id = scene.doubtful_run()
    settle(scene, doubt_id, "unknown")
    shown = scene.call("quarantine", "show", doubt_id).stdout
    assert "idempotency key key-7: look it up by that" in shown
    assert "--verdict not_committed" in shown
    assert "order 7 is there" in shown
    settle(scene, doubt_id, "committed")
    shown = scene.call("quarantine", "show", doubt_id).stdout
    assert "--verdict" not in shown
    assert "settled: ACKNOWLEDGED" in shown


def test_a_command_repeats_the_ledger_but_never_its_environment(scene: Scene) -> None:
    doubt_id = scene.doubtful_run()
    assert f"--ledger {scene.url}" in scene.call("quarantine", "show", doubt_id).stdout
    named = {"BROWSERMW_LEDGER": scene.url}
    assert "--ledger" not in scene.call("quarantine", "show", doubt_id, environment=named).stdout
