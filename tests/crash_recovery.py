"""Who may go on after a kill: damaged ledgers, live owners, another database, and a wire without a relay.

The two browser folders run these classes, each in its flavour (fixture ``flavour``).
"""

from __future__ import annotations

import os
import socket
import sqlite3
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import browsermw
from browsermw import LedgerCorrupt, RunOwned, RuntimeOwned
from browsermw.faults import Point
from browsermw.protocol.phases import Phase
from browsermw.testing.processes import end, family
from browsermw.wire.browser_find import find_browser
from tests.crashes import RUNTIME, order_fetch, order_form, wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.crashes import Bench, Job
    from tests.shop_site import Shop

RUN = "invoice-8472"


def flip_a_bit_of_the_last_checkpoint(path: Path) -> int:
    """Damage the row on disk, past SQLite; return its seq."""
    with sqlite3.connect(path) as conn:
        assert conn.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0] == 0
        seq, dom_hash = conn.execute("SELECT seq, dom_hash FROM checkpoints ORDER BY seq DESC LIMIT 1").fetchone()
    conn.close()
    content = bytearray(path.read_bytes())
    assert content.count(dom_hash.encode()) == 1
    content[content.index(dom_hash.encode()) + len("dom1:")] ^= 1
    path.write_bytes(content)
    return int(seq)


class DamagedLedger:
    """A record that does not match its digest stops recovery; it never counts as empty."""

    def test_a_flipped_bit_in_the_last_checkpoint_is_named_and_nothing_leaves(self, bench: Bench, shop: Shop) -> None:
        job = order_form(shop)
        assert bench.again(job) == ["clicked"]
        seq = flip_a_bit_of_the_last_checkpoint(Path(bench.ledger.removeprefix("sqlite:///")))
        with pytest.raises(LedgerCorrupt, match=f"checkpoints seq {seq} of run {RUN}"), bench.looks(RUN):
            pass
        assert bench.again(job) == ["LedgerCorrupt"]
        assert shop.count("/order") == 1


class LiveOwner:
    """Ownership ends with the process, not before and not later."""

    def test_a_live_run_is_refused_by_name_and_taken_over_at_once_after_the_kill(
        self, bench: Bench, shop: Shop
    ) -> None:
        owner = bench.stopped_at(order_form(shop), Point.GATE_HOLDS, "POST")
        with pytest.raises(RunOwned, match=RUN) as refused, bench.looks(RUN, runtime="agent-8"):
            pass
        named = {name: refused.value.facts[name] for name in ("runtime", "host", "pid")}
        assert named == {"runtime": RUNTIME, "host": socket.gethostname(), "pid": owner.pid}
        for value in named.values():
            assert str(value) in str(refused.value)
        with pytest.raises(RuntimeOwned, match=rf"{RUNTIME}(.|\n)*{owner.pid}"), bench.looks(RUN):
            pass
        owner.crashes(holding=True)
        with bench.looks(RUN, runtime="agent-8") as (_, run):
            assert run.quarantined == []
        with bench.looks(RUN):
            pass
        assert shop.count("/order") == 0


class OnPostgres:
    """The same on the fleet's database, where a server has to notice the death."""

    @pytest.fixture
    def bench(self, bench: Bench, postgres_url: str) -> Bench:
        bench.ledger = postgres_url
        return bench

    def test_killed_holding_nothing_left(self, bench: Bench, shop: Shop) -> None:
        job = order_form(shop)
        bench.stopped_at(job, Point.LEDGER_BEFORE_COMMIT, "dispatch_effect").crashes(holding=True)
        self._noticed(bench)
        with bench.looks(RUN) as (_, run):
            assert run.quarantined == []
        assert shop.count("/order") == 0
        assert bench.again(job) == ["clicked"]
        assert shop.count("/order") == 1

    def test_killed_after_release_it_is_quarantined(self, bench: Bench, shop: Shop) -> None:
        job = order_form(shop, "/order-never")
        bench.has_sent(job, shop, "/order-never").crashes()
        self._noticed(bench)
        with bench.looks(RUN) as (_, run):
            assert [doubt.effect.url for doubt in run.quarantined if doubt.effect] == [f"{shop.url}/order-never"]
        assert bench.again(job) == ["Quarantined"]
        assert shop.count("/order-never") == 1

    def test_killed_after_the_answer_it_is_not_sent_again(self, bench: Bench, shop: Shop) -> None:
        job = order_form(shop)
        bench.stopped_at(job, Point.GATE_ANSWER_RECORDED).crashes()
        self._noticed(bench)
        with bench.looks(RUN) as (_, run):
            assert run.resume is not None
            assert [effect.status for effect in run.resume.answered_unread] == [303]
        assert bench.again(job) == ["EffectRefused"]
        assert shop.count("/order") == 1

    @staticmethod
    def _noticed(bench: Bench) -> None:
        """Wait for the server to notice; that must not take as long as the dead agent's lease."""
        started_s = time.monotonic()

        def is_free() -> bool:
            try:
                with browsermw.open(bench.ledger, runtime=RUNTIME):
                    return True
            except RuntimeOwned:
                return False

        wait_until(is_free, "the server noticed the death")
        assert time.monotonic() - started_s < browsermw.Policy().lease_s / 2


@pytest.fixture
def bare_browser(tmp_path: Path) -> Iterator[str]:
    """A Chromium without our relay; its debugging address."""
    found, profile = find_browser(), tmp_path / "profile"
    assert found is not None
    arguments = ["--headless", "--remote-debugging-port=0", f"--user-data-dir={profile}"]
    arguments += ["--disable-background-networking", *(["--no-sandbox"] if os.geteuid() == 0 else [])]
    running = subprocess.Popen(
        [found.path, *arguments, "about:blank"], start_new_session=True, stderr=subprocess.DEVNULL
    )
    try:
        ready = profile / "DevToolsActivePort"
        wait_until(lambda: ready.exists() and ready.read_text().count("\n"), "Chromium names its debugging port")
        yield f"http://127.0.0.1:{ready.read_text().splitlines()[0]}"
    finally:
        end(family(running.pid))
        running.wait()


class WithoutTheRelay:
    """The proof that these tests can see a leak: Chromium sends what it held when the gate dies (field note 2)."""

    @pytest.mark.parametrize(("order", "path"), [(order_form, "/order"), (order_fetch, "/api/checkout")])
    def test_what_was_held_leaves_and_is_never_called_abandoned(
        self, bench: Bench, shop: Shop, bare_browser: str, order: Callable[[Shop], Job], path: str
    ) -> None:
        job = order(shop)
        bench.stopped_at(job, Point.GATE_HOLDS, "POST", cdp=bare_browser).crashes(holding=True)
        shop.wait_for(path)
        with bench.looks(RUN) as (mw, run):
            (doubt,) = run.quarantined
            assert doubt.effect is None
            assert doubt.action.target == job.button
            assert run.resume is not None
            assert run.resume.never_left == ()
            assert mw.ledger_call("actions", RUN)[-1].phase is Phase.NEEDS_REVIEW
