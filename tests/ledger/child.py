"""A process at the ledger, for tests that kill one: ``child.py URL TASK [ARGUMENT]``."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import time
import uuid

from browsermw import faults
from browsermw.errors import LedgerUnavailable, RuntimeOwned
from browsermw.ledger import open_ledger
from browsermw.ledger.contract import ActionPlan, Answer, Boot, EffectPlan, Grant, Ledger, Sighting
from browsermw.protocol.outcome import Outcome
from browsermw.protocol.recovery import Wire


def say(word: object) -> None:
    print(word, flush=True)  # noqa: T201 - how it speaks to the test


def plan(ledger: Ledger, grant: Grant) -> str:
    action_id = uuid.uuid4().hex
    ledger.plan_action(grant, ActionPlan(action_id, "click", "Page.click", "#send", Wire.SEALED), Sighting())
    return action_id


def send(ledger: Ledger, grant: Grant, action_id: str, fingerprint: str) -> str:
    effect_id = uuid.uuid4().hex
    effect = EffectPlan(effect_id, action_id, "POST", "https://shop.test/orders", fingerprint, "Fetch")
    assert ledger.dispatch_effect(grant, effect).effect is not None
    return effect_id


def write(ledger: Ledger, grant: Grant, count: int) -> None:
    for _ in range(count):
        action_id = plan(ledger, grant)
        effect_id = send(ledger, grant, action_id, uuid.uuid4().hex)
        ledger.answer_effect(grant, effect_id, Answer(Outcome.ACCEPTED, 201))
        ledger.close_action(grant, action_id, Sighting(), failed=None)


def fill_disk(ledger: Ledger, grant: Grant) -> None:
    """No file may grow any more; then it may again."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (40_000, hard))
    try:
        write(ledger, grant, 100)
    except LedgerUnavailable as error:
        say(error)
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    write(ledger, grant, 3)
    say("works again")


def die_before_commit(point: faults.Point, call: str) -> None:
    if (point, call) == (faults.Point.LEDGER_BEFORE_COMMIT, sys.argv[3]):
        os.kill(os.getpid(), signal.SIGKILL)


def main() -> None:
    url, task = sys.argv[1], sys.argv[2]
    ledger = open_ledger(url)
    boot = Boot(uuid.uuid4().hex, "child" if task != "write" else f"child-{os.getpid()}", "host-c", os.getpid())
    try:
        ledger.open_boot(boot)
    except RuntimeOwned:
        say("owned")
        return
    grant = ledger.claim_run(f"run-{boot.runtime}", boot.boot_id, {}).grant
    if task == "write":
        write(ledger, grant, int(sys.argv[3]))
    elif task == "full":
        fill_disk(ledger, grant)
    elif task == "die":
        faults.arm(die_before_commit)
        write(ledger, grant, 1)
    elif task == "hold":
        send(ledger, grant, plan(ledger, grant), "f1")
    elif task == "parent":
        browser = subprocess.Popen(["sleep", "60"], close_fds=False)
        forked = os.fork()
        if not forked:
            time.sleep(60)
        say(f"{browser.pid} {forked}")
    say("ready")
    sys.stdin.readline()


main()
