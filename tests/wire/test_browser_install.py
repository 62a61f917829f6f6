"""The way to a browser, with real executables that stand in for browsers, downloads and apt."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner

from browsermw.cli import app
from browsermw.errors import BrowserMissing
from browsermw.wire import browser_find, browser_install
from browsermw.wire.browser_find import find_browser, registry_folder
from browsermw.wire.browser_install import InstallReport, InstallWays, install_browser

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the stand-ins are shell scripts")

ANSWERS = "echo Chromium 150.0.1.2"
LACKS_A_LIBRARY = "echo 'chrome: error while loading shared libraries: libnss3.so: cannot open' >&2; exit 127"


@dataclass
class Machine:
    """A machine with nothing on PATH but what a test puts there, and an empty Playwright registry."""

    folder: Path

    @property
    def bin(self) -> Path:
        return self.folder / "bin"

    def script(self, path: Path, body: str) -> Path:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"#!/bin/sh\n{body}\n", encoding="utf-8")
        path.chmod(0o755)
        return path

    def system(self, name: str, body: str = ANSWERS) -> Path:
        return self.script(self.bin / name, body)

    def shell_path(self) -> Path:
        """Return where Playwright's headless shell of the installed revision lies."""
        listed = json.loads((browser_find._driver_package() / "browsers.json").read_text(encoding="utf-8"))
        revision = next(b["revision"] for b in listed["browsers"] if b["name"] == "chromium-headless-shell")
        folder = registry_folder() / f"chromium_headless_shell-{revision}"
        return folder / "chrome-headless-shell-linux64" / "chrome-headless-shell"

    def downloaded(self, body: str = ANSWERS) -> Path:
        path = self.script(self.shell_path(), body)
        (path.parent.parent / "INSTALLATION_COMPLETE").touch()
        return path

    def ways(self, download: str) -> InstallWays:
        return InstallWays(
            download=(str(self.script(self.folder / "download", download)),),
            libraries=(str(self.folder / "libraries"),),
        )

    def downloading(self, body: str = ANSWERS) -> str:
        """Return a download script that puts a browser into the registry."""
        path = self.shell_path()
        return (
            f"/bin/mkdir -p '{path.parent}'\necho '| | 0% of 100 MiB'\n"
            f"printf '#!/bin/sh\\n%s\\n' \"{body}\" > '{path}'\n/bin/chmod 755 '{path}'\n"
            f"/bin/touch '{path.parent.parent}/INSTALLATION_COMPLETE'"
        )

    def apt(self, body: str) -> Path:
        """Put an apt-get here that writes its arguments down and then does what the body says."""
        return self.system("apt-get", f'echo "$DEBIAN_FRONTEND: $*" >> "{self.folder}/apt.log"\n{body}')

    def apt_log(self) -> list[str]:
        return (self.folder / "apt.log").read_text(encoding="utf-8").splitlines()


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    machine = Machine(tmp_path)
    machine.bin.mkdir()
    monkeypatch.setenv("PATH", str(machine.bin))
    monkeypatch.setenv("PLAYWRIGHT_BROWSERS_PATH", str(tmp_path / "registry"))
    for name in ("BROWSERMW_BROWSER", "DEBIAN_FRONTEND"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(browser_find, "_MAC_APPLICATIONS", ())
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    return machine


def outcomes(report: InstallReport) -> dict[str, str]:
    return {attempt.way: attempt.outcome for attempt in report.attempts}


def detail(report: InstallReport, way: str) -> str:
    return next(attempt.detail for attempt in report.attempts if attempt.way == way)


class TestFindBrowser:
    @pytest.mark.usefixtures("machine")
    def test_a_bare_machine_has_none(self) -> None:
        assert find_browser() is None

    def test_the_named_one_wins_then_playwrights_own_then_the_systems(
        self, machine: Machine, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        named = machine.script(machine.folder / "my browser", "echo Mine 1.2.3.4")
        monkeypatch.setenv("BROWSERMW_BROWSER", str(named))
        own, system = machine.downloaded(), machine.system("google-chrome")
        seen = []
        for gone in (named, own, system):
            found = find_browser()
            assert found is not None
            seen.append((found.path, found.source, found.version))
            gone.unlink()
            monkeypatch.delenv("BROWSERMW_BROWSER", raising=False)
        assert seen == [
            (named, "env", "1.2.3.4"),
            (own, "playwright", "150.0.1.2"),
            (system, "system", "150.0.1.2"),
        ]

    def test_the_full_chromium_is_another_download_than_the_headless_shell(self, machine: Machine) -> None:
        machine.downloaded()
        assert find_browser(headless=False) is None

    def test_an_interrupted_download_does_not_count(self, machine: Machine) -> None:
        machine.script(machine.shell_path(), ANSWERS)
        assert find_browser() is None

    def test_another_revision_than_the_installed_playwrights_does_not_count(self, machine: Machine) -> None:
        path = machine.downloaded()
        folder = path.parent.parent
        folder.rename(folder.with_name("chromium_headless_shell-1"))
        assert find_browser() is None

    @pytest.mark.parametrize("body", ["exit 1", "echo hello", LACKS_A_LIBRARY])
    def test_a_candidate_that_does_not_answer_is_passed_over(self, machine: Machine, body: str) -> None:
        machine.system("chromium", body)
        chrome = machine.system("google-chrome-stable")
        found = find_browser()
        assert found is not None
        assert found.path == chrome

    def test_a_candidate_that_hangs_is_ended_with_its_children(
        self, machine: Machine, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(browser_find, "ANSWER_LIMIT_S", 1.0)
        machine.system("chromium", f"/bin/sleep 600 &\necho $! > '{machine.folder}/child'\nwait")
        assert find_browser() is None
        assert_gone(machine.folder / "child")

    @pytest.mark.parametrize("name", ["no-such-browser", "/no/such/browser"])
    def test_a_name_that_is_no_executable_is_an_error_that_quotes_it(
        self, machine: Machine, monkeypatch: pytest.MonkeyPatch, name: str
    ) -> None:
        machine.system("chromium")
        monkeypatch.setenv("BROWSERMW_BROWSER", name)
        with pytest.raises(BrowserMissing, match=f"BROWSERMW_BROWSER='{name}' is not an executable"):
            find_browser()

    def test_a_named_program_that_is_no_browser_is_an_error(
        self, machine: Machine, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("BROWSERMW_BROWSER", str(machine.script(machine.folder / "editor", "exit 3")))
        with pytest.raises(BrowserMissing, match=r"does not answer --version \(exit code 3\)"):
            find_browser()


class TestInstallBrowser:
    def test_nothing_is_downloaded_while_a_browser_is_there(self, machine: Machine) -> None:
        system = machine.system("chromium")
        report = install_browser(ways=machine.ways(f"/bin/touch '{machine.folder}/downloaded'"))
        assert report.browser is not None
        assert report.browser.path == system
        assert outcomes(report) == {"named": "skipped", "playwright": "skipped", "system": "found"}
        assert not (machine.folder / "downloaded").exists()

    def test_a_bare_machine_downloads(self, machine: Machine) -> None:
        lines: list[str] = []
        report = install_browser(ways=machine.ways(machine.downloading()), on_line=lines.append)
        assert report.browser is not None
        assert (report.browser.source, report.browser.path) == ("playwright", machine.shell_path())
        assert list(outcomes(report).values()) == ["skipped", "skipped", "skipped", "installed"]
        assert lines == ["| | 0% of 100 MiB"]

    def test_force_downloads_although_a_browser_is_there(self, machine: Machine) -> None:
        machine.system("chromium")
        report = install_browser(force=True, ways=machine.ways(machine.downloading()))
        assert report.browser is not None
        assert report.browser.source == "playwright"

    def test_a_forced_download_that_fails_falls_back_to_what_is_there(self, machine: Machine) -> None:
        system = machine.system("chromium")
        report = install_browser(force=True, ways=machine.ways("exit 1"))
        assert report.browser is not None
        assert report.browser.path == system
        assert list(outcomes(report)) == ["download", "libraries", "named", "playwright", "system"]

    def test_apt_comes_last_and_only_for_root(self, machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
        body = f'[ "$3" = update ] || printf "#!/bin/sh\\n{ANSWERS}\\n" > "{machine.bin}/chromium"\n'
        machine.apt(f'{body}[ "$3" = update ] || /bin/chmod 755 "{machine.bin}/chromium"')
        ways = machine.ways("echo 'Error: getaddrinfo ENOTFOUND cdn'; echo '    at Object.<anonymous>'; exit 1")
        refused = install_browser(ways=ways)
        assert refused.browser is None
        assert "needs root" in detail(refused, "apt")
        assert not (machine.folder / "apt.log").exists()

        monkeypatch.setattr(os, "geteuid", lambda: 0)
        report = install_browser(ways=ways)
        assert report.browser is not None
        assert (report.browser.source, report.browser.path) == ("system", machine.bin / "chromium")
        assert detail(report, "download") == "exit code 1: Error: getaddrinfo ENOTFOUND cdn"
        assert machine.apt_log() == [
            "noninteractive: -o DPkg::Lock::Timeout=60 update",
            "noninteractive: -o DPkg::Lock::Timeout=60 install -y --no-install-recommends chromium",
        ]

    def test_when_apt_cannot_reach_its_servers_it_stops_there(
        self, machine: Machine, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(os, "geteuid", lambda: 0)
        machine.apt("echo 'E: Failed to fetch: no route'; exit 100")
        report = install_browser(ways=machine.ways("exit 1"))
        assert report.browser is None
        assert len(machine.apt_log()) == 1
        assert detail(report, "apt").endswith("update: exit code 100: E: Failed to fetch: no route")

    def test_a_downloaded_browser_that_misses_libraries_gets_them(
        self, machine: Machine, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(os, "geteuid", lambda: 0)
        machine.apt("exit 1")
        library = machine.folder / "library"
        machine.script(machine.folder / "libraries", f": > '{library}'")
        download = machine.downloading(f"[ -e {library} ] || exit 127; {ANSWERS}")
        report = install_browser(ways=machine.ways(download))
        assert report.browser is not None
        assert report.browser.source == "playwright"
        assert (outcomes(report)["download"], outcomes(report)["libraries"]) == ("failed", "installed")

    def test_a_download_without_progress_is_given_up_early(self, machine: Machine) -> None:
        stuck = f"/bin/sleep 600 &\necho $! > '{machine.folder}/child'\necho Downloading\nwait"
        report = install_browser(ways=replace(machine.ways(stuck), progress_within_s=1.0))
        assert detail(report, "download") == "given up after 1 s without any progress"
        assert_gone(machine.folder / "child")

    def test_a_download_with_progress_has_the_whole_limit(self, machine: Machine) -> None:
        slow = f"/bin/sleep 600 &\necho $! > '{machine.folder}/child'\necho '|#| 10% of 170 MiB'\nwait"
        ways = replace(machine.ways(slow), progress_within_s=1.0, download_limit_s=2.0)
        report = install_browser(ways=ways)
        assert detail(report, "download") == "given up after its limit of 2 s"
        assert_gone(machine.folder / "child")

    def test_a_download_that_leaves_its_output_open_ends_when_it_ends(self, machine: Machine) -> None:
        left_open = f"/bin/sleep 600 &\necho $! > '{machine.folder}/child'\n{machine.downloading()}"
        report = install_browser(ways=machine.ways(left_open))
        assert outcomes(report)["download"] == "installed"
        assert_gone(machine.folder / "child")

    def test_a_dry_run_starts_nothing(self, machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(os, "geteuid", lambda: 0)
        machine.apt("")
        report = install_browser(dry_run=True, ways=machine.ways(machine.downloading()))
        assert report.browser is None
        assert (outcomes(report)["download"], outcomes(report)["apt"]) == ("planned", "planned")
        assert not (machine.folder / "apt.log").exists()
        assert not machine.shell_path().exists()


class TestCommand:
    def test_it_lists_each_way_that_failed_and_exits_with_1(
        self, machine: Machine, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(browser_install, "InstallWays", lambda: machine.ways("echo no network; exit 7"))
        answer = CliRunner().invoke(app, ["install-browser"])
        assert answer.exit_code == 1
        for said in (
            "not downloaded",
            "on PATH answers",
            "exit code 7: no network",
            "no apt-get",
            "BROWSERMW_BROWSER",
        ):
            assert said in answer.stdout

    def test_json_is_all_there_is_on_standard_output(self, machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(browser_install, "InstallWays", lambda: machine.ways(machine.downloading()))
        answer = CliRunner().invoke(app, ["install-browser", "--json"])
        assert answer.exit_code == 0
        assert json.loads(answer.stdout)["browser"]["path"] == str(machine.shell_path())
        assert "0% of 100 MiB" in answer.stderr

    @pytest.mark.usefixtures("machine")
    def test_a_wrong_name_is_told_without_a_traceback(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("BROWSERMW_BROWSER", "/no/such")
        answer = CliRunner().invoke(app, ["install-browser", "--json"])
        assert answer.exit_code == 1
        assert "'/no/such'" in json.loads(answer.stdout)["error"]


def assert_gone(noted: Path) -> None:
    """Fail when the process whose id was written down does not end; an unreaped one counts as gone."""
    pid = int(noted.read_text(encoding="utf-8"))
    deadline = time.monotonic() + 5
    # It is no child of ours, so there is no end to wait for; a kill takes effect a little later.
    while runs(pid):
        assert time.monotonic() < deadline, f"process {pid} still runs"
        time.sleep(0.01)


def runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    answer = subprocess.run(["/bin/cat", f"/proc/{pid}/stat"], capture_output=True, text=True, check=False)
    return answer.stdout.rpartition(")")[2].split()[:1] not in (["Z"], ["X"])
