"""Which Chromium this machine has: Playwright's own download, the system's, or the one that is named.

Decides what counts as a usable browser: it is there, whole, and answers ``--version`` in time. Called by the
launch options and by ``browsermw install-browser``. Never downloads or installs, and never starts
Playwright's driver: it reads the list of revisions that the installed Playwright carries.
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from browsermw.errors import BrowserMissing
from browsermw.wire.bounded_child import run_bounded

if TYPE_CHECKING:
    from collections.abc import Iterator

ENVIRONMENT_NAME = "BROWSERMW_BROWSER"
ANSWER_LIMIT_S = 20.0

BrowserSource = Literal["playwright", "system", "env"]

_SYSTEM_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "microsoft-edge")
_MAC_APPLICATIONS = ("Chromium", "Google Chrome", "Microsoft Edge")
_WINDOWS_PROGRAMS = (
    "Google/Chrome/Application/chrome.exe",
    "Chromium/Application/chrome.exe",
    "Microsoft/Edge/Application/msedge.exe",
)
_VERSION = re.compile(r"(?<![\d.])\d+(?:\.\d+){3}(?![\d.])")

# Folder prefix in Playwright's registry, and where the program lies in it on Linux, macOS and Windows. A
# headless launch takes the headless shell, which is a download of its own.
_FULL = ("chromium", ("*/chrome", "*/*.app/Contents/MacOS/*", "*/chrome.exe"))
_SHELL = (
    "chromium_headless_shell",
    ("*/chrome-headless-shell", "*/headless_shell", "*/chrome-headless-shell.exe"),
)


@dataclass(frozen=True)
class FoundBrowser:
    """A Chromium that can be started.

    Attributes:
        path: Its executable.
        source: Where it comes from: Playwright's own download, the system, or ``BROWSERMW_BROWSER``.
        version: What it answered to ``--version``, such as ``156.0.8078.114``; "unknown" where asking would
            open a window (Windows).
    """

    path: Path
    source: BrowserSource
    version: str


def find_browser(*, headless: bool = True) -> FoundBrowser | None:
    """Look for a usable Chromium: the named one, else Playwright's own, else the system's.

    A launch needs ``executable_path`` only when the source is not ``playwright``. Nothing is changed; each
    candidate is asked once for its version.

    Args:
        headless: Whether Playwright's headless shell will do; False asks for its full Chromium.

    Returns:
        The first usable browser, or None when the machine has none.

    Raises:
        BrowserMissing: ``BROWSERMW_BROWSER`` is set and does not name a browser that answers.
    """
    return named_browser() or playwright_browser(headless=headless) or system_browser()


def named_browser() -> FoundBrowser | None:
    """Return the browser that ``BROWSERMW_BROWSER`` names, or None when the variable is unset or empty.

    Raises:
        BrowserMissing: The variable is set and does not name a browser that answers.
    """
    value = os.environ.get(ENVIRONMENT_NAME)
    if not value:
        return None
    named = shutil.which(value)
    if named is None:
        raise BrowserMissing(
            f"Nothing left the browser, none was started: {ENVIRONMENT_NAME}={value!r} is not an executable "
            "file. Name a Chromium or Chrome executable, or unset the variable."
        )
    path = Path(named).absolute()
    version, reason = _ask_version(path)
    if version is None:
        raise BrowserMissing(
            f"Nothing left the browser, none was started: {ENVIRONMENT_NAME}={value!r} does not answer "
            f"--version ({reason}). Name a Chromium or Chrome executable, or unset the variable."
        )
    return FoundBrowser(path, "env", version)


def playwright_browser(*, headless: bool = True) -> FoundBrowser | None:
    """Return the Chromium that Playwright downloaded for itself, when it is whole and answers."""
    for path in _playwright_executables(headless=headless):
        version, _ = _ask_version(path)
        if version is not None:
            return FoundBrowser(path, "playwright", version)
    return None


def system_browser() -> FoundBrowser | None:
    """Return the first Chromium, Chrome or Edge on PATH or at its usual place that answers."""
    for path in _system_executables():
        version, _ = _ask_version(path)
        if version is not None:
            return FoundBrowser(path, "system", version)
    return None


def broken_playwright_browser() -> str | None:
    """Say why Playwright's own Chromium is there and does not answer (a missing library), or None."""
    for path in _playwright_executables(headless=True):
        version, reason = _ask_version(path)
        if version is None:
            return reason
    return None


def registry_folder() -> Path:
    """Return the folder where Playwright keeps its browsers, found by Playwright's own rules."""
    named = os.environ.get("PLAYWRIGHT_BROWSERS_PATH")
    if named == "0":
        return _driver_package() / ".local-browsers"
    if named:
        return Path(named).absolute()
    if sys.platform == "win32":
        cache = os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local"
    elif sys.platform == "darwin":
        cache = Path.home() / "Library" / "Caches"
    else:
        cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "ms-playwright"


def _driver_package() -> Path:
    spec = importlib.util.find_spec("playwright")
    if spec is None or not spec.submodule_search_locations:
        raise BrowserMissing("Nothing left the browser, none was started: the package playwright is not installed.")
    return Path(next(iter(spec.submodule_search_locations))) / "driver" / "package"


def _playwright_executables(*, headless: bool) -> Iterator[Path]:
    prefix, patterns = _SHELL if headless else _FULL
    name = prefix.replace("_", "-")
    listed = json.loads((_driver_package() / "browsers.json").read_text(encoding="utf-8"))["browsers"]
    for revision in (browser["revision"] for browser in listed if browser["name"] == name):
        folder = registry_folder() / f"{prefix}-{revision}"
        # Playwright writes the marker last: without it the folder is what an interrupted download left.
        if (folder / "INSTALLATION_COMPLETE").exists():
            yield from (path for pattern in patterns for path in folder.glob(pattern) if path.is_file())


def _system_executables() -> Iterator[Path]:
    yield from (Path(path) for path in map(shutil.which, _SYSTEM_NAMES) if path is not None)
    if sys.platform == "darwin":
        for root in (Path("/Applications"), Path.home() / "Applications"):
            for name in _MAC_APPLICATIONS:
                yield root / f"{name}.app" / "Contents" / "MacOS" / name
    if sys.platform == "win32":
        for variable in ("PROGRAMFILES", "PROGRAMFILES(X86)", "LOCALAPPDATA"):
            if root_name := os.environ.get(variable):
                yield from (Path(root_name) / program for program in _WINDOWS_PROGRAMS)


def _ask_version(path: Path) -> tuple[str | None, str]:
    """Return the version that a browser answers, or None and why it gave none."""
    if not path.is_file():
        return None, "no such file"
    if sys.platform == "win32":
        # Chrome on Windows prints nothing for --version and opens a window; its folders carry the version.
        beside = (folder.name for folder in path.parent.iterdir() if _VERSION.fullmatch(folder.name))
        return next(beside, "unknown"), ""
    end = run_bounded([str(path), "--version"], limit_s=ANSWER_LIMIT_S)
    if end.failure is not None:
        return None, end.failure
    found = next(filter(None, (_VERSION.search(line) for line in end.lines)), None)
    return (found[0], "") if found else (None, "its answer holds no version")
