"""The locks that die with the process: a locked file, or an advisory lock on a PostgreSQL connection.

``dialects`` holds one for each boot. Both are dropped by somebody else (the kernel, the server) when the process
is gone, whatever it died of. Children must not keep them alive: the descriptor is not inherited by programs that are
started (a browser outlives its agent), and a forked child closes its copy first thing.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import weakref
from typing import TYPE_CHECKING, Any, Protocol

from sqlalchemy import func, literal, select
from sqlalchemy.exc import DBAPIError

from browsermw.errors import LedgerUnavailable

if TYPE_CHECKING:
    from pathlib import Path

    from sqlalchemy import Connection, Engine


class BootLock(Protocol):
    """An exclusive lock that is held while the process lives."""

    def drop(self) -> None:
        """Let go of it."""

    def close_in_child(self) -> None:
        """Close a forked child's copy, so that only the parent holds it."""


_held: weakref.WeakSet[Any] = weakref.WeakSet()


def _close_all_in_child() -> None:
    for lock in list(_held):
        lock.close_in_child()
    _held.clear()


os.register_at_fork(after_in_child=_close_all_in_child)


class FileLock:
    """An exclusive ``flock`` on a file of its own, removed when it is dropped in order.

    Not ``fcntl`` record locks: another descriptor of the same process would share them, and closing it would
    drop them.
    """

    def __init__(self, path: Path) -> None:
        """Take it.

        Args:
            path: The file; its name must be unique to this holder. Its folder is made where it is missing.

        Raises:
            OSError: The file cannot be made, or somebody holds it.
        """
        self._path = path
        path.parent.mkdir(mode=0o700, exist_ok=True)
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        os.fchmod(self._descriptor, 0o600)
        fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        _held.add(self)

    def drop(self) -> None:
        """Remove the file and let go."""
        if self._descriptor >= 0:
            self._path.unlink(missing_ok=True)
            self.close_in_child()
            _held.discard(self)

    def close_in_child(self) -> None:
        """Close the descriptor; the lock stays with the parent's."""
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)


def is_file_locked(path: Path) -> bool:
    """Whether a live process holds the file's lock. Two who ask at once do not see each other."""
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


class AdvisoryLock:
    """A session's advisory lock on a PostgreSQL connection that is used for nothing else."""

    def __init__(self, engine: Engine, key: int) -> None:
        """Take it.

        Args:
            engine: Where to connect.
            key: Unique to this holder.

        Raises:
            LedgerUnavailable: Somebody holds it.
        """
        self._engine = engine
        self._key = key
        self._conn: Connection | None = None
        if not self._connect_and_lock():
            raise LedgerUnavailable(f"Nothing left the browser: the ledger's advisory lock {key} is taken.")
        _held.add(self)

    def restore(self) -> None:
        """Take it again where the connection was lost.

        That it is taken is no error: the server has not noticed yet that the old connection is dead, and until it
        does, that one speaks for us.
        """
        if self._conn is not None:
            with contextlib.suppress(DBAPIError):
                self._conn.execute(select(literal(1)))
                return
            self._conn.close()
            self._conn = None
        self._connect_and_lock()

    def drop(self) -> None:
        """Close the connection, and with it the lock."""
        if self._conn is not None:
            self._conn.close()
            self._conn = None
        _held.discard(self)

    def close_in_child(self) -> None:
        """Close the child's copy of the socket, without a word to the server."""
        conn, self._conn = self._conn, None
        if conn is not None:
            raw: Any = conn.connection.dbapi_connection
            os.close(raw.pgconn.socket)

    def _connect_and_lock(self) -> bool:
        conn = self._engine.connect().execution_options(isolation_level="AUTOCOMMIT")
        conn.detach()  # out of the pool, so that nobody else is given it
        if conn.scalar(select(func.pg_try_advisory_lock(self._key))):
            self._conn = conn
            return True
        conn.close()
        return False
