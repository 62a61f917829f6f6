"""``Run``: one logical task, its guarded contexts, and what an earlier boot left of it.

What users work with. It claims the run, wraps contexts, and leaves the run in the phase that its effects prove. It
holds no decision of its own: claims, sweeps and phases are the ledger's, requests are the gate's.
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Self, TypeVar

from browsermw.errors import BrowsermwError, RunOwned, Superseded, WireTooWeak
from browsermw.events import Events
from browsermw.hooks.guards import Guard, find_guard, register
from browsermw.hooks.launched import (
    blocks_service_workers,
    debugging_port_of,
    has_own_proxy,
    is_chromium,
    lost_relay,
)
from browsermw.hooks.looks import look_async, look_sync
from browsermw.hooks.waiting import wait_through
from browsermw.protocol.phases import RunPhase
from browsermw.protocol.recovery import Wire
from browsermw.verifying import checkpoint_of, guard_in, verified

if TYPE_CHECKING:
    from concurrent.futures import Future
    from types import TracebackType

    from browsermw.ledger.contract import Claim
    from browsermw.models import Effect, Quarantine, ResumeReport, Verification
    from browsermw.runtime import Runtime
    from browsermw.wire.chromium import GuardedBrowser
    from browsermw.wire.engine import Engine
    from browsermw.wire.routed import RoutedContext

Context = TypeVar("Context")
CLAIM_RETRY_S = 0.1

log = Events("browsermw")


class Run:
    """See ``Runtime.run``.

    Attributes:
        run_id: The durable id.
        runtime: The runtime that owns it.
        resume: What an earlier boot left; ``None`` for a new run and before it is entered.
        phase: Phase in which it was left; ``ACTIVE`` while it is open, ``None`` before.
    """

    FOR_HOOKS = ("abandon", "identify", "identify_routed")
    """Members that other modules of the package use and users do not."""

    def __init__(self, runtime: Runtime, run_id: str, labels: dict[str, str], wait_s: float) -> None:
        self.run_id = run_id
        self.runtime = runtime
        self.resume: ResumeReport | None = None
        self.phase: RunPhase | None = None
        self._labels = labels
        self._wait_s = wait_s
        self._claim: Claim | None = None
        self._guards: list[Guard] = []

    # Claiming and leaving.

    def __enter__(self) -> Self:
        """Claim the run and sweep what an earlier boot left.

        Raises:
            Held: The runtime admits no work.
            RunOwned: A live process owns it; names the owner.
            LedgerCorrupt: A record of it is damaged; names the record.
        """
        return self.runtime.submit(self._enter()).result()  # type: ignore[no-any-return]

    async def __aenter__(self) -> Self:
        """See ``__enter__``."""
        return await asyncio.wrap_future(self.runtime.submit(self._enter()))

    async def _enter(self) -> Self:
        if self.phase is RunPhase.ACTIVE:
            raise RunOwned(f"Nothing left the browser: run {self.run_id!r} is open in this very process already.")
        deadline_s = time.monotonic() + self._wait_s
        while True:
            try:
                claim = await self.runtime.ledger_work("claim_run", self.run_id, self.runtime.boot_id, self._labels)
                break
            except RunOwned:
                if time.monotonic() >= deadline_s:
                    raise
            await asyncio.sleep(CLAIM_RETRY_S)
        self._claim, self.resume, self.phase = claim, claim.resume, RunPhase.ACTIVE
        self.runtime.desk.add_run(claim.grant)
        self.runtime.enter_run(self)
        doubts = len(self.resume.in_doubt) if self.resume else 0
        log.info("run_claimed", run=self.run_id, fence=claim.grant.fence, in_doubt=doubts)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Wait for answers that are still out (``policy.settle_s``), then leave the run.

        Without an error and without doubt it is FINISHED; with an error SUSPENDED; with doubt NEEDS_REVIEW.
        """
        self._wait_for_answers()
        self._leave_now(failed=error is not None)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """See ``__exit__``."""
        await asyncio.shield(asyncio.wrap_future(self.runtime.submit(self._settle())))
        await asyncio.shield(asyncio.to_thread(self._leave_now, failed=error is not None))

    def abandon(self) -> None:
        """The runtime closes under an open run: leave it as after an error, without waiting for answers."""
        if self.phase is RunPhase.ACTIVE:
            self._leave_now(failed=True)

    def _leave_now(self, *, failed: bool) -> None:
        """Leave also where the ledger cannot be told: its contexts must still close, and the next claim sweeps."""
        phase = RunPhase.SUSPENDED
        try:
            phase = self.runtime.submit(self._leave(failed=failed)).result()
        finally:
            self._left(phase)

    def _wait_for_answers(self) -> None:
        future: Future[None] = self.runtime.submit(self._settle())
        page = next((page for guard in self._guards if guard.sync for page in guard.open_pages()), None)
        wait_through(future, page)

    async def _settle(self) -> None:
        await self.runtime.desk.settle(self.run_id, self.runtime.policy.settle_s)

    async def _leave(self, *, failed: bool) -> RunPhase:
        assert self._claim is not None
        self.runtime.desk.drop_run(self.run_id)
        phase = RunPhase.SUSPENDED
        try:
            phase = await self.runtime.ledger_work("release_run", self._claim.grant, failed=failed)
        except Superseded:
            log.warning("run_superseded", run=self.run_id)
        return phase

    def _left(self, phase: RunPhase) -> None:
        self.phase = phase
        for guard in self._guards:
            guard.closed = True
        self.runtime.leave_run(self)
        log.info("run_left", run=self.run_id, phase=str(phase))

    # Guarding contexts.

    def wrap(self, context: Context) -> Context:
        """Guard a Playwright context, sync or async; the same object comes back.

        Its pages, popups, frames, locators and ``context.request``, also those taken before the call, are guarded
        from then on. Wrapping twice for the same run changes nothing.

        Args:
            context: A ``BrowserContext`` of a browser that was launched with ``mw.launch_options()``; with
                ``policy.minimum_wire="routed"`` of any browser.

        Raises:
            TypeError: It is no Playwright context.
            BrowsermwError: It is closed, or belongs to another run.
            WireTooWeak: It cannot be guarded as ``policy.minimum_wire`` asks; names the ways out.
        """
        if self._claim is None or self.phase is not RunPhase.ACTIVE:
            raise BrowsermwError(
                f"Nothing left the browser: run {self.run_id!r} is not open; enter it first: "
                "`with mw.run(...) as run:`."
            )
        known = find_guard(context)
        if known is not None and not known.closed:
            if known.run is self:
                return context
            raise BrowsermwError(
                f"Nothing left the browser: this context belongs to run {known.run.run_id!r}; make a context of its "
                f"own for run {self.run_id!r}."
            )
        guard = Guard(self, context)
        guard.check_open()
        candidates = self._candidates(context)
        guard.identify(candidates)
        self._guards.append(guard)
        register(guard)
        return context

    def _candidates(self, context: object) -> list[GuardedBrowser]:
        """The guarded browsers that a context may live in; none where it is to be routed."""
        browsers = self.runtime.browsers_for(debugging_port_of(context)) if is_chromium(context) else []
        minimum = Wire(self.runtime.policy.minimum_wire)
        if has_own_proxy(context) and minimum is Wire.SEALED:
            raise WireTooWeak(
                "Nothing left the browser: this context has a proxy of its own, which goes around the relay. Give the "
                "proxy to mw.launch_options(proxy=…), which chains it behind the relay."
            )
        if lost_relay(context):
            raise WireTooWeak(
                "Nothing left the browser: with client_certificates, launch_persistent_context starts the browser with "
                "a proxy of Playwright's own in the place of the relay. Launch it with "
                "`chromium.launch(**mw.launch_options())` and give client_certificates to browser.new_context(), "
                "which keeps the relay behind that proxy."
            )
        if not browsers and minimum is Wire.ROUTED:
            self._check_workers(context)
        elif not browsers:
            raise WireTooWeak(_no_gate(context))
        return browsers

    def _check_workers(self, context: object) -> None:
        if self.runtime.policy.service_workers == "refuse" and not blocks_service_workers(context):
            raise WireTooWeak(
                "Nothing left the browser: this context's service workers are not known to be blocked, and what they "
                "send does not come to Playwright's routes. Make it with browser.new_context(service_workers='block') "
                "while the runtime is open, or set policy.service_workers to 'allow' knowingly."
            )

    async def identify(self, marker: str, browsers: list[GuardedBrowser]) -> str | None:
        """On the runtime's loop: find the marked context and take it under the gate.

        Returns:
            Its id at the gate; ``None`` only where it may be routed instead.
        """
        for browser in browsers:
            await browser.ready()
            context_id = await browser.context_with_marker(marker)
            if context_id is not None:
                await self._take(context_id, browser)
                return context_id
        if self.runtime.policy.minimum_wire != "routed":
            raise WireTooWeak(
                "Nothing left the browser: the context is in none of the guarded browsers. Launch its browser with "
                "mw.launch_options(), guard it with mw.attach(cdp_url), or guard it through Playwright's own routing "
                "with policy.minimum_wire='routed', which promises less (see docs/explanation/wires.md)."
            )
        return None

    async def identify_routed(self, engine: RoutedContext) -> None:
        """On the runtime's loop: take a context that no gate stands before, as Playwright's routes will show it."""
        self._check_workers(engine.context)
        await self._take(engine.context_id, engine)

    async def _take(self, context_id: str, engine: Engine) -> None:
        run = self.runtime.desk.runs[self.run_id]
        run.contexts[context_id] = engine
        run.wires[context_id] = engine.wire
        await self.runtime.ledger_work("set_wire", run.grant, run.wire_of(None))
        log.info("context_wrapped", run=self.run_id, wire=str(engine.wire))

    # Doubt.

    @property
    def quarantined(self) -> list[Quarantine]:
        """What may have happened and must not be repeated; while there is any, the run is read-only."""
        return list(self.runtime.ledger_call("quarantined", self.run_id))

    # What an earlier boot saw.

    def verify(self, page: object) -> Verification:
        """Hold a page of this run against the last checkpoint that an earlier boot left (``resume.last_checkpoint``).

        Bring the page back first: sign in, go to the checkpoint's URL. It is looked at, and nothing is sent.

        Args:
            page: A sync Playwright ``Page`` of a context that this run wraps.

        Returns:
            What is the same and what is not; print it, or ask ``is_same``.

        Raises:
            IdentityMismatch: Another user is signed in there (``policy.identity``).
            BrowsermwError: No earlier boot left a checkpoint, or the page is not this run's.
        """
        guard, before = guard_in(self, page), checkpoint_of(self)
        looked = self.runtime.desk.look(self.run_id, guard.page_id_sync(page), look_sync(guard, page))
        return verified(self, before, wait_through(self.runtime.submit(looked), page))

    async def averify(self, page: object) -> Verification:
        """See ``verify``; for an async page."""
        guard, before = guard_in(self, page), checkpoint_of(self)
        await guard.identified()
        page_id = await guard.page_id_async(page)
        looked = self.runtime.desk.look(self.run_id, page_id, await look_async(guard, page))
        return verified(self, before, await asyncio.wrap_future(self.runtime.submit(looked)))

    def mark_observed(self, effect_id: str) -> Effect:
        """Say that you read the result of an answered effect at the application (see ``resume.answered_unread``).

        Only then may the same request be made again in this run.

        Raises:
            KeyError: No such effect in this run.
            IllegalTransition: It is not answered, or was taken before.
        """
        if self._claim is None:
            raise BrowsermwError(f"Nothing left the browser: run {self.run_id!r} is not open.")
        return self.runtime.ledger_call("mark_observed", self._claim.grant, effect_id)  # type: ignore[no-any-return]


def _no_gate(context: object) -> str:
    """Why a context cannot be guarded as the policy asks, and what would help."""
    routed = (
        "guard it through Playwright's own routing with policy.minimum_wire='routed', which promises less still (see "
        "docs/explanation/wires.md)."
    )
    if not is_chromium(context):
        return (
            "Nothing left the browser: this context's browser is no Chromium, so no gate can stand before it. Either "
            f"use `chromium.launch(**mw.launch_options())`, or {routed}"
        )
    return (
        "Nothing left the browser: this context's browser was not launched with mw.launch_options(), so no gate stands "
        "before it. Either launch it with `chromium.launch(**mw.launch_options())`, or guard it as it is with "
        f"mw.attach(cdp_url) and policy.minimum_wire='attached', which promises less, or {routed}"
    )
