"""Run the tests in three pytest processes, one after another, and add up what they report.

Playwright's sync and async flavours cannot share a process, so each has a folder and a run of its own, spread over a
few workers: half of a browser test's time is waiting. Called by ``make test``. Every run happens, also after one that
failed; the exit code is 0 only when all passed. Further arguments go to pytest.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree as ET

RUN_LIMIT_S = 1500.0
_GRACE_S = 20.0
WORKERS = os.environ.get("BROWSERMW_TEST_WORKERS") or str(min(4, os.cpu_count() or 1))
"""For each run; each of them has a browser, an agent or two and a database of its own. ``0`` is none but pytest."""

_BROWSER_FOLDERS = ("tests/browser_sync", "tests/browser_async")
_RUNS = {
    "core": ("tests", *(f"--ignore={folder}" for folder in _BROWSER_FOLDERS)),
    "browser, sync": (_BROWSER_FOLDERS[0],),
    "browser, async": (_BROWSER_FOLDERS[1],),
}


@dataclass(frozen=True)
class Tally:
    """What one run came to.

    Attributes:
        passed: Tests that passed.
        failed: Tests that failed or broke in a fixture; a run without a report counts as one.
        skipped: Tests that were skipped or failed as expected.
        is_good: Whether pytest itself ended with exit code 0.
    """

    passed: int
    failed: int
    skipped: int
    is_good: bool


def main() -> int:
    """Run all suites from the current folder; return the exit code."""
    # Whoever ends this ends the running suite too, which has a process group of its own.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    tallies: list[Tally] = []
    with tempfile.TemporaryDirectory(prefix="browsermw-tests-") as folder:
        for number, (name, arguments) in enumerate(_RUNS.items()):
            if not Path(arguments[0]).is_dir():
                _say(f"== {name}: skipped, there is no folder {arguments[0]}")
                continue
            _say(f"== {name}: pytest {' '.join(arguments)}")
            started = time.monotonic()
            tallies.append(_run([*arguments, *sys.argv[1:]], Path(folder) / f"run-{number}.xml"))
            verdict = "passed" if tallies[-1].is_good else "FAILED"
            _say(f"== {name}: {verdict} in {time.monotonic() - started:.1f} s")
    totals = [sum(counts) for counts in zip(*((t.passed, t.failed, t.skipped) for t in tallies), strict=True)]
    passed, failed, skipped = totals or (0, 0, 0)
    _say(f"{passed} passed, {failed} failed, {skipped} skipped")
    return 0 if passed and all(tally.is_good for tally in tallies) else 1


def _run(arguments: list[str], report: Path) -> Tally:
    # Each worker begins with a stretch of its own, so that neighbours share a module's browser.
    workers = ["-n", WORKERS, "--dist", "worksteal"]
    command = [sys.executable, "-m", "pytest", *workers, *arguments, f"--junitxml={report}"]
    child = subprocess.Popen(command, stdin=subprocess.DEVNULL, start_new_session=True)
    try:
        exit_code = child.wait(timeout=RUN_LIMIT_S)
    except BaseException as error:
        _end(child)
        if not isinstance(error, subprocess.TimeoutExpired):
            raise
        _say(f"ended after its limit of {RUN_LIMIT_S:g} s")
        exit_code = 1
    if not report.exists():
        _say(f"pytest wrote no report (exit code {exit_code})")
        return Tally(0, 1, 0, is_good=False)
    return _read(report, exit_code)


def _read(report: Path, exit_code: int) -> Tally:
    suites = list(ET.parse(report).getroot().iter("testsuite"))  # noqa: S314 (pytest wrote it just now)
    tests, failures, errors, skipped = (
        sum(int(suite.get(name, 0)) for suite in suites) for name in ("tests", "failures", "errors", "skipped")
    )
    # A test that passes and then breaks in its teardown is one test with one error; a worker that dies leaves none.
    failed = max(failures + errors, int(exit_code != 0))
    return Tally(max(0, tests - failures - errors - skipped), failed, skipped, is_good=exit_code == 0)


def _end(child: subprocess.Popen[bytes]) -> None:
    """Let pytest tear its fixtures down (browsers, databases); then end what is left of its group."""
    for number, wait_s in ((signal.SIGINT, _GRACE_S), (signal.SIGKILL, None)):
        try:
            os.killpg(child.pid, number)
            child.wait(timeout=wait_s)
        except (ProcessLookupError, subprocess.TimeoutExpired):
            continue


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
