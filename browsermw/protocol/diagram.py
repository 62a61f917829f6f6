"""Draw the phase tables, for ``docs/explanation/phases.md``: the docs cannot say something else than the code.

Run ``python -m browsermw.protocol.diagram > docs/explanation/phases.md``; a test fails while the page is stale.
"""

from __future__ import annotations

import sys

from browsermw.protocol.phases import STEPS_OF

HEAD = """# Phases

Drawn from the tables in `browsermw/protocol/phases.py` by `python -m browsermw.protocol.diagram`; a test fails when
this page is stale. A step that is not drawn here does not exist: asking for it raises `IllegalTransition` and changes
nothing.
"""


def draw() -> str:
    """The whole page, as Markdown with one Mermaid diagram and one table for each kind of record."""
    sections = [HEAD]
    for kind, steps in STEPS_OF.items():
        arrows = "\n".join(f"    {old or '[*]'} --> {new}" for old, new in steps)
        rows = "\n".join(f"| {old or '(new)'} | {new} | {why} |" for (old, new), why in steps.items())
        sections.append(
            f"## {kind.capitalize()}\n\n```mermaid\nstateDiagram-v2\n{arrows}\n```\n\n"
            f"| from | to | because |\n|---|---|---|\n{rows}\n"
        )
    return "\n".join(sections)


if __name__ == "__main__":
    sys.stdout.write(draw())
