"""The migrations of the ledger's schema, run from the package by ``opening`` in its own transaction."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import TYPE_CHECKING

from alembic import command
from alembic.config import Config
from alembic.script import ScriptDirectory

if TYPE_CHECKING:
    from sqlalchemy import Connection

_alone = threading.Lock()
"""Alembic keeps its context in a global."""


def upgrade(conn: Connection) -> None:
    """Bring the schema to its newest revision.

    Args:
        conn: An open transaction that nobody else migrates in; it is not committed here.
    """
    config = _config()
    config.attributes["connection"] = conn
    with _alone:
        command.upgrade(config, "head")


def revisions() -> frozenset[str]:
    """All revisions that this version knows."""
    return frozenset(script.revision for script in ScriptDirectory.from_config(_config()).walk_revisions())


def _config() -> Config:
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent).replace("%", "%%"))
    return config
