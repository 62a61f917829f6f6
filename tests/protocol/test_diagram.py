"""The page in the docs says what the tables say."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from browsermw.protocol.diagram import draw
from browsermw.protocol.phases import STEPS_OF

PAGE = Path(__file__).parents[2] / "docs" / "explanation" / "phases.md"


def test_the_page_is_fresh() -> None:
    assert PAGE.read_text("utf-8") == draw(), (
        f"{PAGE} is stale: python -m browsermw.protocol.diagram > docs/explanation/phases.md"
    )


def test_the_command_prints_the_page() -> None:
    printed = subprocess.run([sys.executable, "-m", "browsermw.protocol.diagram"], check=True, capture_output=True)
    assert printed.stdout.decode("utf-8") == draw()


def test_every_step_is_drawn_once_as_an_arrow_and_once_as_a_row() -> None:
    lines = draw().splitlines()
    for steps in STEPS_OF.values():
        for (old, new), reason in steps.items():
            assert f"    {old or '[*]'} --> {new}" in lines
            assert f"| {old or '(new)'} | {new} | {reason} |" in lines
    assert sum(" --> " in line for line in lines) == sum(len(steps) for steps in STEPS_OF.values())
