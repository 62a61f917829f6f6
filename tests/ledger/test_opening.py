"""Opening a ledger: files, modes, messages, migrations."""

from __future__ import annotations

import os
import sqlite3
import stat
from typing import TYPE_CHECKING, Any

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import create_engine, make_url
from sqlalchemy.pool import NullPool

from browsermw.errors import LedgerUnavailable
from browsermw.ledger import migrations, open_ledger, schema

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable
    from pathlib import Path

    Start = Callable[..., subprocess.Popen[str]]
    Make = Callable[..., Any]
    Sql = Callable[[str], list[Any]]


@pytest.fixture(params=[0o000, 0o077])
def umask(request: pytest.FixtureRequest) -> Any:
    before = os.umask(request.param)
    yield
    os.umask(before)


def test_only_the_owner_may_read_what_is_made(umask: None, sqlite_agent: Make, sqlite_file: Path) -> None:
    it = sqlite_agent()
    it.claim()
    folder = sqlite_file.parent
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in [folder, *folder.rglob("*")]}
    it.die()
    assert modes == {
        "state": 0o700,
        "agent.db": 0o600,
        "agent.db-wal": 0o600,
        "agent.db-shm": 0o600,
        "agent.db.boots": 0o700,
        f"{it.boot_id}.lock": 0o600,
    }


def test_sqlite_is_durable_and_checks_its_keys(sqlite_url: str) -> None:
    ledger: Any = open_ledger(sqlite_url)
    with ledger._engine.connect() as conn:
        found = [
            conn.exec_driver_sql(f"PRAGMA {name}").scalar() for name in ("journal_mode", "synchronous", "foreign_keys")
        ]
    ledger.close()
    assert found == ["wal", 2, 1]
    assert ledger.writer_count == 1


def test_the_default_is_in_the_users_state_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    open_ledger().close()
    assert (tmp_path / "browsermw" / "ledger.db").exists()


def test_migrations_build_what_the_code_declares(url: str) -> None:
    open_ledger(url).close()
    target = make_url(url)
    if target.drivername == "postgresql":
        target = target.set(drivername="postgresql+psycopg")
    engine = create_engine(target, poolclass=NullPool)
    with engine.connect() as conn:
        context = MigrationContext.configure(conn, opts={"version_table": schema.VERSION_TABLE})
        assert compare_metadata(context, schema.metadata) == []
    engine.dispose()


def test_the_code_reads_the_newest_revision() -> None:
    assert schema.HEAD in migrations.revisions()


def test_an_empty_postgresql_database_is_migrated(empty_postgres_url: str) -> None:
    with pytest.raises(LedgerUnavailable, match="there is no ledger yet"):
        open_ledger(empty_postgres_url, create=False)
    open_ledger(empty_postgres_url).close()
    ledger = open_ledger(empty_postgres_url, create=False)
    assert ledger.writer_count == 5
    ledger.close()


def test_processes_that_open_an_empty_database_at_once_migrate_it_once(child: Start, empty_postgres_url: str) -> None:
    openers = [child(empty_postgres_url, "write", "1") for _ in range(3)]
    assert [opener.communicate()[0] for opener in openers] == ["ready\n"] * 3


def test_a_ledger_of_the_first_revision_is_brought_up_and_keeps_its_records(agent: Make, url: str, sql: Sql) -> None:
    it = agent()
    it.claim()
    effect = it.send(it.plan())
    it.die()
    sql("ALTER TABLE effects DROP COLUMN idempotency_key")
    sql(f"UPDATE {schema.VERSION_TABLE} SET version_num = '0001'")  # noqa: S608 - a constant
    with pytest.raises(LedgerUnavailable, match=r"older browsermw \(revision 0001\)"):
        open_ledger(url, create=False)
    ledger = open_ledger(url)
    assert ledger.actions("invoice-8472")[0].effects == (effect,)
    ledger.close()


def test_a_newer_ledger_is_refused(url: str, sql: Sql) -> None:
    open_ledger(url).close()
    sql(f"UPDATE {schema.VERSION_TABLE} SET version_num = '9999'")  # noqa: S608 - a constant
    with pytest.raises(LedgerUnavailable, match=r"newer browsermw \(revision 9999\). Upgrade"):
        open_ledger(url)


def test_a_database_of_something_else_is_refused(tmp_path: Path, empty_postgres_url: str) -> None:
    with sqlite3.connect(tmp_path / "other.db") as conn:
        conn.execute("CREATE TABLE invoices (id)")
    conn.close()
    before = (tmp_path / "other.db").read_bytes()
    with pytest.raises(LedgerUnavailable, match=r"other tables \(invoices\) and is no ledger"):
        open_ledger(f"sqlite:///{tmp_path}/other.db")
    assert (tmp_path / "other.db").read_bytes() == before, "somebody else's database was switched to WAL"
    engine = create_engine(make_url(empty_postgres_url).set(drivername="postgresql+psycopg"), poolclass=NullPool)
    with engine.begin() as made:
        made.exec_driver_sql("CREATE TABLE invoices (id int)")
    with pytest.raises(LedgerUnavailable, match=r"other tables \(invoices\) and is no ledger"):
        open_ledger(empty_postgres_url)


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("agent.db", "not a URL"),
        ("postgresql//me:hunter2@host/db", "not a URL"),
        ("mysql://me:hunter2@host/db", "mysql is not supported"),
        ("sqlite+aiosqlite:///agent.db", "not supported"),
        ("sqlite://", "in memory"),
        ("sqlite:///:memory:", "in memory"),
        ("sqlite:///file:agent.db?uri=true", "file: form"),
        ("sqlite:///{folder}", "is a folder"),
        ("sqlite:///{folder}/text.db", "not an SQLite database"),
        ("sqlite:///{folder}/text.db/agent.db", "Not a directory"),
        ("sqlite:////proc/browsermw/agent.db", "No such file or directory"),
        ("postgresql://me:hunter2@127.0.0.1:1/db", "refused"),
        ("postgresql://me@127.0.0.1:1/db?password=hunter2", "refused"),
    ],
)
def test_what_cannot_be_opened_says_why_and_hides_the_password(tmp_path: Path, url: str, why: str) -> None:
    (tmp_path / "text.db").write_text("some notes of mine")
    with pytest.raises(LedgerUnavailable, match=why) as caught:
        open_ledger(url.format(folder=tmp_path))
    assert "hunter2" not in f"{caught.value} {caught.value.facts}"
    assert str(caught.value).startswith("Nothing left the browser")
    assert (tmp_path / "text.db").read_text() == "some notes of mine"


def test_a_ledger_that_is_not_there_is_not_made_for_reading(tmp_path: Path) -> None:
    with pytest.raises(LedgerUnavailable, match="there is no ledger yet"):
        open_ledger(f"sqlite:///{tmp_path}/agent.db", create=False)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="takes another user's place")
def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    os.seteuid(65534)
    try:
        with pytest.raises(LedgerUnavailable, match="Permission denied"):
            open_ledger(f"sqlite:///{tmp_path}/agent.db")
    finally:
        os.seteuid(0)
