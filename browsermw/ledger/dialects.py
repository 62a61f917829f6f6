"""What differs between SQLite and PostgreSQL: transactions, locks of boots, leases, and the words for errors.

The only file of the ledger that knows which database it speaks to. ``opening`` chooses a dialect, the store asks it.
SQLite has one writer, taken by ``BEGIN IMMEDIATE``; PostgreSQL locks rows. On SQLite a boot lives while its lock file
is locked; on PostgreSQL while its advisory lock is held and its lease, on the server's clock, has not run out.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import random
import sqlite3
import threading
import time
from abc import ABC, abstractmethod
from pathlib import Path
from typing import TYPE_CHECKING, Any

from platformdirs import user_state_path
from sqlalchemy import and_, bindparam, case, create_engine, event, func, select, update
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import IntegrityError, SQLAlchemyError

from browsermw.errors import BrowsermwError, IllegalTransition, LedgerCorrupt, LedgerUnavailable
from browsermw.ledger import schema
from browsermw.ledger.locks import AdvisoryLock, FileLock, is_file_locked

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from contextlib import AbstractContextManager

    from sqlalchemy import URL, ColumnElement, Connection, Engine, Table
    from sqlalchemy.sql.dml import Insert

    from browsermw.ledger.locks import BootLock

BUSY_TIMEOUT_S = 5.0
POOL_SIZE = 5
_STALLED_S = 5
"""After this long a transaction whose process was stopped is ended by the server, so that a takeover can go on."""


class Dialect(ABC):
    """One database's ways."""

    writer_count: int
    key_path: Path
    reading_options: Mapping[str, Any]
    """Execution options of a transaction that only reads and wants one picture."""

    def __init__(self, url: URL) -> None:
        """Remember the URL; nothing is opened yet."""
        self.url = url
        self.shown_url = url.render_as_string(hide_password=True)
        self._locks: dict[str, BootLock] = {}

    @abstractmethod
    def connect(self) -> Engine:
        """The engine, with everything set that each connection needs."""

    def writing(self, engine: Engine) -> AbstractContextManager[Connection]:
        """A connection for one transaction that writes."""
        return engine.connect()

    @abstractmethod
    def lock_migration(self, conn: Connection) -> None:
        """Let nobody else migrate until the transaction ends."""

    @abstractmethod
    def insert_once(self, table: Table) -> Insert:
        """An insert that does nothing where the key exists."""

    @abstractmethod
    def take_lock(self, engine: Engine, boot_id: str) -> None:
        """Take the lock of a new boot, before its row is visible."""

    @abstractmethod
    def is_alive(self, conn: Connection, boot_id: str) -> bool:
        """Whether the process of a boot that was not closed still lives."""

    @abstractmethod
    def explain(self, error: SQLAlchemyError) -> BrowsermwError:
        """The database's error in our words."""

    def lease_until(self) -> ColumnElement[Any] | None:
        """The lease of a boot that is alive now, on the server's clock."""
        return None

    def renew(self, conn: Connection, boot_id: str) -> bool:  # noqa: ARG002 - nothing runs out by default
        """Keep the boot alive; ``False`` where it was closed by somebody else."""
        return True

    def drop_lock(self, boot_id: str) -> None:
        """Let go of a boot's lock."""
        lock = self._locks.pop(boot_id, None)
        if lock is not None:
            lock.drop()

    def close(self, engine: Engine) -> None:
        """Close the connections and let go of all locks."""
        for boot_id in list(self._locks):
            self.drop_lock(boot_id)
        engine.dispose()

    def clear_lock(self, boot_id: str) -> None:  # noqa: ARG002 - a server does that by itself
        """Remove what a dead boot left of its lock."""
        return

    def unavailable(self, why: str) -> LedgerUnavailable:
        """The error for a ledger that cannot be used, with the way out."""
        return LedgerUnavailable(
            f"Nothing left the browser: the ledger {self.shown_url} cannot be used: {why}. "
            "Restore it (space, permissions, connection) and run the agent again; it loses nothing.",
            facts={"ledger": self.shown_url, "why": why},
        )

    def damaged(self, why: str) -> LedgerCorrupt:
        """The error for a database that is damaged as a whole."""
        return LedgerCorrupt(
            f"Nothing left the browser: the ledger {self.shown_url} is damaged: {why}. "
            "Restore it from a backup; do not let the agent go on.",
            facts={"ledger": self.shown_url, "why": why},
        )


class SqliteDialect(Dialect):
    """The embedded default: one file, one writer at a time, any number of processes."""

    writer_count = 1
    reading_options: Mapping[str, Any] = {"browsermw_reads": True}

    def __init__(self, url: URL) -> None:
        """Remember where the file and the locks are."""
        super().__init__(url)
        self.path = Path(str(url.database))
        self.key_path = self.path.with_name(self.path.name + ".key")
        self.lock_folder = self.path.with_name(self.path.name + ".boots")
        self._turn = threading.Lock()
        self._writer: Connection | None = None

    def connect(self) -> Engine:  # noqa: D102
        engine = create_engine(self.url, connect_args={"timeout": BUSY_TIMEOUT_S})
        event.listen(engine, "connect", _prepare_sqlite)
        event.listen(engine, "begin", _begin_sqlite)
        return engine

    @contextlib.contextmanager
    def writing(self, engine: Engine) -> Iterator[Connection]:
        """The one connection that writes: threads of one process queue here and not at the database.

        It is kept, because taking it from the pool and giving it back is a fifth of a click's transaction.
        """
        with self._turn:
            if self._writer is None:
                self._writer = engine.connect()
            yield self._writer

    def close(self, engine: Engine) -> None:  # noqa: D102
        if self._writer is not None:
            self._writer.close()
            self._writer = None
        super().close(engine)

    def lock_migration(self, conn: Connection) -> None:
        """``BEGIN IMMEDIATE`` did it."""

    def insert_once(self, table: Table) -> Insert:  # noqa: D102
        return sqlite.insert(table).on_conflict_do_nothing().execution_options(preserve_rowcount=True)

    def take_lock(self, engine: Engine, boot_id: str) -> None:  # noqa: ARG002, D102
        try:
            self._locks[boot_id] = FileLock(self._lock_path(boot_id))
        except OSError as error:
            raise self.unavailable(f"no lock file can be made ({error})") from error

    def is_alive(self, conn: Connection, boot_id: str) -> bool:  # noqa: ARG002, D102
        return is_file_locked(self._lock_path(boot_id))

    def clear_lock(self, boot_id: str) -> None:  # noqa: D102
        with contextlib.suppress(OSError):
            self._lock_path(boot_id).unlink(missing_ok=True)

    def explain(self, error: SQLAlchemyError) -> BrowsermwError:  # noqa: D102
        cause = getattr(error, "orig", None) or error
        code = getattr(cause, "sqlite_errorcode", 0) & 0xFF
        if code in {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}:
            return self.damaged(str(cause))
        if isinstance(error, IntegrityError):
            return _exists_already(cause)
        if code in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}:
            return self.unavailable(f"another process kept it locked for {BUSY_TIMEOUT_S:.0f} s ({cause})")
        return self.unavailable(str(cause))

    def _lock_path(self, boot_id: str) -> Path:
        return self.lock_folder / f"{_file_name(boot_id)}.lock"


class PostgresDialect(Dialect):
    """The fleet's engine: many runtimes, rows locked, leases on the server's clock."""

    writer_count = POOL_SIZE
    reading_options: Mapping[str, Any] = {"isolation_level": "REPEATABLE READ"}

    def __init__(self, url: URL, *, lease_s: float) -> None:
        """Remember the URL and how long a lease lasts."""
        super().__init__(url)
        self._lease_s = lease_s
        named = hashlib.sha256(self.shown_url.encode()).hexdigest()[:16]
        self.key_path = user_state_path("browsermw") / f"{named}.key"

    def connect(self) -> Engine:  # noqa: D102
        arguments = {"connect_timeout": 5, "application_name": "browsermw", "tcp_user_timeout": 10_000}
        arguments |= {"keepalives_idle": 5, "keepalives_interval": 2, "keepalives_count": 3}
        wanted = {name: value for name, value in arguments.items() if name not in self.url.query}
        engine = create_engine(self.url, pool_size=POOL_SIZE, pool_pre_ping=True, connect_args=wanted)
        event.listen(engine, "connect", _prepare_postgres)
        return engine

    def lock_migration(self, conn: Connection) -> None:  # noqa: D102
        conn.execute(select(func.pg_advisory_xact_lock(_lock_key("migration"))))

    def insert_once(self, table: Table) -> Insert:  # noqa: D102
        return postgresql.insert(table).on_conflict_do_nothing().execution_options(preserve_rowcount=True)

    def take_lock(self, engine: Engine, boot_id: str) -> None:  # noqa: D102
        self._locks[boot_id] = AdvisoryLock(engine, _lock_key(boot_id))

    def is_alive(self, conn: Connection, boot_id: str) -> bool:  # noqa: D102
        marks = {"boot_id": boot_id, "lock_key": _lock_key(boot_id)}
        return bool(conn.scalar(_IS_ALIVE, marks))

    def lease_until(self) -> ColumnElement[Any]:  # noqa: D102
        return func.clock_timestamp() + func.make_interval(0, 0, 0, 0, 0, 0, self._lease_s)

    def renew(self, conn: Connection, boot_id: str) -> bool:  # noqa: D102
        lock = self._locks.get(boot_id)
        if isinstance(lock, AdvisoryLock):
            lock.restore()
        mine = and_(schema.boots.c.boot_id == boot_id, schema.boots.c.closed_at.is_(None))
        return conn.execute(update(schema.boots).where(mine).values(lease_until=self.lease_until())).rowcount == 1

    def explain(self, error: SQLAlchemyError) -> BrowsermwError:  # noqa: D102
        cause = getattr(error, "orig", None) or error
        state = getattr(cause, "sqlstate", None) or ""
        if state.startswith("XX"):
            return self.damaged(_one_line(cause))
        if isinstance(error, IntegrityError):
            return _exists_already(cause)
        return self.unavailable(_one_line(cause))


_KEY = bindparam("lock_key", type_=schema.SerialId)
_IS_ALIVE = select(
    # Shared, so that two who ask at once do not see each other; let go in the same statement.
    case((func.pg_try_advisory_lock_shared(_KEY), ~func.pg_advisory_unlock_shared(_KEY)), else_=True)
    & (schema.boots.c.lease_until > func.clock_timestamp()),
).where(schema.boots.c.boot_id == bindparam("boot_id"))


def _prepare_sqlite(connection: sqlite3.Connection, _record: object) -> None:
    connection.isolation_level = None  # we begin ourselves
    # Bytes that are no text must reach the digest check, which names the record that they are in.
    connection.text_factory = functools.partial(str, encoding="utf-8", errors="surrogateescape")
    connection.execute("PRAGMA foreign_keys = ON")
    connection.execute("PRAGMA synchronous = FULL")
    deadline = time.monotonic() + BUSY_TIMEOUT_S
    while connection.execute("PRAGMA journal_mode").fetchone()[0] != "wal":
        try:
            connection.execute("PRAGMA journal_mode = WAL").fetchone()
        except sqlite3.OperationalError:
            # SQLite does not wait for its busy timeout here when several processes open a new file at once.
            if time.monotonic() > deadline:
                raise
            time.sleep(0.01)


def _begin_sqlite(conn: Connection) -> None:
    if conn.get_execution_options().get("browsermw_reads"):
        conn.exec_driver_sql("BEGIN")
        return
    raw: Any = conn.connection.dbapi_connection
    raw.execute("PRAGMA busy_timeout = 0")
    try:
        if not _wait_for_turn(raw):
            conn.exec_driver_sql("BEGIN IMMEDIATE")  # once more, for SQLAlchemy's error
    finally:
        raw.execute(f"PRAGMA busy_timeout = {BUSY_TIMEOUT_S * 1000:.0f}")


def _wait_for_turn(raw: sqlite3.Connection) -> bool:
    """Begin to write; ``False`` where that failed, or the time was up.

    SQLite's own waiting sleeps up to 100 ms between two looks, while who has just committed begins again within a
    tenth of a millisecond: with eight busy processes one of them starved for 5 s (measured). Looking every
    millisecond or so gives each its turn.
    """
    deadline = time.monotonic() + BUSY_TIMEOUT_S
    while True:
        try:
            raw.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                return False
            time.sleep(random.uniform(0.0005, 0.002))  # noqa: S311 - spreads the lookers
        else:
            return True


def _prepare_postgres(connection: Any, _record: object) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT set_config('timezone', 'UTC', false), set_config('lock_timeout', '10s', false),"
            f" set_config('idle_in_transaction_session_timeout', '{_STALLED_S}s', false),"
            " set_config('synchronous_commit', CASE current_setting('synchronous_commit')"
            " WHEN 'off' THEN 'on' ELSE current_setting('synchronous_commit') END, false)",
        )
    connection.commit()


def _lock_key(name: str) -> int:
    return int.from_bytes(hashlib.sha256(f"browsermw {name}".encode()).digest()[:8], "big", signed=True)


def _file_name(boot_id: str) -> str:
    return boot_id if boot_id.replace("-", "").isalnum() else hashlib.sha256(boot_id.encode()).hexdigest()


def _exists_already(cause: BaseException) -> IllegalTransition:
    return IllegalTransition(
        f"Nothing was changed: a record with this id exists already, or what it belongs to does not "
        f"({_one_line(cause)}).",
    )


def _one_line(cause: BaseException) -> str:
    return " ".join(str(cause).split())
