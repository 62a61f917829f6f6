"""How a ledger is opened: the URL read, the file made with the right mode, the schema migrated and checked.

Called once by ``runtime`` and by each command. Every way to fail has its own message, with the URL (its password
hidden) and the way out. It never makes a ledger out of a database that holds something else.
"""

from __future__ import annotations

import contextlib
import os
import re
import sqlite3
from typing import TYPE_CHECKING

from platformdirs import user_state_path
from sqlalchemy import URL, inspect, make_url, select, table
from sqlalchemy.exc import ArgumentError, SQLAlchemyError
from sqlalchemy.sql.expression import column

from browsermw.errors import LedgerUnavailable
from browsermw.ledger import schema
from browsermw.ledger.dialects import PostgresDialect, SqliteDialect
from browsermw.ledger.store import SqlLedger

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from sqlalchemy import Connection, Engine

    from browsermw.ledger.contract import Ledger
    from browsermw.ledger.dialects import Dialect

_MAGIC = b"SQLite format 3\0"
_SUPPORTED = "Use sqlite:///path/to/ledger.db or postgresql://user@host/database"


def open_ledger(url: str | None = None, *, create: bool = True, lease_s: float = 15.0) -> Ledger:
    """Open a ledger, and make or migrate it where needed.

    Args:
        url: A SQLAlchemy URL: ``sqlite:///agent.db``, ``postgresql://user@host/database``; the user's state folder
            where it is ``None``.
        create: Make the ledger where there is none yet, and migrate an older one; otherwise both are errors.
        lease_s: How long a boot is taken for alive after its last ``renew``, in seconds (PostgreSQL).

    Raises:
        LedgerUnavailable: It cannot be opened; nothing was changed. Its facts hold ``names_no_ledger``: whether the
            URL is at fault, so that another try cannot help.
        LedgerCorrupt: The file is damaged.
    """
    dialect = _dialect_of(_parse(url), lease_s)
    if isinstance(dialect, SqliteDialect):
        _make_file(dialect, create=create)
    engine = _connect(dialect)
    try:
        _migrate(engine, dialect, create=create)
    except SQLAlchemyError as error:
        engine.dispose()
        raise dialect.explain(error) from error
    except BaseException:
        engine.dispose()
        raise
    return SqlLedger(engine, dialect)


def _parse(url: str | None) -> URL:
    if url is None:
        return URL.create("sqlite", database=str(user_state_path("browsermw") / "ledger.db"))
    try:
        return make_url(url)
    except (ArgumentError, ValueError) as error:
        shown = re.sub(r":[^:@/]*@", ":***@", url)
        raise _refused(shown, f"it is not a URL. {_SUPPORTED}") from error


def _dialect_of(url: URL, lease_s: float) -> Dialect:
    if "password" in url.query:
        url = url.set(password=str(url.query["password"])).difference_update_query(["password"])
    shown = url.render_as_string(hide_password=True)
    if url.drivername in {"postgresql", "postgresql+psycopg"}:
        return PostgresDialect(url.set(drivername="postgresql+psycopg"), lease_s=lease_s)
    if url.drivername not in {"sqlite", "sqlite+pysqlite"}:
        raise _refused(shown, f"{url.drivername} is not supported. {_SUPPORTED}")
    if not url.database or ":memory:" in url.database or url.query.get("mode") == "memory":
        raise _refused(shown, "it is kept in memory, so that it would not survive the process. Name a file")
    if url.database.startswith("file:"):
        raise _refused(shown, f"SQLite's file: form is not supported. {_SUPPORTED}")
    # The locks lie beside the file: who comes by a symbolic link has to find those of who came by the name.
    return SqliteDialect(url.set(drivername="sqlite", database=os.path.realpath(url.database)))


def _refused(shown: str, why: str, *, names_no_ledger: bool = True) -> LedgerUnavailable:
    return LedgerUnavailable(
        f"Nothing left the browser: the ledger {shown} cannot be opened: {why}.",
        facts={"ledger": shown, "why": why, "names_no_ledger": names_no_ledger},
    )


def _no_ledger(dialect: Dialect, tables: Sequence[str]) -> LedgerUnavailable:
    why = f"the database has other tables ({', '.join(sorted(tables)[:3])}) and is no ledger. Name an empty one"
    return _refused(dialect.shown_url, why)


def _make_file(dialect: SqliteDialect, *, create: bool) -> None:
    """See that the file is there, ours alone, and SQLite's; SQLite would make it readable by everybody."""
    path = dialect.path
    try:
        if path.is_dir():
            raise _refused(dialect.shown_url, f"{path} is a folder. Name a file in it")
        if not path.exists():
            if not create:
                raise _refused(dialect.shown_url, "there is no ledger yet. Run an agent first, or check the path")
            _make_folder(path.parent)
            with contextlib.suppress(FileExistsError):
                descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
                os.fchmod(descriptor, 0o600)
                os.close(descriptor)
        with path.open("r+b") as file:
            start = file.read(len(_MAGIC))
    except OSError as error:
        why = f"{error.strerror} ({path}). Make the folder and the file writable, or name another path"
        raise _refused(dialect.shown_url, why, names_no_ledger=False) from error
    if start and start != _MAGIC:
        raise _refused(dialect.shown_url, f"{path} is not an SQLite database. Name another file; it was not touched")
    if start:
        _leave_alone_what_is_no_ledger(dialect)


def _leave_alone_what_is_no_ledger(dialect: SqliteDialect) -> None:
    """Look without writing: our connections switch a database to WAL, and somebody else's is not ours to switch."""
    try:
        with contextlib.closing(sqlite3.connect(f"{dialect.path.absolute().as_uri()}?mode=ro", uri=True)) as conn:
            names = [name for (name,) in conn.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    except sqlite3.Error:
        return  # damaged, or locked just now: the engine's own connection says so in our words
    if names and schema.VERSION_TABLE not in names:
        raise _no_ledger(dialect, names)


def _make_folder(folder: Path) -> None:
    if not folder.exists():
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        folder.chmod(0o700)


def _connect(dialect: Dialect) -> Engine:
    try:
        return dialect.connect()
    except ImportError as error:
        why = 'the driver is missing. Run `pip install "browsermw[postgres]"`'
        raise _refused(dialect.shown_url, why, names_no_ledger=False) from error


def _migrate(engine: Engine, dialect: Dialect, *, create: bool) -> None:
    """Bring the schema to ``schema.HEAD``; one process does it, the others wait."""
    with engine.execution_options(**dialect.reading_options).connect() as conn, conn.begin():
        if _revision(conn, dialect) == schema.HEAD:
            return
    # Alembic takes longer to import than a ledger to open, and others wait while we hold the lock below.
    from browsermw.ledger import migrations  # noqa: PLC0415

    known = migrations.revisions()
    with engine.connect() as conn, conn.begin():
        dialect.lock_migration(conn)
        revision = _revision(conn, dialect)
        if revision is None and not create:
            raise _refused(dialect.shown_url, "there is no ledger yet. Run an agent first, or check the URL")
        if revision != schema.HEAD:
            if revision is not None and revision not in known:
                why = f"it was written by a newer browsermw (revision {revision}). Upgrade browsermw here"
                raise _refused(dialect.shown_url, why, names_no_ledger=False)
            if not create:
                # Whoever only looks must not change what agents of the older browsermw are writing to.
                why = f"it was written by an older browsermw (revision {revision}). Start an agent of this one first"
                raise _refused(dialect.shown_url, why, names_no_ledger=False)
            migrations.upgrade(conn)


def _revision(conn: Connection, dialect: Dialect) -> str | None:
    """The ledger's revision; ``None`` for an empty database."""
    tables = inspect(conn).get_table_names()
    if not tables:
        return None
    if schema.VERSION_TABLE not in tables:
        raise _no_ledger(dialect, tables)
    return conn.scalar(select(column("version_num")).select_from(table(schema.VERSION_TABLE)))
