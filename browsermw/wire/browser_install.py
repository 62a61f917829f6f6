"""How a machine gets a Chromium: take what is there, else Playwright's download, else the system's packages.

Decides the order and when a way has had its time, and keeps for each way why it did not work. Called by
``browsermw install-browser``. Never asks for input, never waits without a limit, and never downloads while a
usable browser is there unless it is told to.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from browsermw.wire.bounded_child import run_bounded
from browsermw.wire.browser_find import (
    FoundBrowser,
    broken_playwright_browser,
    find_browser,
    named_browser,
    playwright_browser,
    system_browser,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["Attempt", "FoundBrowser", "InstallReport", "InstallWays", "find_browser", "install_browser"]

Outcome = Literal["found", "installed", "failed", "skipped", "planned"]

_Step = tuple[Outcome, str, FoundBrowser | None]

_SOCKET_LIMIT = "PLAYWRIGHT_DOWNLOAD_CONNECTION_TIMEOUT"
_PLAYWRIGHT = (sys.executable, "-m", "playwright")
_APT = ("apt-get", "-o", "DPkg::Lock::Timeout=60")
_PROGRESS = re.compile(r"\d+% of ")


@dataclass(frozen=True)
class InstallWays:
    """The commands that may be run and the time each may take.

    Attributes:
        download: Playwright's own download. Without Playwright's ``--force``: that one deletes the browser
            that is there when the network then fails.
        download_limit_s: Seconds for the whole download.
        progress_within_s: Seconds until its first line of progress. On a closed network Playwright tries five
            times, and each try may hang for its socket's time-out, so this is what ends it.
        libraries: Installs the libraries that a downloaded Chromium misses (root on Debian and Ubuntu).
        apt: The commands that install the system's Chromium (root on Debian and Ubuntu), in order.
        apt_limit_s: Seconds for each command of ``libraries`` and ``apt``.
    """

    download: tuple[str, ...] = (*_PLAYWRIGHT, "install", "chromium")
    download_limit_s: float = 300.0
    progress_within_s: float = 60.0
    libraries: tuple[str, ...] = (*_PLAYWRIGHT, "install-deps", "chromium")
    apt: tuple[tuple[str, ...], ...] = (
        (*_APT, "update"),
        (*_APT, "install", "-y", "--no-install-recommends", "chromium"),
    )
    apt_limit_s: float = 300.0


@dataclass(frozen=True)
class Attempt:
    """One way that was tried, or would be.

    Attributes:
        way: Its name: "named", "playwright", "system", "download", "libraries" or "apt".
        outcome: What came of it.
        detail: The browser's path, or why the way did not lead to one.
        took_s: Seconds that it took.
    """

    way: str
    outcome: Outcome
    detail: str
    took_s: float = 0.0


@dataclass(frozen=True)
class InstallReport:
    """What the search and the installation came to.

    Attributes:
        browser: The browser that a launch will now take; None when there is none
            (or with ``dry_run``, not yet).
        attempts: Each way in the order it was tried.
    """

    browser: FoundBrowser | None
    attempts: tuple[Attempt, ...]


def install_browser(
    *,
    force: bool = False,
    dry_run: bool = False,
    ways: InstallWays | None = None,
    on_line: Callable[[str], None] | None = None,
) -> InstallReport:
    """Make sure that this machine has a usable Chromium.

    Args:
        force: Download Playwright's own Chromium although a usable browser is there; that one serves if the
            download fails.
        dry_run: Only look; name the ways that would be tried.
        ways: Other commands and limits than the usual ones.
        on_line: Called with each line that a download or installation prints.

    Returns:
        The browser, and every way that was tried with what came of it.

    Raises:
        BrowserMissing: ``BROWSERMW_BROWSER`` names something that is not a browser.
    """
    installation = _Installation(ways or InstallWays(), force=force, dry_run=dry_run, on_line=on_line)
    attempts: list[Attempt] = []
    for way, step in installation.steps():
        started = time.monotonic()
        outcome, detail, browser = step()
        attempts.append(Attempt(way, outcome, detail, round(time.monotonic() - started, 3)))
        if browser is not None:
            return InstallReport(browser, tuple(attempts))
    return InstallReport(None, tuple(attempts))


class _Installation:
    """The ways one after another; each says what came of it and gives the browser it led to."""

    def __init__(self, ways: InstallWays, *, force: bool, dry_run: bool, on_line: Callable[[str], None] | None) -> None:
        self._ways = ways
        self._force = force
        self._dry_run = dry_run
        self._on_line = on_line

    def steps(self) -> Iterator[tuple[str, Callable[[], _Step]]]:
        """Yield the ways in order: what is there comes before the download unless that is forced."""
        fetch = (("download", self._download), ("libraries", self._libraries))
        if self._force:
            yield from fetch
        yield "named", self._named
        yield "playwright", self._playwright
        yield "system", self._system
        if not self._force:
            yield from fetch
        yield "apt", self._apt

    def _named(self) -> _Step:
        return _look_up(named_browser(), "BROWSERMW_BROWSER is not set")

    def _playwright(self) -> _Step:
        broken = broken_playwright_browser()
        return _look_up(playwright_browser(), f"does not start: {broken}" if broken else "not downloaded")

    def _system(self) -> _Step:
        return _look_up(system_browser(), "no chromium, chrome or edge on PATH answers --version")

    def _download(self) -> _Step:
        if self._dry_run:
            return "planned", " ".join(self._ways.download), None
        environment = {} if _SOCKET_LIMIT in os.environ else {_SOCKET_LIMIT: "15000"}
        end = run_bounded(
            self._ways.download,
            limit_s=self._ways.download_limit_s,
            sign_of_life=_PROGRESS,
            sign_within_s=self._ways.progress_within_s,
            on_line=self._on_line,
            environment=environment,
        )
        if end.failure is not None:
            return "failed", end.failure, None
        return _installed(playwright_browser(), f"downloaded, but {broken_playwright_browser() or 'not found'}")

    def _libraries(self) -> _Step:
        """A downloaded Chromium on a bare machine misses system libraries; Playwright knows which."""
        if broken_playwright_browser() is None:
            return "skipped", "no downloaded Chromium that misses libraries", None
        return self._with_packages((self._ways.libraries,), playwright_browser)

    def _apt(self) -> _Step:
        return self._with_packages(self._ways.apt, system_browser)

    def _with_packages(
        self, commands: tuple[tuple[str, ...], ...], look_up: Callable[[], FoundBrowser | None]
    ) -> _Step:
        refusal = _no_packages_reason()
        if refusal is not None:
            return "skipped", refusal, None
        if self._dry_run:
            return "planned", " && ".join(" ".join(command) for command in commands), None
        for command in commands:
            end = run_bounded(
                command,
                limit_s=self._ways.apt_limit_s,
                on_line=self._on_line,
                environment={"DEBIAN_FRONTEND": "noninteractive"},
            )
            if end.failure is not None:
                return "failed", f"{' '.join(command)}: {end.failure}", None
        return _installed(look_up(), "installed, but no browser answers --version")


def _look_up(browser: FoundBrowser | None, otherwise: str) -> _Step:
    return ("found", str(browser.path), browser) if browser else ("skipped", otherwise, None)


def _installed(browser: FoundBrowser | None, otherwise: str) -> _Step:
    return ("installed", str(browser.path), browser) if browser else ("failed", otherwise, None)


def _no_packages_reason() -> str | None:
    """Say why the system's packages are out of reach, or None when they are not."""
    if shutil.which("apt-get") is None:
        return "no apt-get: not Debian or Ubuntu"
    if sys.platform == "win32" or os.geteuid() != 0:
        return "apt-get needs root; run: sudo apt-get install chromium"
    return None
