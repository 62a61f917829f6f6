"""Damage on disk stops recovery and is named; it never counts as empty."""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING, Any

import pytest

from browsermw import faults
from browsermw.errors import LedgerCorrupt, LedgerUnavailable
from browsermw.ledger import chain, open_ledger, standing

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable
    from pathlib import Path

    Make = Callable[..., Any]
    Sql = Callable[[str], list[Any]]


def two_clicks(it: Any) -> None:
    it.claim()
    it.close(it.plan())
    action = it.plan()
    it.answer(it.send(action))
    it.close(action)
    it.send(it.plan())
    it.die()


@pytest.mark.parametrize(
    ("statement", "named"),
    [
        ("UPDATE effects SET phase = 'ABANDONED' WHERE phase = 'DISPATCHED'", "record effects effect_id .*seq 3"),
        ("UPDATE actions SET phase = 'ABANDONED' WHERE seq = 3", "record actions action_id .*seq 3"),
        ("UPDATE runs SET phase = 'FINISHED'", "record runs run_id invoice-8472"),
        ("DELETE FROM effects WHERE phase = 'DISPATCHED'", "record effects effect_id .*only the transitions log"),
        ("UPDATE checkpoints SET url = 'https://evil.test' WHERE seq = 2", "record checkpoints seq 2 of run invoice"),
        ("UPDATE checkpoints SET last_action_seq = 1 WHERE seq = 5", "record checkpoints seq 5 of run invoice"),
        ("DELETE FROM checkpoints WHERE seq = 5", "the run says 5 checkpoints, 4 are there"),
        ("DELETE FROM checkpoints WHERE seq = 2", "record checkpoints seq 2 .*missing"),
        ("UPDATE transitions SET old = 'OBSERVED' WHERE new = 'ACKNOWLEDGED'", "record transitions transition_id"),
    ],
)
def test_a_changed_record_stops_the_claim_and_is_named(agent: Make, sql: Sql, statement: str, named: str) -> None:
    two_clicks(agent())
    before = sql("SELECT fence, boot_id, changed_at FROM runs")
    sql(statement)
    with pytest.raises(LedgerCorrupt, match=named):
        agent().claim()
    assert sql("SELECT fence, boot_id, changed_at FROM runs") == before


def test_an_unreadable_field_is_damage(agent: Make, sql: Sql) -> None:
    two_clicks(agent())
    sql("UPDATE actions SET wire = 'sealing-wax' WHERE seq = 1")
    it = agent()
    with pytest.raises(LedgerCorrupt, match=r"actions action_id .*wire is 'sealing-wax'"):
        it.ledger.actions("invoice-8472")
    sql("UPDATE runtimes SET state = 'PERHAPS'")
    with pytest.raises(LedgerCorrupt, match="PERHAPS"):
        it.claim()


@pytest.mark.parametrize("damage", [b"\x00", b"!", b"\xff"])
def test_a_flipped_byte_in_the_last_checkpoint_is_named(
    sqlite_agent: Make, sqlite_url: str, sqlite_file: Path, damage: bytes
) -> None:
    two_clicks(sqlite_agent())
    last = sqlite3.connect(sqlite_file)
    last.execute("UPDATE checkpoints SET url = 'https://shop.test/MARK' WHERE seq = 5")  # same length, one place
    last.commit()
    last.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    last.close()
    content = sqlite_file.read_bytes()
    assert content.count(b"/MARK") == 1
    for restored, is_damaged in ((b"/cart", False), (b"/c" + damage + b"rt", True)):
        sqlite_file.write_bytes(content.replace(b"/MARK", restored))
        it = sqlite_agent()
        if is_damaged:
            with pytest.raises(LedgerCorrupt, match="record checkpoints seq 5 of run invoice-8472 is damaged"):
                it.claim()
        else:
            check_only(it)
        it.die()


def check_only(it: Any) -> None:
    """The chain is whole where the byte is the old one; asked without claiming, so that nothing is written."""
    with it.ledger._reading() as conn:
        run = standing.lock_run(conn, "invoice-8472")
        assert run is not None
        chain.check_chain(conn, run)


def test_a_torn_file_is_corrupt(sqlite_agent: Make, sqlite_file: Path) -> None:
    two_clicks(sqlite_agent())
    size = sqlite_file.stat().st_size
    with sqlite_file.open("r+b") as file:
        file.seek(4096)
        file.write(b"\x5a" * (size - 4096))
    with pytest.raises(LedgerCorrupt, match=r"is damaged.*backup"):
        sqlite_agent()


def test_a_full_disk_refuses_and_the_ledger_works_again_afterwards(
    child: Callable[..., subprocess.Popen[str]], sqlite_url: str
) -> None:
    open_ledger(sqlite_url).close()
    process = child(sqlite_url, "full")
    out, _ = process.communicate()
    assert process.returncode == 0
    first, *rest = out.splitlines()
    assert first.startswith("Nothing left the browser: the ledger sqlite:///")
    assert rest == ["works again", "ready"]


def test_a_lost_connection_is_unavailable_and_the_next_call_reconnects(agent: Make, sql: Sql, url: str) -> None:
    if url.startswith("sqlite"):
        pytest.skip("there is no connection to lose")
    it = agent()
    it.claim()
    action = it.plan()
    kill = (
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'browsermw'"
        " AND datname = current_database()"
    )

    def lose(point: faults.Point, _call: str) -> None:
        if point is faults.Point.LEDGER_BEFORE_COMMIT:
            faults.arm(None)
            sql(kill)

    faults.arm(lose)
    with pytest.raises(LedgerUnavailable, match="Nothing left the browser"):
        it.dispatch(action)
    assert it.dispatch(action).effect is not None
    it.ledger.renew(it.boot_id)  # takes the advisory lock again
    other = agent("agent-8")
    assert [status.owner is None for status in other.ledger.runtimes()] == [False, False]
