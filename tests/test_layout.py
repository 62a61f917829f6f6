"""Who may import whom: every import in the package is read and held against the agreed direction."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parent.parent
OURS = "browsermw"

# What a package of ours may import from us, where that is limited.
MAY_IMPORT = {"protocol": {"protocol", "models", "policy", "errors"}}
# Packages that never import each other; run and runtime join them.
APART = {"ledger", "wire", "page"}
# Third-party libraries and the only places (below the package) that may import them.
CONFINED = {
    "sqlalchemy": ("ledger",),
    "alembic": ("ledger",),
    "playwright": ("hooks", "wire/routed.py", "testing"),
    "websockets": ("wire/cdp.py",),
    "typer": ("cli",),
    "rich": ("cli",),
    "wrapt": ("hooks",),
}


@dataclass(frozen=True)
class Import:
    """One imported module and where the import stands; the place is relative to the package's folder."""

    place: Path
    line: int
    module: str


def imports_of(package: Path) -> Iterator[Import]:
    """Yield every import of every module below the package's folder, also those for type checkers only."""
    for path in sorted(package.rglob("*.py")):
        place = path.relative_to(package)
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"), str(path))):
            if isinstance(node, ast.Import):
                yield from (Import(place, node.lineno, alias.name) for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                base = _absolute(node, place)
                for alias in node.names:
                    yield Import(place, node.lineno, _module_named(package, base, alias.name))


def _absolute(node: ast.ImportFrom, place: Path) -> str:
    if not node.level:
        return node.module or ""
    above = (OURS, *place.parts)[: -node.level]
    return ".".join((*above, *([node.module] if node.module else [])))


def _module_named(package: Path, base: str, name: str) -> str:
    """``from a import b`` imports the module a.b where there is one of ours, and else a."""
    parts = base.split(".")
    inner = package.parent.joinpath(*parts, name)
    is_ours = parts[0] == OURS and (inner.is_dir() or inner.with_suffix(".py").is_file())
    return f"{base}.{name}" if is_ours else base


def broken_rules(package: Path) -> list[str]:
    """Return one line, ``file:line: what and why``, for each import that breaks a rule."""
    found = ((read, _complaint(read)) for read in imports_of(package))
    return [f"{OURS}/{read.place.as_posix()}:{read.line}: {said}" for read, said in found if said]


def _complaint(read: Import) -> str | None:
    root, *inner = read.module.split(".")
    if root in CONFINED:
        places = CONFINED[root]
        here = read.place.as_posix()
        if not any(here == place or here.startswith(f"{place}/") for place in places):
            return f"{root} may only be imported in {', '.join(places)}"
    if root != OURS:
        return None
    importer = read.place.parts[0]
    target = inner[0] if inner else OURS
    if importer in MAY_IMPORT and target not in MAY_IMPORT[importer]:
        return f"{importer} may not import {read.module}"
    if importer in APART and target in APART - {importer}:
        return f"{importer} and {target} may not import each other"
    return None


def test_every_import_of_the_package_keeps_the_direction() -> None:
    assert any(imports_of(ROOT / OURS))
    assert "\n".join(broken_rules(ROOT / OURS)) == ""


BROKEN = {
    ("protocol/phases.py", "from browsermw.ledger import store"): "protocol may not import browsermw.ledger",
    ("protocol/phases.py", "import browsermw"): "protocol may not import browsermw",
    ("protocol/phases.py", "from browsermw import runtime"): "protocol may not import browsermw.runtime",
    ("protocol/deep/er.py", "from ... import runtime"): "protocol may not import browsermw.runtime",
    ("protocol/phases.py", "from ..page import probe"): "protocol may not import browsermw.page",
    ("ledger/store.py", "from browsermw.wire.gate import Gate"): "ledger and wire may not import each other",
    ("wire/gate.py", "def f():\n  import browsermw.page"): "wire and page may not import each other",
    ("page/probe.py", "from .. import ledger"): "page and ledger may not import each other",
    ("runtime.py", "import sqlalchemy.orm"): "sqlalchemy may only be imported in ledger",
    ("cli/gc.py", "from alembic import command"): "alembic may only be imported in ledger",
    ("wire/launch.py", "from playwright.sync_api import Page"): (
        "playwright may only be imported in hooks, wire/routed.py, testing"
    ),
    ("run.py", "if TYPE_CHECKING:\n  import playwright"): (
        "playwright may only be imported in hooks, wire/routed.py, testing"
    ),
    ("wire/relay.py", "import websockets"): "websockets may only be imported in wire/cdp.py",
    ("__init__.py", "import typer"): "typer may only be imported in cli",
    ("maintenance/drain.py", "from rich.console import Console"): "rich may only be imported in cli",
    ("cli/demo.py", "import wrapt"): "wrapt may only be imported in hooks",
}


def made_up_package(folder: Path, place: str, source: str) -> Path:
    package = folder / OURS
    for name in ("cli", "hooks", "ledger", "maintenance", "page", "protocol/deep", "testing", "wire"):
        (package / name).mkdir(parents=True)
    for name in ("runtime.py", "models.py", "errors.py", "policy.py"):
        (package / name).touch()
    (package / place).write_text(f"{source}\n", encoding="utf-8")
    return package


@pytest.mark.parametrize(("place", "source"), BROKEN)
def test_an_import_against_the_direction_is_named_with_its_line(tmp_path: Path, place: str, source: str) -> None:
    package = made_up_package(tmp_path, place, f"# first line\n{source}")
    line = 2 + source.count("\n")
    assert broken_rules(package) == [f"{OURS}/{place}:{line}: {BROKEN[place, source]}"]


@pytest.mark.parametrize(
    ("place", "source"),
    [
        ("protocol/phases.py", "from browsermw import models, policy\nfrom . import deep\nimport enum"),
        ("runtime.py", "from browsermw import ledger, wire, page, hooks, protocol"),
        ("__init__.py", "from .runtime import Runtime"),
        ("ledger/store.py", "import sqlalchemy, alembic\nfrom browsermw import protocol"),
        ("wire/routed.py", "from playwright.async_api import Route"),
        ("wire/cdp.py", "import websockets"),
        ("hooks/sync.py", "import wrapt, playwright.sync_api"),
        ("testing/matrix.py", "import playwright.sync_api"),
        ("cli/demo.py", "import typer, rich\nfrom browsermw import ledger, wire"),
    ],
)
def test_an_import_in_the_direction_passes(tmp_path: Path, place: str, source: str) -> None:
    assert broken_rules(made_up_package(tmp_path, place, source)) == []
