"""A ledger that cannot be written: nothing leaves, the page stays, the agent is told, and it works again afterwards."""

from __future__ import annotations

import sqlite3
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect
from sqlalchemy import event

from browsermw import LedgerUnavailable, Policy
from browsermw.faults import Point, arm
from tests.browser_kit import Journal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager
    from pathlib import Path

    from playwright.sync_api import Browser, Page

    from browsermw import Runtime
    from tests.shop_site import Shop


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


def test_a_full_disk_lets_nothing_leave_and_work_goes_on_once_there_is_space(
    opening: Callable[..., AbstractContextManager[tuple[Runtime, Browser]]], shop: Shop
) -> None:
    """SQLite's own limit on pages answers as a full disk does: SQLITE_FULL."""
    with opening(Policy(settle_s=1)) as (mw, browser), mw.run("r") as run:
        page = run.wrap(browser.new_context()).new_page()
        page.goto(f"{shop.url}/shop")
        with full_disk(mw):
            refused = [click_is_refused(page, "h1") for _ in range(40)]
            assert refused[-1]
            assert click_is_refused(page, "#send")
            assert shop.count(None) == 0
            assert page.title() == "Order"
        page.click("#send")
        assert page.inner_text("#reference") == "ORD-0001"
        assert shop.count("/order") == 1


def click_is_refused(page: Page, selector: str) -> bool:
    try:
        page.click(selector)
    except LedgerUnavailable:
        return True
    return False


@contextmanager
def full_disk(mw: Runtime) -> Iterator[None]:
    """Let the database grow no more in any transaction of the ledger."""
    engine = mw._ledger._engine  # type: ignore[union-attr]

    def limit(page_count: int) -> Callable[..., None]:
        return lambda conn: conn.connection.dbapi_connection.execute(f"PRAGMA max_page_count={page_count}").close()

    full, free = limit(1), limit(1_000_000)
    event.listen(engine, "begin", full)
    try:
        yield
    finally:
        event.remove(engine, "begin", full)
        event.listen(engine, "begin", free)


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
        with suppress(LedgerUnavailable):  # its after-checkpoint may meet the lock
            page.click("#pay")
        expect(page.locator("#result")).to_contain_text("failed", timeout=20_000)
        lifted[0].execute("ROLLBACK")
        lifted[0].close()
        assert shop.count("/api/checkout") == 1
        assert Journal(mw, "r").phases() == ["DISPATCHED"]
    assert run.phase == "NEEDS_REVIEW"
