"""A ledger that cannot be written: nothing leaves, the page stays, the agent is told, and it works again afterwards."""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from browsermw import LedgerUnavailable, Policy
from browsermw.faults import Point, arm
from tests.browser_kit import Journal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager
    from pathlib import Path

    from playwright.sync_api import Browser

    from browsermw import Runtime
    from tests.shop_site import Shop

Opening = "Callable[..., AbstractContextManager[tuple[Runtime, Browser]]]"


@pytest.fixture
def _disarmed() -> Iterator[None]:
    yield
    arm(None)


def lock(path: Path) -> sqlite3.Connection:
    """Hold the database's one write lock, as a second process would, or a backup."""
    other = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    other.execute("BEGIN IMMEDIATE")
    return other


@pytest.mark.timeout(180)
def test_a_click_on_a_locked_ledger_is_refused_and_works_again_afterwards(
    opening: Callable[..., AbstractContextManager[tuple[Runtime, Browser]]], shop: Shop, tmp_path: Path
) -> None:
    with opening(Policy(settle_s=1)) as (mw, browser), mw.run("r") as run:
        page = run.wrap(browser.new_context()).new_page()
        page.goto(f"{shop.url}/shop")
        other = lock(tmp_path / "agent.db")
        with pytest.raises(LedgerUnavailable, match="left"):
            page.click("#send")
        assert shop.count(None) == 0
        other.execute("ROLLBACK")
        other.close()
        assert page.title() == "Order"
        page.click("#send")
        assert page.inner_text("#reference") == "ORD-0001"
        assert shop.count("/order") == 1


def armed_lock(path: Path, lifted: list[sqlite3.Connection]) -> None:
    """Lock the ledger at the moment when the gate holds a POST: after PLANNED, before DISPATCHED."""

    def hook(point: Point, detail: str) -> None:
        if point is Point.GATE_HOLDS and detail == "POST" and not lifted:
            lifted.append(lock(path))

    arm(hook)


@pytest.mark.timeout(180)
@pytest.mark.usefixtures("_disarmed")
@pytest.mark.parametrize("way", ["form", "fetch"])
def test_a_ledger_that_locks_between_click_and_request_lets_nothing_leave(
    opening: Callable[..., AbstractContextManager[tuple[Runtime, Browser]]], shop: Shop, tmp_path: Path, way: str
) -> None:
    lifted: list[sqlite3.Connection] = []
    with opening(Policy(settle_s=1)) as (mw, browser), mw.run("r") as run:
        page = run.wrap(browser.new_context()).new_page()
        page.goto(f"{shop.url}/double")
        armed_lock(tmp_path / "agent.db", lifted)
        with pytest.raises(LedgerUnavailable):
            page.click("#send" if way == "form" else "#pay")
        assert shop.count(None) == 0
        lifted[0].execute("ROLLBACK")
        lifted[0].close()
        assert page.title() == "Unguarded"
        page.click("#send" if way == "form" else "#pay")
        expect(page.locator("#reference" if way == "form" else "#result")).to_contain_text("ORD-0001")
        assert len(shop.orders()) == 1
        assert "DISPATCHED" not in Journal(mw, "r").phases()


@pytest.mark.usefixtures("_disarmed")
def test_a_full_disk_lets_nothing_leave_and_work_goes_on_once_there_is_space(
    opening: Callable[..., AbstractContextManager[tuple[Runtime, Browser]]], shop: Shop
) -> None:
    """SQLite's own limit on pages answers as a full disk does: SQLITE_FULL."""
    with opening(Policy(settle_s=1)) as (mw, browser), mw.run("r") as run:
        page = run.wrap(browser.new_context()).new_page()
        page.goto(f"{shop.url}/shop")
        limit = full_disk(mw, page_count=1)
        with pytest.raises(LedgerUnavailable):
            for _ in range(200):  # until the last page is full
                page.click("h1")
        before = shop.count(None)
        with pytest.raises(LedgerUnavailable):
            for _ in range(20):
                page.click("#send")
                page.goto(f"{shop.url}/shop")
        assert shop.count(None) == before == 0
        assert page.title() == "Order"
        full_disk(mw, page_count=limit)
        page.click("#send")
        assert page.inner_text("#reference") == "ORD-0001"


def full_disk(mw: Runtime, page_count: int) -> int:
    """Set the limit on the ledger's own connections; returns the limit before."""
    engine = mw._ledger._writer  # type: ignore[union-attr]
    with engine.connect() as connection:
        before = int(connection.exec_driver_sql("PRAGMA max_page_count").scalar_one())
        connection.exec_driver_sql(f"PRAGMA max_page_count={page_count}")
    return before


@pytest.mark.usefixtures("_disarmed")
def test_an_answer_that_cannot_be_recorded_is_kept_from_the_page(
    opening: Callable[..., AbstractContextManager[tuple[Runtime, Browser]]], shop: Shop, tmp_path: Path
) -> None:
    lifted: list[sqlite3.Connection] = []

    def hook(point: Point, _detail: str) -> None:
        if point is Point.GATE_ANSWER_HELD and not lifted:
            lifted.append(lock(tmp_path / "agent.db"))

    with opening(Policy(settle_s=0)) as (mw, browser), mw.run("r") as run:
        page = run.wrap(browser.new_context()).new_page()
        page.goto(f"{shop.url}/checkout")
        arm(hook)
        with pytest.raises(LedgerUnavailable):
            page.click("#pay")
            expect(page.locator("#result")).to_contain_text("failed", timeout=20_000)
            page.click("#noop")
        expect(page.locator("#result")).to_contain_text("failed", timeout=20_000)
        lifted[0].execute("ROLLBACK")
        lifted[0].close()
        assert shop.count("/api/checkout") == 1
        assert Journal(mw, "r").phases() == ["DISPATCHED"]
    assert run.phase == "NEEDS_REVIEW"
