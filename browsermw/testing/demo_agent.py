"""The demo's agent: an ordinary Playwright script that orders one thing, and uses browsermw's public API only.

Started by ``demo_story`` as a process of its own, twice with the same arguments: the first one is killed. Which of the
two it is, it learns from the ledger alone. Prints one JSON object a line about where it stands.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from typing import TYPE_CHECKING
from urllib.parse import quote

import structlog
from playwright.sync_api import sync_playwright

import browsermw

if TYPE_CHECKING:
    from playwright.sync_api import BrowserContext, Page

HOLD_MS = 60_000
"""How long the shop keeps its answer back; the agent is killed long before."""


def main() -> None:
    """Order the item, or find out what an earlier start of this script did."""
    asked = _arguments()
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))
    with browsermw.open(os.environ["BROWSERMW_LEDGER"], runtime=asked.runtime) as mw, sync_playwright() as p:
        browser = p.chromium.launch(**mw.launch_options(headless=not asked.headed))
        with mw.run(asked.run, labels={"item": asked.item}) as run:
            say("ready", pid=os.getpid(), read_only=bool(run.quarantined))
            context = run.wrap(browser.new_context())
            in_doubt = bool(run.quarantined)
            reference = recover(mw, run, context, asked) if in_doubt else order(context.new_page(), asked)
        browser.close()
    say("finished", reference=reference, phase=str(run.phase))


def order(page: Page, asked: argparse.Namespace) -> str:
    """Fill the form in, send it, and read the reference of the order."""
    page.goto(f"{asked.shop}/form?action={quote(f'/order-slow?ms={HOLD_MS}', safe='')}")
    page.fill("#item", asked.item)
    say("clicking", url=page.url)
    page.click("#send")
    return page.inner_text("#reference")


def recover(mw: browsermw.Runtime, run: browsermw.Run, context: BrowserContext, asked: argparse.Namespace) -> str:
    """Take nothing on trust: see what is in doubt, ask the shop, record what it says, go on from there."""
    for doubt in run.quarantined:
        say("told", doubt=doubt.model_dump(mode="json"))
    page = context.new_page()
    try:
        reference = order(page, asked)
    except browsermw.Quarantined as refusal:
        say("refused", message=str(refusal))
    else:
        say("ordered again", reference=reference)
        return reference

    asking = f"{asked.shop}/api/orders?item={quote(asked.item)}"
    found = context.request.get(asking).json()
    say("looked up", url=asking, orders=found)
    for doubt in run.quarantined:
        note = f"GET {asking} answered: {', '.join(it['id'] for it in found) or 'no order'}"
        settled = mw.resolve(
            doubt.quarantine_id, verdict="committed" if found else "not_committed", note=note, source="demo-agent"
        )
        say("settled", doubt=settled.model_dump(mode="json"), note=note)
        if doubt.effect is not None and found:
            run.mark_observed(doubt.effect.effect_id)
    if not found:
        return order(page, asked)
    page.goto(f"{asked.shop}/orders/{found[0]['id']}")
    return page.inner_text("#reference")


def say(step: str, **facts: object) -> None:
    """Tell whoever started this where it stands."""
    print(json.dumps({"step": step, **facts}), flush=True)  # noqa: T201 - this is a script, and its output is its report


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("runtime", "run", "shop", "item"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--headed", action="store_true")
    return parser.parse_args()


if __name__ == "__main__":
    main()
