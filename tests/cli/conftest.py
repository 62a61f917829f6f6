"""A real SQLite ledger, made through the ledger's own calls, and the commands that read it."""

from __future__ import annotations

import json
import os
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest
from typer.testing import CliRunner

from browsermw.cli import app
from browsermw.ledger import open_ledger
from browsermw.ledger.contract import ActionPlan, Answer, Boot, EffectPlan, Grant, Sighting
from browsermw.protocol.outcome import Outcome
from browsermw.protocol.recovery import Wire

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from browsermw.ledger.contract import Ledger
    from browsermw.models import Effect


@dataclass
class Scene:
    """An agent's ledger, and the command line pointed at it."""

    url: str
    ledger: Ledger
    boot_id: str

    def claim(self, run_id: str, labels: Mapping[str, str] | None = None) -> Grant:
        return self.ledger.claim_run(run_id, self.boot_id, labels or {}).grant

    def send(self, grant: Grant, target: str = "#send", wire: Wire = Wire.SEALED) -> Effect:
        """A click whose request left; nobody answered yet."""
        page = Sighting(url="https://shop.test/cart", dom_hash="dom1:1")
        action = self.ledger.plan_action(grant, ActionPlan(uuid.uuid4().hex, "click", "Page.click", target, wire), page)
        plan = EffectPlan(
            uuid.uuid4().hex,
            action.action_id,
            "POST",
            "https://shop.test/orders",
            uuid.uuid4().hex,
            "Document",
            key_header="Idempotency-Key",
            own_key="key-7",
        )
        effect = self.ledger.dispatch_effect(grant, plan).effect
        assert effect is not None
        return effect

    def answered_run(self, run_id: str) -> None:
        grant = self.claim(run_id)
        effect = self.send(grant)
        answer = Answer(Outcome.ACCEPTED, status=201, external_request_id="x-request-id=req-7")
        self.ledger.answer_effect(grant, effect.effect_id, answer)
        action = self.ledger.actions(run_id)[0]
        self.ledger.close_action(grant, action.action_id, Sighting(url="https://shop.test/done"), failed=None)
        self.ledger.release_run(grant, failed=False)

    def doubtful_run(self, run_id: str = "invoice-8472") -> str:
        """A run that was left with one request in doubt; returns the id of the doubt."""
        grant = self.claim(run_id, {"customer": "acme"})
        effect = self.send(grant)
        self.ledger.release_run(grant, failed=True)
        return effect.effect_id

    def die(self) -> None:
        """What the death of the process does to the ledger."""
        self.ledger.close()

    def call(self, *arguments: str, environment: Mapping[str, str] | None = None) -> Any:
        """Run ``browsermw`` with these arguments and this ledger."""
        result = CliRunner().invoke(app, [*arguments, "--ledger", self.url], env=dict(environment or {}))
        assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
        return result

    def json(self, *arguments: str) -> Any:
        """Standard output of ``browsermw … --json``, which must be one JSON document."""
        result = self.call(*arguments, "--json")
        assert result.exit_code == 0, result.output
        return json.loads(result.stdout)


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    url = f"sqlite:///{tmp_path}/agent.db"
    ledger = open_ledger(url)
    boot_id = uuid.uuid4().hex
    ledger.open_boot(Boot(boot_id, "agent-7", "host-a", os.getpid()))
    yield Scene(url, ledger, boot_id)
    ledger.close()
