"""The desk: opens and closes the agent's actions and API calls, on the runtime's loop.

The hooks ask it across ``boundary``. It joins the look at the page, the ledger's record and the scope that the gate's
side (``browsermw.gate_desk``) files held requests under.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from browsermw.armed import arm
from browsermw.boundary import ActionClosed, CallTicket, CloseAction, CloseCall, OpenAction, OpenCall
from browsermw.errors import BrowsermwError, InFlightDuplicate, LedgerUnavailable, WireTooWeak
from browsermw.gate_desk import GateDesk, answer_from, log
from browsermw.ledger.contract import ActionPlan, Answer, Sighting
from browsermw.page.redact import redact_url
from browsermw.protocol.effect_rules import is_armed, is_effect
from browsermw.protocol.outcome import Outcome
from browsermw.refusals import describe
from browsermw.wire.held import SeenAnswer, origin_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from browsermw.boundary import Seen
    from browsermw.models import Effect
    from browsermw.scopes import GuardedRun, Scope


FIRST_FRAME_S = 0.3
"""How long the end of an action waits for the first frame on a socket that it opened: a handshake takes its time."""

POLL_S = 0.005


class Desk(GateDesk):
    """See the module; made by ``Runtime`` with what ``GateDesk`` takes."""

    async def open_action(self, ask: OpenAction) -> str:
        """Admission, before-checkpoint and PLANNED; returns the action's id.

        Raises:
            Held, Quarantined, Superseded, LedgerUnavailable: Not admitted; the call must not be made.
            WireTooWeak: The gate is gone, and requests could leave past it.
            InFlightDuplicate: The same call was made on this page before, and the navigation that it sent is
                unanswered.
        """
        run = self._owned(ask.run_id)
        scope = self._new_scope(
            run, ask.kind, ask.method, _shown(ask.target), ask.page_id, lazy=ask.lazy, reads_only=ask.reads_only
        )
        scope.waits = ask.waits
        _refuse_second_click(run, scope)
        _refuse_past_a_lost_gate(run, scope)
        if not ask.lazy:
            before = await self._sight.look(run, ask.page_id, seen=ask.seen)
            plan = ActionPlan(
                scope.action_id, scope.kind, scope.method, scope.target, scope.wire, reads_only=ask.reads_only
            )
            await self._plan_armed(run, scope, plan, before)
            scope.planned = True
        run.scopes.append(scope)
        return scope.action_id

    async def _plan_armed(self, run: GuardedRun, scope: Scope, plan: ActionPlan, before: Sighting) -> None:
        """PLANNED, and DISPATCHED already for what it may send on open WebSockets, in one transaction."""
        browser = run.browser_of(scope.page_id) if scope.may_send_frames else None
        sockets = browser.sockets_beside(scope.page_id or "") if browser is not None else []
        armed = [arm(scope.action_id, socket) for socket in sockets if is_armed(self._policy, socket.url)]
        planned = await self._call(self._ledger.plan_action, run.grant, plan, before, [it.plan for it in armed])
        scope.armed = {it.plan.effect_id: it for it in armed}
        for effect in planned.effects:
            run.left(scope, effect, self._context_of(run, scope.page_id))

    async def _frames(self, run: GuardedRun, scope: Scope, *, failed: bool) -> dict[str, Answer]:
        """What became of what it was armed with, once every frame that left is known."""
        with suppress(TimeoutError):
            async with asyncio.timeout(FIRST_FRAME_S):
                while any(it.is_silent for it in scope.armed.values()):  # noqa: ASYNC110 - short
                    await asyncio.sleep(POLL_S)
        browser = run.browser_of(scope.page_id)
        if browser is not None and scope.armed:
            await browser.flushed({it.socket.target_id for it in scope.armed.values()})
        return {effect_id: it.answer(failed=failed) for effect_id, it in scope.armed.items()}

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
            after = await self._last_look(run, scope, ask.seen)
            # From here on a request is the page's own. One that still came to this action would be an effect of one
            # that has ended; and a page that sends without a pause would keep the call from ever returning.
            run.scopes.remove(scope)
            await scope.decided()
            if scope.planned:
                after = after or await self._sight.look(run, scope.page_id)
                frames = await self._frames(run, scope, failed=ask.failed is not None)
                close = partial(self._ledger.close_action, run.grant, scope.action_id, after, failed=ask.failed)
                await self._call(partial(close, frames=frames))
                _settle_frames(run, scope, frames)
        except LedgerUnavailable as error:
            raise LedgerUnavailable(_after_failed(scope, error)) from error
        finally:
            if scope in run.scopes:
                run.scopes.remove(scope)
        waiting = tuple(effect for _, effect in run.unanswered_on(scope.page_id) if effect.effect_id not in scope.left)
        asides = () if scope.reads_only else tuple(scope.asides)
        return ActionClosed(tuple(scope.refusals), asides, tuple(scope.unanswered.values()), len(scope.left), waiting)

    async def _last_look(self, run: GuardedRun, scope: Scope, seen: Seen | None) -> Sighting | None:
        """Give the page its next turn, so that what the call set off is at the gate, and look at it there.

        Nobody looks for a call that may turn out to have sent nothing at all.
        """
        if scope.lazy and seen is None:
            await self._caught_up(run, scope.page_id)
            return None
        after = await self._sight.look(run, scope.page_id, next_turn=not scope.waits, seen=seen)
        await self._caught_up(run, scope.page_id, turned=True)
        return after

    async def _caught_up(self, run: GuardedRun, page_id: str | None, *, turned: bool = False) -> None:
        browser = run.browser_of(page_id)
        if browser is not None and page_id is not None:
            await browser.caught_up(page_id, turned=turned)

    async def open_call(self, ask: OpenCall) -> CallTicket:
        """Journal a request that Playwright's driver will send.

        Raises:
            EffectRefused: It must not be sent; the error says why.
        """
        if ask.body is not None and len(ask.body) > self._policy.max_body_bytes:
            ask = replace(ask, body=None)
        if not is_effect(self._policy, ask.method, ask.url, ask.content_type, ask.body):
            return CallTicket(None)
        run = self._owned(ask.run_id)
        kind = "page" if ask.page_id is not None else "api"
        scope = (run.scope_for([ask.page_id]) if ask.page_id is not None else None) or self._new_scope(
            run, kind, ask.api_method, redact_url(ask.url), ask.page_id
        )
        plan = self._effect_plan(scope, ask, channel="api")
        with scope:
            ruling = await self._dispatch(run, scope, plan, None)
        error = scope.last_refusal
        if ruling.refusal is not None and error is not None:
            scope.forget(error)
            if scope not in run.scopes:
                await self._close_unwatched(run, scope)
            raise error
        return CallTicket(plan.effect_id, scope.action_id, asyncio.get_running_loop().time(), ruling.added)

    async def close_call(self, ask: CloseCall) -> Effect | None:
        """Record what became of it; returns the effect while its outcome is unknown."""
        effect_id = ask.ticket.effect_id
        run = self._owned(ask.run_id)
        if effect_id is None or effect_id not in run.in_flight:
            return None
        scope, effect = run.in_flight[effect_id]
        await asyncio.sleep(0)  # so that the relay has read what the driver wrote before it gave up
        reached = self._reached(run, ask)
        seen = SeenAnswer(ask.url, status=ask.status, headers=ask.headers, error=ask.failed, reached=reached)
        known = answer_from(self._policy, effect.method, seen)
        answer = Answer(Outcome.NOT_SENT, reason=ask.failed) if ask.never_made else known
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
        if ask.failed is None or ask.interrupted or not host:
            return None
        seen = [browser.reached(*origin_of(ask.url), since=ask.ticket.sent_from_s) for browser in run.contexts.values()]
        return None if not seen or None in seen else any(seen)

    async def look(self, run_id: str, page_id: str | None, seen: Seen | None) -> Sighting:
        """What a page shows now; nothing is written down."""
        return await self._sight.look(self._owned(run_id), page_id, seen=seen)

    async def settle(self, run_id: str, timeout_s: float) -> None:
        """Wait until nothing of the run is in flight, at most that long."""
        run = self.runs.get(run_id)
        if run is not None:
            try:
                await asyncio.wait_for(run.settled.wait(), timeout_s)
            except TimeoutError:
                log.warning("still_unanswered", run=run_id, effects=sorted(run.in_flight))


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


def _refuse_past_a_lost_gate(run: GuardedRun, scope: Scope) -> None:
    browser = run.browser_of(scope.page_id)
    if browser is not None and browser.gate_is_gone:
        raise WireTooWeak(
            f"{scope.method} was not performed, and nothing left the browser by it: the gate lost its connection "
            "to this attached browser, so that nothing would be recorded. Leave the run, call mw.attach() again, and "
            "wrap a context of the browser in a new one."
        )


def _settle_frames(run: GuardedRun, scope: Scope, frames: Mapping[str, Answer]) -> None:
    """Those that were not sent count for nothing; those in doubt stay unanswered in the eyes of the call."""
    for effect_id, answer in frames.items():
        effect = scope.left[effect_id]
        run.answered(effect_id)
        if answer.outcome is Outcome.NOT_SENT:
            del scope.left[effect_id]
        elif answer.outcome is Outcome.UNKNOWN:
            scope.unanswered[effect_id] = effect


def _shown(target: str) -> str:
    return redact_url(target) if "://" in target else target


def _after_failed(scope: Scope, error: BrowsermwError) -> str:
    sent = (
        "no request with a side effect left"
        if not scope.left
        else f"{len(scope.left)} request(s) left and are on record"
    )
    return f"{scope.method} was performed ({sent}), but its after-checkpoint could not be stored. {error}"
