"""The gate's side of the desk: rules on held requests, records answers.

The gate shows a held request and asks what to do (``rule``), and shows answers (``answered``). Every yes is preceded
by a durable record; every failure on the way is a no. What is an effect, whether it may leave and what an answer
means is decided in ``protocol``; what is stored, in ``ledger``; this only puts them in order. The hooks' side,
``browsermw.desk``, adds the agent's own calls.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from browsermw.armed import arm
from browsermw.errors import BrowsermwError, Superseded
from browsermw.events import Events
from browsermw.ids import new_id
from browsermw.ledger.contract import ActionPlan, Answer, EffectPlan, Grant
from browsermw.page.redact import redact_url
from browsermw.page.request_ids import external_request_id, location
from browsermw.protocol.admission import Refusal
from browsermw.protocol.effect_rules import idempotency_header, is_armed
from browsermw.protocol.fingerprints import fingerprint
from browsermw.protocol.outcome import HOP_STATUSES, Outcome, outcome_of_answer, outcome_of_error
from browsermw.refusals import ERROR_OF, refusal_error
from browsermw.scopes import GuardedRun, Scope
from browsermw.wire.held import HeldRequest, Ruling, SeenAnswer, header

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection

    from browsermw.boundary import OpenCall
    from browsermw.ledger.contract import Ledger
    from browsermw.models import Effect
    from browsermw.policy import Policy
    from browsermw.sight import Sight
    from browsermw.wire.engine import Engine
    from browsermw.wire.sockets import Socket

log = Events("browsermw")


class GateDesk:
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
        self._left: set[str] = set()  # contexts of runs that were left: nobody's, and no foreign ones either

    @property
    def sight(self) -> Sight:
        """What looks at pages."""
        return self._sight

    async def rule(self, held: HeldRequest) -> Ruling:
        """Decide about a held request (see ``wire.held.Desk``)."""
        run = self._run_of(held.context_id)
        if run is None:
            is_foreign = held.context_id is not None and held.context_id not in self._left
            if self._policy.unowned == "allow" and is_foreign:
                return Ruling()
            log.warning("effect_refused", reason=Refusal.UNOWNED, method=held.method, url=redact_url(held.url))
            return Ruling(refusal=Refusal.UNOWNED)
        scope = self._scope_of(run, held)
        with scope, run.deciding():
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
        if scope.by_page:
            run.habits[scope.page_id, held.method, redact_url(held.url)] = None
        refusal = _refusal_at_sight(held)
        plan = self._effect_plan(scope, held, channel=held.channel, refusal=refusal, continues=held.continues)
        return await self._dispatch(run, scope, plan, held.context_id)

    def _effect_plan(
        self,
        scope: Scope,
        asked: HeldRequest | OpenCall,
        *,
        channel: str,
        refusal: Refusal | None = None,
        continues: str | None = None,
    ) -> EffectPlan:
        """A request, of the gate or of the hooks, as the ledger is asked about it."""
        effect_id = new_id("e")
        volatile = self._policy.volatile_fields
        key_header = idempotency_header(self._policy, asked.method, asked.url)
        return EffectPlan(
            effect_id=effect_id,
            action_id=scope.action_id,
            method=asked.method,
            url=redact_url(asked.url),
            fingerprint=fingerprint(
                asked.method, asked.url, asked.content_type, asked.body, volatile=volatile, unique=effect_id
            ),
            channel=channel,
            refusal=refusal,
            continues=continues,
            key_header=key_header,
            own_key=(header(asked.headers, key_header.lower()) or None) if key_header is not None else None,
        )

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
        return Ruling(effect_id=plan.effect_id, added=_added_header(plan, answer.effect))

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
        where = scope.refusals if _is_the_calls_own(run, scope, plan, refusal) else scope.asides
        where.append(error)
        scope.last_refusal = error
        log.warning("effect_refused", reason=str(refusal), method=plan.method, url=plan.url, action=scope.action_id)
        return Ruling(refusal=refusal)

    async def socket_opened(self, context_id: str, page_ids: tuple[str, ...], socket: Socket) -> None:
        """Arm the open action for a WebSocket that was opened in its middle (see ``wire.held.Desk``).

        No gate holds its handshake, so this is on record within a moment, not ahead of every frame.
        """
        run = self._run_of(context_id)
        scope = run.scope_for(page_ids) if run is not None else None
        if run is None or scope is None or not scope.may_send_frames or not is_armed(self._policy, socket.url):
            return
        with scope:
            armed = arm(scope.action_id, socket, is_new=True)
            try:
                answer = await self._call(self._ledger.dispatch_effect, run.grant, armed.plan)
            except BrowsermwError as error:
                log.error("socket_not_recorded", run=run.grant.run_id, url=armed.plan.url, cause=str(error))
                return
            if answer.effect is not None:
                scope.armed[armed.plan.effect_id] = armed
                run.left(scope, answer.effect, context_id)

    async def answered(self, effect_id: str, seen: SeenAnswer) -> bool:
        """Record an answer (see ``wire.held.Desk``)."""
        run = next((run for run in self.runs.values() if effect_id in run.in_flight), None)
        if run is None:
            log.warning("late_answer", effect=effect_id, status=seen.status)
            return False
        _, effect = run.in_flight[effect_id]
        return await self._settle(run, effect_id, answer_from(self._policy, effect.method, seen))

    async def _settle(self, run: GuardedRun, effect_id: str, answer: Answer) -> bool:
        try:
            effect = await self._call(self._ledger.answer_effect, run.grant, effect_id, answer)
        except BrowsermwError as error:
            log.error("answer_not_recorded", run=run.grant.run_id, effect=effect_id, cause=str(error))
            return False
        scope = run.answered(effect_id)
        if scope is not None and answer.status in HOP_STATUSES and effect.channel != "api":
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

    def browser_lost(self, browser: Engine) -> None:
        """The browser is gone: what was in flight there will never be answered here."""
        for run in self.runs.values():
            lost = [context_id for context_id, engine in run.contexts.items() if engine is browser]
            ending = self._end(run, lost, "the browser ended before the answer", asks_relay=True)
            task = asyncio.get_running_loop().create_task(ending)
            run.endings.add(task)
            task.add_done_callback(run.endings.discard)

    async def context_closed(self, run_id: str, context_id: str) -> None:
        """A context is gone: what it had in the air will never be answered, and what was held never leaves.

        The relay lets others of the browser pass, and may yet get the last bytes of this one: it is not asked.
        """
        run = self.runs.get(run_id)
        if run is not None and context_id in run.contexts:
            run.contexts[context_id].context_closed(context_id)
            await self._end(run, [context_id], "its context was closed before the answer", asks_relay=False)

    async def _end(self, run: GuardedRun, context_ids: Collection[str], why: str, *, asks_relay: bool) -> None:
        ended = [(it, where) for it, where in run.context_of_effect.items() if where in context_ids]
        for effect_id, context_id in ended:
            scope, effect = run.in_flight.get(effect_id, (None, None))
            if scope is None or effect is None:
                continue  # answered meanwhile
            if effect_id in scope.armed:
                answer = scope.armed[effect_id].answer(failed=True)
            else:
                reached = run.contexts[context_id or ""].reached_by(effect_id) if asks_relay else None
                seen = SeenAnswer(error=why, reached=reached)
                answer = replace(answer_from(self._policy, effect.method, seen), reason=why)
            await self._settle(run, effect_id, answer)

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
        run = self.runs.pop(run_id, None)
        for context_id in run.contexts if run is not None else ():
            self._left.add(context_id)


def _is_the_calls_own(run: GuardedRun, scope: Scope, plan: EffectPlan, refusal: Refusal) -> bool:
    """Whether the agent's call is to blame for a request, so that the call has to fail with its refusal.

    A page that saves by itself goes on during a click. An error about such a request, raised from a click whose own
    request left, would make the agent click again. Navigations and scripts send nothing but by navigating, unless the
    call fails by itself for want of the answer, or the script repeats what is unanswered: agents fall back on scripts.
    """
    if plan.channel == "Document":
        return True
    repeats = scope.kind == "script" and refusal is Refusal.IN_FLIGHT_DUPLICATE
    if scope.reads_only or (scope.lazy and not repeats):
        return False
    return (scope.page_id, plan.method, plan.url) not in run.habits


def _refusal_at_sight(held: HeldRequest) -> Refusal | None:
    if held.is_unreadable:
        return Refusal.UNREADABLE
    return Refusal.REPLAYED_NAVIGATION if held.repeats and held.navigates else None


def _added_header(plan: EffectPlan, effect: Effect) -> tuple[str, str] | None:
    """The idempotency key, where the request carries none by itself."""
    if plan.key_header is None or plan.own_key is not None or effect.idempotency_key is None:
        return None
    return plan.key_header, effect.idempotency_key


def _refusal_of(error: BrowsermwError) -> Refusal:
    known = (refusal for refusal, kind in ERROR_OF.items() if isinstance(error, kind))
    return next(known, Refusal.LEDGER_UNAVAILABLE)


def answer_from(policy: Policy, method: str, seen: SeenAnswer) -> Answer:
    """What an answer, or its absence, means for the record; decided in ``protocol.outcome``."""
    if seen.never_left:
        return Answer(Outcome.NOT_SENT, reason="the page took the request back while it was held")
    if seen.sent:
        return Answer(Outcome.ACCEPTED, reason="sent; nothing answers a message on a socket")
    if seen.status is not None:
        request_id = external_request_id(seen.headers)
        landing = location(seen.headers)
        return Answer(
            outcome_of_answer(policy, method, seen.url, seen.status),
            status=seen.status,
            external_request_id="=".join(request_id) if request_id else None,
            location=redact_url(landing) if landing else None,
        )
    error = seen.error or "no answer"
    outcome = outcome_of_error(error, reached=seen.reached)
    return Answer(outcome, reason=f"network error: {error}"[:300])
