"""The desk: joins the gate, the hooks and the ledger, on the runtime's loop.

Two kinds of callers. The gate shows a held request and asks what to do (``rule``), and shows answers
(``answered``). The hooks open and close actions and API calls. Every yes is preceded by a durable record; every
failure on the way is a no. What is an effect, whether it may leave and what an answer means is decided in
``protocol``; what is stored, in ``ledger``; the desk only puts them in order.
"""

from __future__ import annotations

import asyncio
import uuid
from functools import partial
from typing import TYPE_CHECKING, Any

from browsermw.boundary import ActionClosed, CallTicket, CloseAction, CloseCall, OpenAction, OpenCall
from browsermw.errors import BrowsermwError, InFlightDuplicate, LedgerUnavailable, Superseded
from browsermw.events import Events
from browsermw.ledger.contract import ActionPlan, Answer, EffectPlan, Grant, Sighting
from browsermw.page.redact import redact_url
from browsermw.page.request_ids import external_request_id, location
from browsermw.protocol.admission import Refusal
from browsermw.protocol.effect_rules import is_effect
from browsermw.protocol.fingerprints import fingerprint
from browsermw.protocol.outcome import Outcome, outcome_of_error, outcome_of_status
from browsermw.refusals import describe, refusal_error
from browsermw.scopes import GuardedRun, Scope
from browsermw.wire.held import HeldRequest, Ruling, SeenAnswer, origin_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from browsermw.ledger.contract import Ledger
    from browsermw.models import Effect
    from browsermw.policy import Policy
    from browsermw.sight import Sight
    from browsermw.wire.chromium import GuardedBrowser

HOP_STATUSES = (307, 308)

log = Events("browsermw")


class Desk:
    """See the module.

    Args:
        ledger: The durable store.
        call: Runs a blocking ledger call on the ledger's threads.
        policy: The user's rules.
        sight: Looks at pages for checkpoints.
        lease_holds: Whether this boot's lease surely runs still, by its own clock.
    """

    def __init__(
        self,
        ledger: Ledger,
        call: Callable[..., Awaitable[Any]],
        policy: Policy,
        sight: Sight,
        lease_holds: Callable[[], bool],
    ) -> None:
        self._ledger = ledger
        self._call = call
        self._policy = policy
        self._sight = sight
        self._lease_holds = lease_holds
        self.runs: dict[str, GuardedRun] = {}

    # The gate's side.

    async def rule(self, held: HeldRequest) -> Ruling:
        """Decide about a held request (see ``wire.held.Desk``)."""
        run = self._run_of(held.context_id)
        if run is None:
            if self._policy.unowned == "allow" and held.context_id is not None:
                return Ruling()
            log.warning("effect_refused", reason=Refusal.UNOWNED, method=held.method, url=redact_url(held.url))
            return Ruling(refusal=Refusal.UNOWNED)
        scope = self._scope_of(run, held)
        with scope:
            ruling = await self._rule_in(run, scope, held)
        if scope.by_page and not scope.unanswered:
            await self._close_unwatched(run, scope)
        return ruling

    def _run_of(self, context_id: str | None) -> GuardedRun | None:
        return next((run for run in self.runs.values() if context_id in run.contexts), None)

    def _scope_of(self, run: GuardedRun, held: HeldRequest) -> Scope:
        continued = run.hops.pop(held.continues or "", None)
        if continued is not None and (continued.by_page or continued in run.scopes):
            return continued
        found = run.scope_for(page.target_id for page in held.pages)
        if found is not None:
            return found
        page_id = held.pages[0].target_id if held.pages else None
        return self._new_scope(run, "page", "", redact_url(held.url), page_id, context_id=held.context_id)

    def _new_scope(
        self,
        run: GuardedRun,
        kind: str,
        method: str,
        target: str,
        page_id: str | None,
        *,
        context_id: str | None = None,
        lazy: bool = False,
        reads_only: bool = False,
    ) -> Scope:
        wire = run.wire_of(context_id or self._context_of(run, page_id))
        return Scope(new_id("a"), kind, method, target[:300], page_id, wire, lazy=lazy, reads_only=reads_only)

    def _context_of(self, run: GuardedRun, page_id: str | None) -> str | None:
        for context_id, browser in run.contexts.items():
            target = browser.targets.targets.get(page_id or "")
            if target is not None and target.context_id == context_id:
                return context_id
        return None

    async def _rule_in(self, run: GuardedRun, scope: Scope, held: HeldRequest) -> Ruling:
        effect_id = new_id("e")
        url = redact_url(held.url)
        if scope.by_page:
            run.habits.add((scope.page_id, held.method, url))
        plan = EffectPlan(
            effect_id=effect_id,
            action_id=scope.action_id,
            method=held.method,
            url=url,
            fingerprint=fingerprint(
                held.method,
                held.url,
                held.content_type,
                held.body,
                volatile=self._policy.volatile_fields,
                unique=effect_id,
            ),
            channel=held.channel,
            refusal=Refusal.REPLAYED_NAVIGATION if held.repeats and held.navigates else None,
            continues=held.continues,
        )
        return await self._dispatch(run, scope, plan, held.context_id)

    async def _dispatch(self, run: GuardedRun, scope: Scope, plan: EffectPlan, context_id: str | None) -> Ruling:
        """Write DISPATCHED, or refuse; the only way to a release."""
        try:
            await self._ensure_planned(run, scope)
            answer = await self._call(self._ledger.dispatch_effect, run.grant, plan)
        except BrowsermwError as error:
            return self._refused(run, scope, plan, _refusal_of(error), cause=error)
        if answer.refusal is not None:
            return self._refused(run, scope, plan, answer.refusal, rival=answer.rival)
        run.left(scope, answer.effect, context_id)
        if scope.given_up or not self._lease_holds():
            # Nobody waits for it any more, or the run may be another's by now: it has not left, and never will.
            await self._settle(
                run, plan.effect_id, Answer(Outcome.NOT_SENT, reason="not released: the call had given up")
            )
            return self._refused(run, scope, plan, Refusal.CALLER_GONE)
        return Ruling(effect_id=plan.effect_id)

    async def _ensure_planned(self, run: GuardedRun, scope: Scope) -> None:
        """A script, or a page by itself, gets its record with its first effect."""
        async with scope.planning:
            if scope.planned:
                return
            # In quarantine the refusal itself has to be on record, so the action passes and its effect does not.
            plan = ActionPlan(
                scope.action_id, scope.kind, scope.method, scope.target, scope.wire, passes_quarantine=True
            )
            await self._call(self._ledger.plan_action, run.grant, plan, self._sight.address(run, scope.page_id))
            scope.planned = True

    def _refused(
        self,
        run: GuardedRun,
        scope: Scope,
        plan: EffectPlan,
        refusal: Refusal,
        *,
        rival: Any = None,
        cause: BrowsermwError | None = None,
    ) -> Ruling:
        error = refusal_error(refusal, plan.method, plan.url, rival=rival, cause=str(cause) if cause else "")
        where = scope.refusals if _is_the_calls_own(run, scope, plan) else scope.asides
        where.append(error)
        scope.last_refusal = error
        log.warning("effect_refused", reason=str(refusal), method=plan.method, url=plan.url, action=scope.action_id)
        return Ruling(refusal=refusal)

    async def answered(self, effect_id: str, seen: SeenAnswer) -> bool:
        """Record an answer (see ``wire.held.Desk``)."""
        run = next((run for run in self.runs.values() if effect_id in run.in_flight), None)
        if run is None:
            log.warning("late_answer", effect=effect_id, status=seen.status)
            return False
        return await self._settle(run, effect_id, _answer_from(seen))

    async def _settle(self, run: GuardedRun, effect_id: str, answer: Answer) -> bool:
        try:
            await self._call(self._ledger.answer_effect, run.grant, effect_id, answer)
        except BrowsermwError as error:
            log.error("answer_not_recorded", run=run.grant.run_id, effect=effect_id, cause=str(error))
            return False
        scope = run.answered(effect_id)
        if scope is not None and answer.status in HOP_STATUSES:
            # The browser sends the same body on: the hop belongs to the action of the effect that it continues.
            run.hops[effect_id] = scope
        elif scope is not None and scope.by_page and not scope.unanswered and scope.quiet.is_set():
            await self._close_unwatched(run, scope)
        return True

    async def _close_unwatched(self, run: GuardedRun, scope: Scope) -> None:
        """What a page did by itself ends with its last answer; nobody looks at the page for it."""
        if not scope.planned:
            return
        where = self._sight.address(run, scope.page_id)
        try:
            await self._call(partial(self._ledger.close_action, run.grant, scope.action_id, where, failed=None))
        except BrowsermwError as error:
            log.error("action_not_closed", run=run.grant.run_id, action=scope.action_id, cause=str(error))

    def browser_lost(self, browser: GuardedBrowser) -> None:
        """The browser is gone: what was in flight there will never be answered here."""
        for run in self.runs.values():
            for effect_id, context_id in list(run.context_of_effect.items()):
                if context_id is not None and run.contexts.get(context_id) is browser:
                    answer = Answer(Outcome.UNKNOWN, reason="the browser ended before the answer")
                    task = asyncio.get_running_loop().create_task(self._settle(run, effect_id, answer))
                    run.endings.add(task)
                    task.add_done_callback(run.endings.discard)

    # The hooks' side.

    async def open_action(self, ask: OpenAction) -> str:
        """Admission, before-checkpoint and PLANNED; returns the action's id.

        Raises:
            Held, Quarantined, Superseded, LedgerUnavailable: Not admitted; the call must not be made.
            InFlightDuplicate: The same call was made on this page before, and the navigation that it sent is
                unanswered.
        """
        run = self._owned(ask.run_id)
        scope = self._new_scope(
            run, ask.kind, ask.method, _shown(ask.target), ask.page_id, lazy=ask.lazy, reads_only=ask.reads_only
        )
        _refuse_second_click(run, scope)
        if not ask.lazy:
            before = await self._sight.look(run, ask.page_id)
            plan = ActionPlan(
                scope.action_id, scope.kind, scope.method, scope.target, scope.wire, reads_only=ask.reads_only
            )
            await self._call(self._ledger.plan_action, run.grant, plan, before)
            scope.planned = True
        run.scopes.append(scope)
        return scope.action_id

    async def close_action(self, ask: CloseAction) -> ActionClosed:
        """After-checkpoint and the phase that follows.

        Raises:
            LedgerUnavailable: The call was made, and its after-checkpoint could not be stored.
        """
        run = self._owned(ask.run_id)
        scope = run.scope(ask.action_id)
        if scope is None:
            return ActionClosed()
        scope.given_up = ask.failed is not None
        try:
            after = await self._last_look(run, scope)
            # From here on a request is the page's own. One that still came to this action would be an effect of one
            # that has ended; and a page that sends without a pause would keep the call from ever returning.
            run.scopes.remove(scope)
            await scope.decided()
            if scope.planned:
                after = after or await self._sight.look(run, scope.page_id)
                close = partial(self._ledger.close_action, run.grant, scope.action_id, after, failed=ask.failed)
                await self._call(close)
        except LedgerUnavailable as error:
            raise LedgerUnavailable(_after_failed(scope, error)) from error
        finally:
            if scope in run.scopes:
                run.scopes.remove(scope)
        waiting = tuple(effect for _, effect in run.unanswered_on(scope.page_id) if effect.effect_id not in scope.left)
        asides = () if scope.reads_only else tuple(scope.asides)
        return ActionClosed(tuple(scope.refusals), asides, tuple(scope.unanswered.values()), len(scope.left), waiting)

    async def _last_look(self, run: GuardedRun, scope: Scope) -> Sighting | None:
        """Give the page its next turn, so that what the call set off is at the gate, and look at it there.

        Nobody looks for a call that may turn out to have sent nothing at all.
        """
        if scope.lazy:
            await self._caught_up(run, scope.page_id)
            return None
        after = await self._sight.look(run, scope.page_id, next_turn=True)
        await self._caught_up(run, scope.page_id, turned=True)
        return after

    async def _caught_up(self, run: GuardedRun, page_id: str | None, *, turned: bool = False) -> None:
        browser = next((it for it in run.contexts.values() if page_id in it.targets.targets), None)
        if browser is not None and page_id is not None:
            await browser.caught_up(page_id, turned=turned)

    async def open_call(self, ask: OpenCall) -> CallTicket:
        """Journal a request that Playwright's driver will send.

        Raises:
            EffectRefused: It must not be sent; the error says why.
        """
        if not is_effect(self._policy, ask.method, ask.url, ask.content_type, ask.body):
            return CallTicket(None)
        run = self._owned(ask.run_id)
        kind = "page" if ask.page_id is not None else "api"
        scope = (run.scope_for([ask.page_id]) if ask.page_id is not None else None) or self._new_scope(
            run, kind, ask.api_method, redact_url(ask.url), ask.page_id
        )
        effect_id = new_id("e")
        print_ = fingerprint(
            ask.method, ask.url, ask.content_type, ask.body, volatile=self._policy.volatile_fields, unique=effect_id
        )
        plan = EffectPlan(effect_id, scope.action_id, ask.method, redact_url(ask.url), print_, "api")
        with scope:
            ruling = await self._dispatch(run, scope, plan, None)
        error = scope.last_refusal
        if ruling.refusal is not None and error is not None:
            scope.forget(error)
            if scope not in run.scopes:
                await self._close_unwatched(run, scope)
            raise error
        return CallTicket(effect_id, scope.action_id, asyncio.get_running_loop().time())

    async def close_call(self, ask: CloseCall) -> Effect | None:
        """Record what became of it; returns the effect while its outcome is unknown."""
        effect_id = ask.ticket.effect_id
        run = self._owned(ask.run_id)
        if effect_id is None or effect_id not in run.in_flight:
            return None
        scope, effect = run.in_flight[effect_id]
        seen = SeenAnswer(status=ask.status, headers=ask.headers, error=ask.failed, reached=self._reached(run, ask))
        answer = Answer(Outcome.NOT_SENT, reason=ask.failed) if ask.never_made else _answer_from(seen)
        recorded = await self._settle(run, effect_id, answer)
        if scope not in run.scopes and not scope.by_page:
            await self._close_unwatched(run, scope)
        if not recorded:
            raise LedgerUnavailable(
                f"{effect.method} {effect.url} was sent and its answer could not be recorded: do not repeat it. It is "
                "in doubt until it is settled."
            )
        return effect if answer.outcome is Outcome.UNKNOWN else None

    def _reached(self, run: GuardedRun, ask: CloseCall) -> bool | None:
        host, _ = origin_of(ask.url)
        if ask.failed is None or not host:
            return None
        seen = [browser.reached(*origin_of(ask.url), since=ask.ticket.sent_from_s) for browser in run.contexts.values()]
        return None if not seen or None in seen else any(seen)

    async def settle(self, run_id: str, timeout_s: float) -> None:
        """Wait until nothing of the run is in flight, at most that long."""
        run = self.runs.get(run_id)
        if run is not None:
            try:
                await asyncio.wait_for(run.settled.wait(), timeout_s)
            except TimeoutError:
                log.warning("still_unanswered", run=run_id, effects=sorted(run.in_flight))

    def _owned(self, run_id: str) -> GuardedRun:
        run = self.runs.get(run_id)
        if run is None:
            raise Superseded(
                f"Nothing left the browser: run {run_id!r} is closed in this process; open it again with mw.run()."
            )
        return run

    def add_run(self, grant: Grant) -> GuardedRun:
        """Take up a claimed run."""
        run = self.runs[grant.run_id] = GuardedRun(grant)
        return run

    def drop_run(self, run_id: str) -> None:
        """From now on the gate refuses what its contexts send."""
        self.runs.pop(run_id, None)


def new_id(letter: str) -> str:
    """An id that is unique in the ledger, made before any I/O: a letter for its kind and 20 hexadecimal digits."""
    return f"{letter}-{uuid.uuid4().hex[:20]}"


def _refuse_second_click(run: GuardedRun, scope: Scope) -> None:
    """The same click again while its own navigation is unanswered.

    Playwright would wait for that navigation and then click on whatever page came of it (field note 9: refuse
    before the click).
    """
    for rival_scope, rival in run.unanswered_on(scope.page_id):
        if rival.channel == "Document" and (rival_scope.kind, rival_scope.target) == (scope.kind, scope.target):
            raise InFlightDuplicate(
                f"{scope.method} was not performed and nothing left the browser: the page still waits for the answer "
                f"to the same action: {describe(rival)}. Wait for it, or settle it with a verdict.",
                facts={"rival": rival.effect_id},
            )


def _is_the_calls_own(run: GuardedRun, scope: Scope, plan: EffectPlan) -> bool:
    """Whether the agent's call is to blame for a request, so that the call has to fail with its refusal.

    A page that saves by itself goes on during a click. An error about such a request, raised from a click whose own
    request left, would make the agent click again. Navigations and scripts send nothing but by navigating, unless the
    call fails by itself for want of the answer.
    """
    if plan.channel == "Document":
        return True
    if scope.reads_only or scope.lazy:
        return False
    return (scope.page_id, plan.method, plan.url) not in run.habits


def _shown(target: str) -> str:
    return redact_url(target) if "://" in target else target


def _refusal_of(error: BrowsermwError) -> Refusal:
    for kind, refusal in ((Superseded, Refusal.SUPERSEDED),):
        if isinstance(error, kind):
            return refusal
    return Refusal.LEDGER_UNAVAILABLE


def _answer_from(seen: SeenAnswer) -> Answer:
    if seen.never_left:
        return Answer(Outcome.NOT_SENT, reason="the page took the request back while it was held")
    if seen.status is not None:
        request_id = external_request_id(seen.headers)
        landing = location(seen.headers)
        return Answer(
            outcome_of_status(seen.status),
            status=seen.status,
            external_request_id="=".join(request_id) if request_id else None,
            location=redact_url(landing) if landing else None,
        )
    error = seen.error or "no answer"
    outcome = outcome_of_error(error, reached=seen.reached)
    return Answer(outcome, reason=f"network error: {error}"[:300])


def _after_failed(scope: Scope, error: BrowsermwError) -> str:
    sent = (
        "no request with a side effect left"
        if not scope.left
        else f"{len(scope.left)} request(s) left and are on record"
    )
    return f"{scope.method} was performed ({sent}), but its after-checkpoint could not be stored. {error}"
