"""The top level of the repository stays as small as it was agreed to be."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
ALLOWED = {
    "LICENSE",
    "Makefile",
    "README.md",
    "benchmarks",
    "browsermw",
    "docs",
    "examples",
    "fixtures",
    "pyproject.toml",
    "tests",
}


def strangers(paths: list[str]) -> list[str]:
    """Return the top-level names among the paths that are neither allowed nor dotfiles."""
    names = {path.split("/", 1)[0] for path in paths}
    return sorted(name for name in names if name not in ALLOWED and not name.startswith("."))


def tracked(root: Path) -> list[str]:
    """Return every path that git tracks below the root."""
    # A checkout may belong to another user than the one who tests it (root in a container).
    command = ["git", "-c", "safe.directory=*", "ls-files", "-z"]
    answer = subprocess.run(command, cwd=root, capture_output=True, check=True, text=True)
    return [path for path in answer.stdout.split("\0") if path]


def test_only_the_agreed_names_stand_at_top_level() -> None:
    if not (ROOT / ".git").exists():
        pytest.skip("not a git checkout")
    paths = tracked(ROOT)
    assert "pyproject.toml" in paths
    assert strangers(paths) == []


def test_a_file_or_folder_beside_the_agreed_ones_is_named(tmp_path: Path) -> None:
    for name in ("CHANGELOG.md", "scripts/release.py", ".ci/run", "docs/changelog.md"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    subprocess.run(["git", "add", "."], cwd=tmp_path, check=True)
    assert strangers(tracked(tmp_path)) == ["CHANGELOG.md", "scripts"]
