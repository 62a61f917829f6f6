"""``browsermw doctor``: what it measures is the suite's; here is what it prints, and how it ends."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner

from browsermw.cli import app, doctor
from browsermw.testing.channels import BY_NAME, CHANNELS, OPENERS, Engine, State, expected
from browsermw.testing.channels.suite import Row, condensed, markdown_page
from browsermw.wire.browser_find import FoundBrowser

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from browsermw.testing.channels import Channel


def row(name: str, engine: Engine = Engine.SEALED, **measured: State | None) -> Row:
    wanted = expected(name, engine)
    return Row(name, BY_NAME[name].group, engine, measured.get("state", wanted), wanted, "arrived: POST", 0.1)


@pytest.fixture
def measuring(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Callable[[Sequence[Row]], None]]:
    """Make the suite come to these rows."""
    before = signal.getsignal(signal.SIGTERM)
    monkeypatch.setattr(doctor, "find_browser", lambda: FoundBrowser(tmp_path / "chromium", "env", "1.2.3.4"))

    def come_to(rows: Sequence[Row]) -> None:
        monkeypatch.setattr(doctor, "run_suite", lambda *_: list(rows))

    yield come_to
    signal.signal(signal.SIGTERM, before)


def test_help_names_the_engines_and_the_options() -> None:
    shown = CliRunner().invoke(app, ["doctor", "--help"], env={"COLUMNS": "200"}).stdout
    for word in ("--engine", "sealed", "attached", "--channel", "--json", "--markdown"):
        assert word in shown


def test_a_real_run_measures_what_it_is_asked_for() -> None:
    """In a process of its own: Playwright's two flavours cannot share one, and these tests share theirs."""
    asked = ["--engine", "sealed", "--channel", "fetch", "--channel", "form-dialog", "--json"]
    ended = subprocess.run(
        [sys.executable, "-m", "browsermw", "doctor", *asked], capture_output=True, check=False, timeout=100, text=True
    )
    assert (ended.returncode, ended.stderr) == (0, "")
    found = json.loads(ended.stdout)
    assert [(it["channel"], it["engine"], it["state"]) for it in found["channels"]] == [
        ("fetch", "sealed", "write-ahead"),
        ("form-dialog", "sealed", "no effect"),
    ]
    assert found["ok"]
    assert found["hooks"] == {"unclassified": [], "missing": []}
    assert set(found["machine"]) >= {"browser", "browser_version", "playwright", "python", "sqlite"}


def test_a_channel_that_is_weaker_than_expected_is_named(measuring: Callable[[Sequence[Row]], None]) -> None:
    measuring([row("fetch"), row("beacon", state=State.NOT_COVERED)])
    ended = CliRunner().invoke(app, ["doctor"])
    assert ended.exit_code == 1
    assert "beacon on sealed is weaker than expected: not covered, not write-ahead" in ended.stderr
    assert "fetch on sealed" not in ended.stderr


@pytest.mark.parametrize(
    ("state", "how"), [(None, "weaker"), (State.ARMED, "other"), (State.WRITE_AHEAD, "other")], ids=str
)
def test_any_other_state_than_the_expected_one_fails(
    measuring: Callable[[Sequence[Row]], None], state: State | None, how: str
) -> None:
    measuring([replace(row("websocket-after", Engine.ATTACHED, state=state), expected=State.NOT_COVERED)])
    ended = CliRunner().invoke(app, ["doctor"])
    assert ended.exit_code == 1
    assert f"websocket-after on attached is {'weaker' if state is None else how} than expected" in ended.stderr


def test_a_method_that_nobody_classified_fails(
    measuring: Callable[[Sequence[Row]], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    measuring([row("fetch")])
    monkeypatch.setattr(doctor, "unclassified", lambda _: ["Page.triple_click"])
    ended = CliRunner().invoke(app, ["doctor", "--json"])
    assert ended.exit_code == 1
    assert json.loads(ended.stdout)["hooks"]["unclassified"] == ["Page.triple_click"]
    assert "Page.triple_click" in ended.stderr


def test_channels_that_are_alike_make_one_line(measuring: Callable[[Sequence[Row]], None]) -> None:
    rows = [row(name, engine) for engine in OPENERS for name in ("fetch", "xhr", "form", "webrtc")]
    assert [(names, states) for _, names, states in condensed(rows)] == [
        (["fetch", "xhr"], [State.WRITE_AHEAD] * 3),
        (["form"], [State.WRITE_AHEAD] * 3),
        (["webrtc"], [State.CANNOT_LEAVE, State.NOT_COVERED, State.NOT_COVERED]),
    ]
    measuring(rows)
    shown = CliRunner().invoke(app, ["doctor"]).stdout
    assert "fetch, xhr" in shown


def test_the_page_of_the_docs_is_printed_whole(measuring: Callable[[Sequence[Row]], None]) -> None:
    rows = [row("fetch")]
    measuring(rows)
    shown = CliRunner().invoke(app, ["doctor", "--markdown"]).stdout
    assert shown.startswith("# Coverage")
    assert "Chromium 1.2.3.4 and Playwright" in shown
    assert "| page scripts | `fetch` | write-ahead |" in shown
    assert "{" not in markdown_page(rows, "x")


@pytest.mark.parametrize(("option", "value"), [("--channel", "telepathy"), ("--engine", "steam")])
def test_what_is_not_there_is_wrong_usage(measuring: Callable[[Sequence[Row]], None], option: str, value: str) -> None:
    measuring([])
    ended = CliRunner().invoke(app, ["doctor", option, value])
    assert ended.exit_code == 2
    assert value in ended.stderr


def test_without_a_browser_the_way_to_one_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "find_browser", lambda: None)
    ended = CliRunner().invoke(app, ["doctor"])
    assert ended.exit_code == 1
    assert "browsermw install-browser" in ended.stderr


def test_all_channels_are_fired_by_default(
    measuring: Callable[[Sequence[Row]], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[tuple[Sequence[Engine], Sequence[Channel]]] = []
    measuring([])

    def run_suite(engines: Sequence[Engine], channels: Sequence[Channel], _tell: object) -> list[Row]:
        seen.append((engines, channels))
        return []

    monkeypatch.setattr(doctor, "run_suite", run_suite)
    CliRunner().invoke(app, ["doctor"])
    CliRunner().invoke(app, ["doctor", "--markdown"])
    assert seen == [([Engine.SEALED], list(CHANNELS)), (list(Engine), list(CHANNELS))]
