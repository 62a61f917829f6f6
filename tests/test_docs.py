"""The documents say what the code does: pages made from it are fresh, names exist, links lead somewhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from typer.main import get_command

import browsermw
from browsermw.cli import app
from browsermw.testing.channels import CHANNELS, OPENERS, expected
from browsermw.testing.channels.suite import Row, markdown_page
from tests.reference_pages import FOLDER, PAGES

ROOT = Path(__file__).resolve().parents[1]
TEXTS = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
LINK = re.compile(r"\]\((?!https?:)([^)#]+)")


@pytest.mark.parametrize("name", PAGES)
def test_a_page_made_from_the_code_is_fresh(name: str) -> None:
    shown = (FOLDER / name).read_text(encoding="utf-8")
    assert shown == PAGES[name](), f"run `python -m tests.reference_pages` to write docs/reference/{name} again"


@pytest.mark.parametrize("text", TEXTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_link_leads_somewhere(text: Path) -> None:
    for link in LINK.findall(text.read_text(encoding="utf-8")):
        assert (text.parent / link).exists(), f"{text.name} links to {link}"


def test_every_command_is_in_the_reference() -> None:
    page = (ROOT / "docs" / "reference" / "command-line.md").read_text(encoding="utf-8")
    for name, command in get_command(app).commands.items():  # type: ignore[attr-defined]
        assert f"`{name}" in page
        for inner in getattr(command, "commands", {}):
            assert f"{name} {inner}" in page


def test_the_page_on_coverage_is_what_the_doctor_writes_where_all_is_as_expected() -> None:
    page = (ROOT / "docs" / "explanation" / "coverage.md").read_text(encoding="utf-8")
    rows = [
        Row(it.name, it.group, engine, expected(it.name, engine), expected(it.name, engine), "", 0.0)
        for engine in OPENERS
        for it in CHANNELS
    ]
    measured_with = re.search(r"Measured with (.+)\.$", page, re.MULTILINE)
    assert measured_with is not None
    how = "run `browsermw doctor --markdown > docs/explanation/coverage.md`"
    assert page == markdown_page(rows, measured_with[1]), how


def test_the_documents_name_no_call_that_does_not_exist() -> None:
    named = re.compile(r"\b(mw|run)\.([a-z_]+)\(")
    kinds = {"mw": browsermw.Runtime, "run": browsermw.Run}
    for text in TEXTS:
        for variable, name in named.findall(text.read_text(encoding="utf-8")):
            assert hasattr(kinds[variable], name), f"{text.name} names {variable}.{name}()"


def test_the_readme_names_the_two_commands_first() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert readme.index("make demo") < readme.index("make test") < readme.index("## ")
