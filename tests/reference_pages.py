"""Writes the reference pages from the docstrings, so that they cannot say something else than the code.

``python -m tests.reference_pages`` rewrites ``docs/reference``; ``test_docs`` fails while a page is stale.
"""

from __future__ import annotations

import inspect
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import browsermw
from browsermw.errors import BrowsermwError
from browsermw.models import Record

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

FOLDER = Path(__file__).resolve().parents[1] / "docs" / "reference"
MADE = "Made from the docstrings by `python -m tests.reference_pages`.\n"
CALLS = (browsermw.Runtime, browsermw.Run)


def errors_page() -> str:
    """All errors, each with the message that it has where nothing more is known."""
    sections = ["# Errors\n", MADE, "Every error says first whether anything left the browser.\n"]
    for name in browsermw.__all__:
        kind = getattr(browsermw, name)
        if inspect.isclass(kind) and issubclass(kind, BrowsermwError):
            parents = ", ".join(f"`{base.__name__}`" for base in kind.__bases__)
            sections.append(f"## {name}\n\nA {parents}.\n\n{inspect.cleandoc(kind.__doc__ or '')}\n")
    return "\n".join(sections)


def policy_page() -> str:
    """The policy's fields with their defaults."""
    head = inspect.cleandoc(browsermw.Policy.__doc__ or "").partition("Attributes:")
    sections = ["# Policy\n", MADE, inspect.cleandoc(sys.modules["browsermw.policy"].__doc__ or "") + "\n"]
    described = _attributes(head[2])
    for name, field in browsermw.Policy.model_fields.items():
        default = sorted(field.default) if isinstance(field.default, frozenset) else field.default
        sections.append(f"## `{name}`\n\n{described[name]}\n\nDefault: `{default!r}`.\n")
    pattern = inspect.cleandoc(sys.modules["browsermw.policy"].compiled_pattern.__doc__ or "").partition("Returns:")[0]
    return "\n".join([*sections, "## URL patterns\n", pattern.strip() + "\n"])


def _attributes(text: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for line in text.strip().splitlines():
        name, colon, rest = line.strip().partition(": ")
        if colon and name.isidentifier():
            found[name] = rest
            current = name
        elif line.strip():
            found[current] += " " + line.strip()
    return found


def api_page() -> str:
    """``open``, ``Runtime``, ``Run`` and the records."""
    sections = ["# API\n", MADE, _described("browsermw.open", browsermw.open, level=2)]
    for kind in CALLS:
        sections.append(f"## {kind.__name__}\n\n```text\n{inspect.cleandoc(kind.__doc__ or '')}\n```\n")
        sections.extend(_described(f"{kind.__name__}.{name}", call, level=3) for name, call in _public(kind))
    sections.append("## Records\n")
    for name in browsermw.__all__:
        kind = getattr(browsermw, name)
        if inspect.isclass(kind) and issubclass(kind, Record):
            sections.append(f"### {name}\n\n```text\n{inspect.cleandoc(kind.__doc__ or '')}\n```\n")
    return "\n".join(sections)


def _public(kind: type) -> Iterator[tuple[str, Callable[..., object]]]:
    inside = set(getattr(kind, "FOR_HOOKS", ()))
    for name, member in vars(kind).items():
        if name.startswith("_") or name in inside:
            continue
        if isinstance(member, property) and member.fget is not None:
            yield name, member.fget
        elif inspect.isfunction(member):
            yield name, member


def _described(called: str, call: Callable[..., object], *, level: int) -> str:
    shown = f"{called}{inspect.signature(call)}".replace("(self)", "()").replace("(self, ", "(")
    text = inspect.cleandoc(call.__doc__ or "")
    return f"{'#' * level} `{called}`\n\n```text\n{shown}\n\n{text}\n```\n"


PAGES = {"errors.md": errors_page, "policy.md": policy_page, "api.md": api_page}


def main() -> None:
    """Rewrite all pages."""
    for name, page in PAGES.items():
        (FOLDER / name).write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
