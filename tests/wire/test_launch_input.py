"""What a user gives at the start, checked before anything is launched; the message names the value and the way out."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import browsermw
from browsermw import BrowsermwError, Policy, WireTooWeak
from browsermw.wire.launch import GUARD_ARGS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from browsermw import Runtime

BAD_NAMES = ["", " ", "\t", "x" * 201, "a\nb", "a\x00b", "a\x1bb", "a\u2028b"]


@pytest.fixture
def mw(tmp_path: Path) -> Iterator[Runtime]:
    with browsermw.open(f"sqlite:///{tmp_path / 'agent.db'}", runtime="agent-7") as opened:
        yield opened


@pytest.mark.parametrize("name", BAD_NAMES)
def test_a_runtimes_name_is_checked(name: str) -> None:
    with pytest.raises(ValueError, match="runtime: "):
        browsermw.open("sqlite://", runtime=name)


@pytest.mark.parametrize("run_id", BAD_NAMES)
def test_a_runs_id_is_checked(mw: Runtime, run_id: str) -> None:
    with pytest.raises(ValueError, match="run_id: "):
        mw.run(run_id)


@pytest.mark.parametrize("name", [None, 7, b"agent"])
def test_a_name_that_is_no_text_is_an_error_of_ours(mw: Runtime, name: object) -> None:
    with pytest.raises(ValueError, match="run_id"):
        mw.run(name)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["x" * 200, "Rechnung 8472, Müller", "请求-1"])
def test_a_printable_name_is_fine(mw: Runtime, name: str) -> None:
    with mw.run(name) as run:
        assert run.run_id == name


@pytest.mark.parametrize(
    "argument",
    [
        "--proxy-server=http://127.0.0.1:8080",
        "--proxy-bypass-list=*",
        "--remote-debugging-port=9222",
        "--remote-debugging-pipe",
    ],
)
def test_a_switch_that_guarding_needs_is_refused_by_name(mw: Runtime, argument: str) -> None:
    with pytest.raises(ValueError, match=argument.partition("=")[0]):
        mw.launch_options(args=["--mute-audio", argument])


@pytest.mark.parametrize(
    "proxy",
    [
        {"server": ""},
        {},
        {"server": "ftp://127.0.0.1:21"},
        {"server": "http://127.0.0.1:notaport"},
        {"server": "http://"},
        {"server": "http://127.0.0.1:99999"},
    ],
)
def test_a_proxy_that_cannot_be_used_is_refused(mw: Runtime, proxy: dict[str, str]) -> None:
    with pytest.raises(ValueError, match=r"(?i)proxy"):
        mw.launch_options(proxy=proxy)


def test_what_the_caller_gave_is_kept(mw: Runtime) -> None:
    options = mw.launch_options(headless=True, args=["--mute-audio"], slow_mo=5, executable_path="/opt/chrome")
    assert (options["headless"], options["slow_mo"], options["executable_path"]) == (True, 5, "/opt/chrome")
    assert options["args"][0] == "--mute-audio"
    assert set(GUARD_ARGS) <= set(options["args"])
    assert options["proxy"]["server"].startswith("socks5://127.")
    assert {options[f"handle_{name}"] for name in ("sigint", "sigterm", "sighup")} == {False}


def test_a_runtime_that_is_not_open_says_how_to_open_it() -> None:
    unopened = browsermw.open("sqlite://", runtime="agent-7")
    for use in (unopened.launch_options, unopened.status, lambda: unopened.run("r").__enter__()):
        with pytest.raises(BrowsermwError, match="enter it first"):
            use()


def test_a_runtime_is_opened_once(mw: Runtime) -> None:
    with pytest.raises(BrowsermwError, match="open already"):
        mw.__enter__()


def test_attaching_needs_a_policy_that_allows_it(mw: Runtime) -> None:
    with pytest.raises(WireTooWeak, match="minimum_wire"):
        mw.attach("http://127.0.0.1:9222")


def test_attaching_where_nobody_listens_is_an_error_that_names_the_place(tmp_path: Path) -> None:
    policy = Policy(minimum_wire="attached", attach_timeout_s=0.2)
    with browsermw.open(f"sqlite:///{tmp_path / 'agent.db'}", runtime="agent-7", policy=policy) as mw:
        with pytest.raises(ValueError, match="cdp_url"):
            mw.attach("file:///etc")
        with pytest.raises(WireTooWeak, match=r"127\.0\.0\.1:9"):
            mw.attach("http://127.0.0.1:9")
