"""A ledger on each database (the server is in ``tests/conftest.py``), and an agent that stands at it."""

from __future__ import annotations

import os
import subprocess
import sys
import uuid
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from sqlalchemy import create_engine, make_url, text
from sqlalchemy.pool import NullPool

from browsermw.ledger import open_ledger
from browsermw.ledger.contract import ActionPlan, Answer, Boot, Claim, Dispatch, EffectPlan, Grant, Sighting
from browsermw.models import Action, Effect, Verdict
from browsermw.protocol.outcome import Outcome
from browsermw.protocol.recovery import Wire

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from browsermw.ledger.contract import Ledger

RUN = "invoice-8472"
CHILD = Path(__file__).with_name("child.py")


@pytest.fixture
def sqlite_url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/state/agent.db"


@pytest.fixture
def sqlite_file(sqlite_url: str) -> Path:
    return Path(sqlite_url.removeprefix("sqlite:///"))


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest) -> str:
    """A fresh ledger of each kind."""
    name = "sqlite_url" if request.param == "sqlite" else "postgres_url"
    return str(request.getfixturevalue(name))


@dataclass
class Agent:
    """One agent process at a ledger: short names for what the runtime would do."""

    ledger: Ledger
    runtime: str
    boot_id: str = field(default_factory=lambda: uuid.uuid4().hex)
    grant: Grant = field(default_factory=lambda: Grant("", "", 0))

    def boot(self) -> Agent:
        self.ledger.open_boot(Boot(self.boot_id, self.runtime, "host-a", os.getpid()))
        return self

    def claim(self, run_id: str = RUN, **labels: str) -> Claim:
        claim = self.ledger.claim_run(run_id, self.boot_id, labels)
        self.grant = claim.grant
        return claim

    def plan(self, *, wire: Wire = Wire.SEALED, reads_only: bool = False) -> Action:
        plan = ActionPlan(uuid.uuid4().hex, "click", "Page.click", "#send", wire, reads_only=reads_only)
        return self.ledger.plan_action(self.grant, plan, Sighting(url="https://shop.test/cart", dom_hash="dom1:1"))

    def dispatch(self, action: Action, fingerprint: str = "f1", **more: Any) -> Dispatch:
        plan = EffectPlan(
            uuid.uuid4().hex, action.action_id, "POST", "https://shop.test/orders", fingerprint, "Fetch", **more
        )
        return self.ledger.dispatch_effect(self.grant, plan)

    def send(self, action: Action, fingerprint: str = "f1", **more: Any) -> Effect:
        effect = self.dispatch(action, fingerprint, **more).effect
        assert effect is not None
        return effect

    def answer(self, effect: Effect, outcome: Outcome = Outcome.ACCEPTED, **more: Any) -> Effect:
        return self.ledger.answer_effect(self.grant, effect.effect_id, Answer(outcome, **more))

    def close(self, action: Action, *, failed: str | None = None) -> Action:
        return self.ledger.close_action(
            self.grant, action.action_id, Sighting(url="https://shop.test/done"), failed=failed
        )

    def settle(self, quarantine_id: str, verdict: Any, source: str = "person:alice") -> None:
        self.ledger.resolve(quarantine_id, Verdict(verdict=verdict, source=source, note="looked it up"))

    def die(self) -> None:
        """What the death of the process does to the database: connections and locks are gone, nothing is closed."""
        self.ledger.close()


@pytest.fixture
def agent(url: str) -> Iterator[Callable[..., Agent]]:
    """Makes agents with an open boot, each with connections of its own, like a process."""
    with _agents(url) as make:
        yield make


@pytest.fixture
def sqlite_agent(sqlite_url: str) -> Iterator[Callable[..., Agent]]:
    """The same, for what is SQLite's alone."""
    with _agents(sqlite_url) as make:
        yield make


@contextmanager
def _agents(url: str) -> Iterator[Callable[..., Agent]]:
    opened: list[Ledger] = []

    def make(runtime: str = "agent-7", **options: Any) -> Agent:
        ledger = open_ledger(url, **options)
        opened.append(ledger)
        return Agent(ledger, runtime).boot()

    try:
        yield make
    finally:
        for ledger in opened:
            ledger.close()


@pytest.fixture
def sql(url: str) -> Callable[[str], list[Any]]:
    """Runs a statement past the ledger."""

    def run(statement: str) -> list[Any]:
        target = make_url(url)
        if target.drivername == "postgresql":
            target = target.set(drivername="postgresql+psycopg")
        engine = create_engine(target, poolclass=NullPool)
        with engine.begin() as conn:
            result = conn.execute(text(statement))
            rows = list(result) if result.returns_rows else []
        engine.dispose()
        return rows

    return run


@pytest.fixture
def child() -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Starts ``child.py`` as a process of its own; ``line(process)`` reads what it says."""
    started: list[subprocess.Popen[str]] = []

    def start(*arguments: str) -> subprocess.Popen[str]:
        root = str(Path(__file__).parents[2])
        process = subprocess.Popen(
            [sys.executable, str(CHILD), *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": root},
        )
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()
