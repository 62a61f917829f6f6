"""``make test`` runs everything, adds it up, and is green only when all of it is."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

RUNNER = Path(__file__).with_name("run_suites.py")
PASSES = "def test_good(): pass\n"
FAILS = "def test_bad(): assert False\n"


def run(root: Path, workers: str = "0", **suites: str) -> subprocess.CompletedProcess[str]:
    for name, source in suites.items():
        folder = root / "tests" / name.replace("core", ".")
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"test_of_{name}.py").write_text(source, encoding="utf-8")
    (root / "pytest.ini").write_text("[pytest]\naddopts = -p no:cacheprovider\n", encoding="utf-8")
    # Without the plugins that these tests of nothing do not need: loading them takes most of the time.
    plugins = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_PLUGINS": "xdist.plugin"}
    env = {**os.environ, **plugins, "BROWSERMW_TEST_WORKERS": workers}
    return subprocess.run([sys.executable, RUNNER], cwd=root, env=env, capture_output=True, text=True, check=False)


def test_the_counts_of_all_runs_are_added_up(tmp_path: Path) -> None:
    skips = "import pytest\n@pytest.mark.skip\ndef test_not_now(): pass\n" + PASSES
    answer = run(tmp_path, core=PASSES, browser_sync=skips, browser_async=PASSES)
    assert answer.returncode == 0
    assert answer.stdout.splitlines()[-1] == "3 passed, 0 failed, 1 skipped"


def test_later_runs_happen_after_a_failure_and_the_exit_code_tells(tmp_path: Path) -> None:
    answer = run(tmp_path, core=FAILS, browser_sync="import no_such_module\n", browser_async=PASSES)
    assert answer.returncode == 1
    assert answer.stdout.splitlines()[-1] == "1 passed, 2 failed, 0 skipped"


def test_a_folder_without_tests_is_a_failure(tmp_path: Path) -> None:
    answer = run(tmp_path, core=PASSES, browser_sync="", browser_async=PASSES)
    assert answer.returncode == 1
    assert "== browser, sync: FAILED" in answer.stdout


def test_a_folder_that_is_not_there_is_skipped_with_a_line(tmp_path: Path) -> None:
    answer = run(tmp_path, core=PASSES)
    assert answer.returncode == 0
    assert "== browser, async: skipped, there is no folder tests/browser_async" in answer.stdout
    assert answer.stdout.splitlines()[-1] == "1 passed, 0 failed, 0 skipped"


def test_a_run_that_dies_without_a_report_is_a_failure(tmp_path: Path) -> None:
    answer = run(tmp_path, core=PASSES, browser_sync="import os\nos._exit(0)\n")
    assert answer.returncode == 1
    assert answer.stdout.splitlines()[-1] == "1 passed, 1 failed, 0 skipped"


def test_a_worker_that_dies_is_a_failure(tmp_path: Path) -> None:
    answer = run(tmp_path, workers="2", core="import os\ndef test_bad(): os._exit(0)\n")
    assert answer.returncode == 1
    assert answer.stdout.splitlines()[-1] == "0 passed, 1 failed, 0 skipped"
