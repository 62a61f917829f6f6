"""An agent that a test kills: guards a context, goes to a page, clicks, and stops where the test wants it.

``python tests/crash_agent.py`` imports what an agent needs and waits; each line on its standard input is a
``tests.crashes.Spec`` as JSON, for which it forks an agent in a session of its own and says the agent's ``pid``. So a
test pays for the imports once, and the process that it kills is one like any other.

The agent says one JSON object a line into its ``speaks`` (a named pipe): ``browser`` (the debugging port), ``clicks``,
``reached`` (a fault point), ``clicked``, ``refused``, ``done``. At its fault point it blocks the very thread that
reached it, for good: that is a process stopped there, and the test ends it with SIGKILL.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import threading
from typing import Any

from playwright.async_api import async_playwright
from playwright.sync_api import sync_playwright

import browsermw
from browsermw import faults
from tests.browser_kit import plain_launch

TELL_FAILURE = """addEventListener("DOMContentLoaded", () => {
  const result = document.getElementById("result");
  if (result) new MutationObserver(() => {
    if (result.textContent !== "sending") document.title = result.textContent;
  }).observe(result, {childList: true});
});"""
"""Lets the test see from outside (in the list of pages) what became of a held ``fetch`` that was let go."""


ANSWERED = (
    """() => !["", "sending"].includes(document.getElementById("result")?.textContent ?? "no script sends here")"""
)
"""True once a ``fetch`` of the page has come to something; the click that set it off returns before."""


def say(**facts: object) -> None:
    print(json.dumps(facts), flush=True)  # noqa: T201 - how it speaks to the test


def arm(stop: list[str] | None) -> None:
    if stop is None:
        return
    point, *details = stop

    def hook(reached: faults.Point, detail: str) -> None:
        if reached == point and detail in (details or [detail]):
            say(reached=reached, detail=detail)
            threading.Event().wait()

    faults.arm(hook)


def opened(spec: dict[str, Any]) -> browsermw.Runtime:
    wire: Any = "routed" if spec["routed"] else "attached" if spec["cdp"] else "sealed"
    policy = browsermw.Policy(minimum_wire=wire, **spec["policy"])
    return browsermw.open(spec["ledger"], runtime=spec["runtime"], policy=policy)


def launch_options(spec: dict[str, Any], mw: browsermw.Runtime) -> dict[str, Any]:
    if spec["routed"]:
        return plain_launch()
    options = mw.launch_options(headless=True)
    port = next(arg for arg in options["args"] if arg.startswith("--remote-debugging-port=")).partition("=")[2]
    say(browser=int(port))
    return options


class Doubts:
    """What the run had in doubt or unread when it was claimed; settled by the steps of that name."""

    def __init__(self, mw: browsermw.Runtime, run: browsermw.Run) -> None:
        self._mw, self._run = mw, run
        self._doubts = [doubt.quarantine_id for doubt in run.quarantined]
        self._unread = [effect.effect_id for effect in run.resume.answered_unread] if run.resume else []

    def settle(self, step: str) -> None:
        if step == "observed":
            for effect_id in self._doubts + self._unread:
                self._run.mark_observed(effect_id)
            return
        verdict: Any = step
        for quarantine_id in self._doubts:
            self._mw.resolve(quarantine_id, verdict=verdict, note="the test asked the shop")


def refused(error: browsermw.BrowsermwError) -> None:
    say(refused=type(error).__name__, message=str(error))


def work_sync(spec: dict[str, Any]) -> None:
    with opened(spec) as mw, sync_playwright() as p:
        if spec["cdp"]:
            mw.attach(spec["cdp"])
            browser = p.chromium.connect_over_cdp(spec["cdp"])
        else:
            browser = p.chromium.launch(**launch_options(spec, mw))
        for job in spec["jobs"]:
            try:
                with mw.run(job["run"]) as run:
                    doubts = Doubts(mw, run)
                    context = browser.new_context(
                        ignore_https_errors=True, service_workers="block" if spec["routed"] else "allow"
                    )
                    context.add_init_script(TELL_FAILURE)
                    page = run.wrap(context).new_page()
                    for step in spec["steps"]:
                        if step != "click":
                            doubts.settle(step)
                            continue
                        page.goto(job["page"])
                        arm(spec["stop"])
                        say(clicks=True)
                        try:
                            page.click(job["button"])
                            page.wait_for_function(job["until"] or ANSWERED)
                            say(clicked=page.url)
                        except browsermw.BrowsermwError as error:
                            refused(error)
                    context.close()
            except browsermw.BrowsermwError as error:
                refused(error)


async def work_async(spec: dict[str, Any]) -> None:
    async with opened(spec) as mw, async_playwright() as p:
        if spec["cdp"]:
            mw.attach(spec["cdp"])
            browser = await p.chromium.connect_over_cdp(spec["cdp"])
        else:
            browser = await p.chromium.launch(**launch_options(spec, mw))
        for job in spec["jobs"]:
            try:
                async with mw.run(job["run"]) as run:
                    doubts = Doubts(mw, run)
                    context = await browser.new_context(
                        ignore_https_errors=True, service_workers="block" if spec["routed"] else "allow"
                    )
                    await context.add_init_script(TELL_FAILURE)
                    page = await run.wrap(context).new_page()
                    for step in spec["steps"]:
                        if step != "click":
                            doubts.settle(step)
                            continue
                        await page.goto(job["page"])
                        arm(spec["stop"])
                        say(clicks=True)
                        try:
                            await page.click(job["button"])
                            await page.wait_for_function(job["until"] or ANSWERED)
                            say(clicked=page.url)
                        except browsermw.BrowsermwError as error:
                            refused(error)
                    await context.close()
            except browsermw.BrowsermwError as error:
                refused(error)


def work(spec: dict[str, Any]) -> None:
    sys.stdout = open(spec["speaks"], "w", encoding="utf-8")  # noqa: PTH123, SIM115 - as long as the agent lives
    if spec["flavour"] == "async":
        asyncio.run(work_async(spec))
    else:
        work_sync(spec)
    say(done=True)


def main() -> None:
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the kernel forgets the dead at once
    for line in sys.stdin:
        pid = os.fork()
        if not pid:
            os.setsid()
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            work(json.loads(line))
            return
        say(pid=pid)


if __name__ == "__main__":
    main()
