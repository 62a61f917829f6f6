"""Recovery of a killed run: in an empty ledger, and in one with 100,000 actions of other runs.

Each sample is a real death: a forked child opens the ledger, claims a run of its own, journals ten actions, lets the
last one's request leave, and ends itself by SIGKILL. Then a new boot takes the run over. Counted: the claim (ownership,
digests of the run's chain, its log, the sweep, the report), and beside it the whole restart: opening the ledger,
registering the boot, the claim.

The empty ledger is a new one for each sample. The full one holds 1,000 other runs of 100 actions, each with an effect
and two checkpoints, and each left by a dead boot with one request in flight. Both take turns, with random pauses.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import time
import uuid
from collections import defaultdict
from typing import TYPE_CHECKING

from benchmarks.databases import PostgresServer, clone_runs
from benchmarks.measures import ratio, row
from browsermw.errors import RunOwned
from browsermw.ledger import open_ledger
from browsermw.ledger.contract import ActionPlan, Answer, Boot, EffectPlan, Grant, Sighting
from browsermw.protocol.outcome import Outcome
from browsermw.protocol.recovery import Wire

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from benchmarks.reporting import Reporter
    from browsermw.ledger.contract import Ledger

LIMIT = 1.2
OTHER_RUNS, ACTIONS_OF_OTHER = 1_000, 100
ACTIONS_OF_KILLED = 10
PAUSE_S = 0.020
EMPTY, FULL = "empty ledger", f"{OTHER_RUNS * ACTIONS_OF_OTHER:,} actions of other runs"

Samples = dict[tuple[str, str], list[float]]


def measure_sqlite(count: int, folder: Path, reporter: Reporter) -> None:
    """Kill and recover ``count`` times in each ledger on SQLite."""
    blank, full = folder / "blank.db", folder / "full.db"
    open_ledger(f"sqlite:///{blank}").close()
    shutil.copy(blank, full)
    full_url = f"sqlite:///{full}"
    _fill(full_url)

    def fresh() -> tuple[str, Callable[[], None]]:
        path = folder / f"{uuid.uuid4().hex}.db"
        shutil.copy(blank, path)
        return f"sqlite:///{path}", path.unlink

    _kill_by_turns("SQLite", fresh, full_url, count, reporter)


def measure_postgres(count: int, folder: Path, reporter: Reporter) -> None:
    """The same on PostgreSQL, where one can be had."""
    try:
        server = PostgresServer.start(folder)
    except (ImportError, OSError, RuntimeError) as error:
        reporter.skipped(f"PostgreSQL: {error}")
        return
    with server:
        blank, full = server.create(), server.create()
        open_ledger(blank.url).close()
        _fill(full.url)
        server.analyze(full.name)

        def fresh() -> tuple[str, Callable[[], None]]:
            made = server.create(template=blank.name)
            return made.url, lambda: server.drop(made.name)

        _kill_by_turns("PostgreSQL", fresh, full.url, count, reporter)


def _fill(url: str) -> None:
    """One run through the ledger's own calls, then copies of its rows under other names."""
    _die_in_flight(url, "other", actions=ACTIONS_OF_OTHER)
    clone_runs(url, "other", OTHER_RUNS - 1)


def _kill_by_turns(
    engine: str, fresh: Callable[[], tuple[str, Callable[[], None]]], full_url: str, count: int, reporter: Reporter
) -> None:
    dice = random.Random(8472)
    samples: Samples = defaultdict(list)
    _sample(samples, full_url, FULL)  # compiles the statements and warms the cache
    samples.clear()
    for done in range(count):
        for where in dice.sample((EMPTY, FULL), 2):
            url, drop = fresh() if where == EMPTY else (full_url, lambda: None)
            time.sleep(dice.uniform(0, PAUSE_S))
            _sample(samples, url, where)
            drop()
        reporter.step(done + 1, count)
    for what in ("claim", "whole restart"):
        table = f"Recovery of a killed run, {engine}"
        limit = LIMIT if what == "claim" else None
        reporter.row(row(table, f"{what}, {EMPTY}", samples[EMPTY, what]))
        reporter.row(row(table, f"{what}, {FULL}", samples[FULL, what]))
        reporter.row(ratio(table, f"{what}, full / empty", samples[FULL, what], samples[EMPTY, what], limit=limit))


def _sample(samples: Samples, url: str, where: str) -> None:
    run_id = f"killed-{uuid.uuid4().hex}"
    _die_in_flight(url, run_id, actions=ACTIONS_OF_KILLED)
    started = time.perf_counter()
    ledger = open_ledger(url)
    boot_id = _boot(ledger)
    opened = time.perf_counter()
    claim_s = _claim(ledger, run_id, boot_id)
    samples[where, "claim"].append(claim_s)
    samples[where, "whole restart"].append(opened - started + claim_s)
    ledger.close_boot(boot_id)
    ledger.close()


def _claim(ledger: Ledger, run_id: str, boot_id: str) -> float:
    """The time of the claim that succeeds: a server may need a moment to notice a dead connection."""
    while True:
        started = time.perf_counter()
        try:
            claim = ledger.claim_run(run_id, boot_id, {})
        except RunOwned:
            time.sleep(0.005)
            continue
        taken_s = time.perf_counter() - started
        assert claim.resume is not None
        assert len(claim.resume.in_doubt) == 1
        return taken_s


def _die_in_flight(url: str, run_id: str, *, actions: int) -> None:
    """Have a forked child work on a run and kill itself with its last request in flight."""
    child = os.fork()
    if child:
        _, status = os.waitpid(child, 0)
        assert os.WTERMSIG(status) == signal.SIGKILL, f"the child failed before its death: status {status}"
        return
    try:
        _work(url, run_id, actions)
        os.kill(os.getpid(), signal.SIGKILL)
    finally:
        os._exit(1)


def _boot(ledger: Ledger) -> str:
    name = uuid.uuid4().hex
    ledger.open_boot(Boot(f"b-{name}", f"agent-{name}", "host", os.getpid()))
    return f"b-{name}"


def _work(url: str, run_id: str, actions: int) -> None:
    ledger = open_ledger(url)
    grant = ledger.claim_run(run_id, _boot(ledger), {}).grant
    for number in range(actions):
        _act(ledger, grant, number, answered=number < actions - 1)


def _act(ledger: Ledger, grant: Grant, number: int, *, answered: bool) -> None:
    seen = Sighting(url="https://shop.test/cart", dom_hash=f"dom1:{number:032x}")
    action_id, effect_id = f"a-{uuid.uuid4().hex}", f"e-{uuid.uuid4().hex}"
    ledger.plan_action(grant, ActionPlan(action_id, "click", "Page.click", "#send", Wire.SEALED), seen)
    plan = EffectPlan(effect_id, action_id, "POST", "https://shop.test/orders", f"f{number}", "Fetch")
    ledger.dispatch_effect(grant, plan)
    if answered:
        ledger.answer_effect(grant, effect_id, Answer(Outcome.ACCEPTED, status=201, external_request_id=f"n={number}"))
        ledger.close_action(grant, action_id, seen, failed=None)
