"""The gate: every request that can carry an effect waits here until its record is durable.

The life of a request at the gate, in order (DESIGN section 6):

1. ``Fetch.requestPaused`` comes in. Not an effect: continued at once, no record.
2. The desk is asked; it writes DISPATCHED, or REFUSED, and says so.
3. Refused: a navigation is answered with 204, so that the page stays (field note 13); anything else fails.
4. Released with ``interceptResponse``, so that the answer stops here too (field note 6).
5. The answer comes in: the desk writes it; only then may the page have it. If it cannot be written, the page
   gets an error instead: the page never knows more than the ledger.

If anything goes wrong on the way, the request stays held, and a held request does not leave on a sealed wire.
The gate decides nothing about a request; it holds, asks, and does what it is told.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from browsermw.events import Events
from browsermw.faults import Point, reach
from browsermw.newest import Newest
from browsermw.protocol.effect_rules import SAFE_METHODS, is_effect
from browsermw.protocol.outcome import HOP_STATUSES
from browsermw.wire.cdp import CdpClosed, CdpConnection, CdpError
from browsermw.wire.held import Desk, HeldRequest, Ruling, SeenAnswer, body_of, header, origin_of

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from browsermw.policy import Policy
    from browsermw.wire.relay import Relay
    from browsermw.wire.targets import TargetMap

RESOURCE_TYPES = ("Document", "XHR", "Fetch", "Ping", "Other", "CSPViolationReport")
"""Types that can carry an effect; the others (images, scripts, styles) stay in the cache's fast path (note 3)."""

PATTERNS = [{"urlPattern": "*", "resourceType": kind, "requestStage": "Request"} for kind in RESOURCE_TYPES]

HeldKey = tuple[str | None, str]
"""CDP session and request id: ids are unique within a session only."""

RECENT_LIMIT = 1000
"""Requests whose next event comes within moments or never."""

log = Events("browsermw.gate")


@dataclass(frozen=True)
class _Released:
    """An effect that may leave and has no answer yet.

    Attributes:
        effect_id: Its record.
        at: When it was let go, on the loop's clock.
        origin: Host and port.
        network_id: The browser's id of the request, the same at every level and in ``Network`` events.
    """

    effect_id: str
    at: float
    origin: tuple[str, int]
    network_id: str | None


class Gate:
    """Holds the requests of one browser.

    Attributes:
        held_count: Requests that wait for a ruling now.
    """

    def __init__(self, desk: Desk, policy: Policy, targets: TargetMap, relay: Relay | None) -> None:
        self._desk = desk
        self._policy = policy
        self._targets = targets
        self._relay = relay
        self._released: dict[HeldKey, _Released] = {}
        self._hops: Newest[HeldKey, str] = Newest(RECENT_LIMIT)
        self._closed_contexts: set[str] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self.held_count = 0

    def paused(self, connection: CdpConnection, params: dict[str, Any], session: str | None) -> None:
        """Take a ``Fetch.requestPaused`` event; never blocks."""
        if "responseStatusCode" in params or "responseErrorReason" in params:
            self._start(self._answered(connection, params, session))
        elif session is None and any(key[0] is not None for key in self._released_as(params.get("networkId"))):
            # Some pages that are older than the gate pass it at both levels; this one is on record and was let go.
            self._start(self._continue(connection, params["requestId"], session))
        elif (held := self._effect_in(params, session)) is not None:
            self._start(self._hold(connection, params, session, held))
        else:
            self._start(self._continue(connection, params["requestId"], session))

    def _effect_in(self, params: dict[str, Any], session: str | None) -> HeldRequest | None:
        """The request, described, if it is an effect."""
        method, url = params["request"]["method"], params["request"]["url"]
        if method in SAFE_METHODS and not is_effect(self._policy, method, url, "", b""):
            return None  # most requests are of this kind, and need no more reading
        held = self._describe(params, session)
        return held if is_effect(self._policy, method, url, held.content_type, held.body) else None

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._finished)

    def _finished(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and isinstance(task.exception(), Exception):
            # The request stays held: nothing leaves because of our own fault.
            log.error("gate_fault", exc_info=task.exception())

    async def _hold(
        self, connection: CdpConnection, params: dict[str, Any], session: str | None, held: HeldRequest
    ) -> None:
        self.held_count += 1
        try:
            reach(Point.GATE_HOLDS, held.method)
            ruling = await self._desk.rule(held)
            reach(Point.GATE_RULED, held.method)
            await self._carry_out(connection, params, session, held, ruling)
        finally:
            self.held_count -= 1

    def _describe(self, params: dict[str, Any], session: str | None) -> HeldRequest:
        request, frame_id = params["request"], params.get("frameId")
        page = self._targets.page_of_frame(frame_id)
        return HeldRequest(
            method=request["method"],
            url=request["url"],
            content_type=header(request["headers"], "content-type"),
            body=body_of(request, self._policy.max_body_bytes),
            channel=params["resourceType"],
            context_id=self._targets.context_of_frame(frame_id),
            pages=self._targets.openers(page),
            repeats=self._targets.is_repeat(params.get("networkId")),
            continues=self._hops.pop((session, params.get("redirectedRequestId", "")), None),
            origin=origin_of(request["url"]),
            held_at=asyncio.get_running_loop().time(),
            headers=request["headers"],
        )

    async def _carry_out(
        self, connection: CdpConnection, params: dict[str, Any], session: str | None, held: HeldRequest, ruling: Ruling
    ) -> None:
        if ruling.refusal is not None:
            await self._refuse(connection, params["requestId"], session, navigates=held.navigates)
        elif ruling.effect_id is None:
            await self._continue(connection, params["requestId"], session)
        else:
            await self._release(connection, params, session, held, ruling.effect_id, ruling.added)

    async def _release(
        self,
        connection: CdpConnection,
        params: dict[str, Any],
        session: str | None,
        held: HeldRequest,
        effect_id: str,
        added: tuple[str, str] | None,
    ) -> None:
        if connection.closed.is_set():
            await self._browser_ended_first(held, effect_id)
            return
        if held.context_id in self._closed_contexts:
            # The browser dropped it with the context, and would say yes to the order all the same (measured).
            await self._desk.answered(effect_id, SeenAnswer(error="its context was closed", never_left=True))
            return
        request_id, released_at = params["requestId"], asyncio.get_running_loop().time()
        self._released[session, request_id] = _Released(effect_id, released_at, held.origin, params.get("networkId"))
        if self._relay is not None:
            self._relay.effect_released(*held.origin)
        try:
            order = {"requestId": request_id, "interceptResponse": True, **_headers_with(held, added)}
            await connection.send("Fetch.continueRequest", order, session=session)
            reach(Point.GATE_RELEASED, held.method)
        except CdpError as error:
            self._forget((session, request_id))
            if isinstance(error, CdpClosed):
                await self._browser_ended_first(held, effect_id)
            else:  # "Invalid InterceptionId": the page aborted the request while we held it
                await self._desk.answered(effect_id, SeenAnswer(error=str(error), never_left=True))

    async def _browser_ended_first(self, held: HeldRequest, effect_id: str) -> None:
        """The browser went as we let it go, or before; the relay knows whether anything went there."""
        reached = None
        if self._relay is not None:
            self._relay.shut("the gate lost its connection to the browser")
            reached = self._relay.reached(*held.origin, since=held.held_at)
        await self._desk.answered(effect_id, SeenAnswer(error="the browser ended first", reached=reached))

    def context_closed(self, context_id: str) -> None:
        """See ``Engine``."""
        self._closed_contexts.add(context_id)

    def reached_by(self, effect_id: str) -> bool | None:
        """See ``Engine``."""
        found = (it for it in self._released.values() if it.effect_id == effect_id)
        known = next(found, None)
        return None if known is None else self._reached(known)

    def _released_as(self, network_id: str | None) -> list[HeldKey]:
        """Keys of what was released under the browser's own id of a request and has no answer yet."""
        return [key for key, it in self._released.items() if network_id and it.network_id == network_id]

    def given_up(self, network_id: str, error: str) -> None:
        """The page gave up a request that was released, and no answer will come to the gate (field note 19).

        The relay is not asked: the page says so before the browser has stopped, and the connection may be made in
        that very moment. Of 250 requests that were aborted around it, two arrived that had not reached the relay then.
        """
        for key in self._released_as(network_id):
            known = self._forget(key)
            if known is not None:
                self._start(self._record(known.effect_id, SeenAnswer(error=f"given up by the page ({error})")))

    async def _record(self, effect_id: str, seen: SeenAnswer) -> None:
        await self._desk.answered(effect_id, seen)

    def _forget(self, key: HeldKey) -> _Released | None:
        known = self._released.pop(key, None)
        if known is not None and self._relay is not None:
            self._relay.effect_answered(*known.origin)
        return known

    async def _answered(self, connection: CdpConnection, params: dict[str, Any], session: str | None) -> None:
        request_id, durable = params["requestId"], True
        known = self._forget((session, request_id))
        if known is not None:
            if params.get("responseStatusCode") in HOP_STATUSES:
                self._hops[session, request_id] = known.effect_id
            reach(Point.GATE_ANSWER_HELD, known.effect_id)
            durable = await self._desk.answered(known.effect_id, self._seen(params, known))
            reach(Point.GATE_ANSWER_RECORDED, known.effect_id)
        order: dict[str, Any] = {"requestId": request_id}
        if not durable:
            order["errorReason"] = "Failed"
        await self._try(connection, "Fetch.continueResponse" if durable else "Fetch.failRequest", order, session)

    def _reached(self, known: _Released) -> bool | None:
        return None if self._relay is None else self._relay.reached(*known.origin, since=known.at)

    def _seen(self, params: dict[str, Any], known: _Released) -> SeenAnswer:
        reached = self._reached(known)
        if _is_made_up(params):
            return SeenAnswer(error="Playwright's client-certificate proxy lost the connection", reached=reached)
        return SeenAnswer(
            url=params["request"]["url"],
            status=params.get("responseStatusCode"),
            headers=tuple((item["name"], item["value"]) for item in params.get("responseHeaders", ())),
            error=params.get("responseErrorReason"),
            reached=reached,
        )

    async def _refuse(
        self, connection: CdpConnection, request_id: str, session: str | None, *, navigates: bool
    ) -> None:
        if navigates:
            order: dict[str, Any] = {"requestId": request_id, "responseCode": 204}
            await self._try(connection, "Fetch.fulfillRequest", order, session)
        else:
            order = {"requestId": request_id, "errorReason": "BlockedByClient"}
            await self._try(connection, "Fetch.failRequest", order, session)

    async def _continue(self, connection: CdpConnection, request_id: str, session: str | None) -> None:
        await self._try(connection, "Fetch.continueRequest", {"requestId": request_id}, session)

    async def _try(self, connection: CdpConnection, method: str, params: dict[str, Any], session: str | None) -> None:
        try:
            await connection.send(method, params, session=session)
        except CdpError as error:
            # The page went away meanwhile; there is nobody left to tell.
            log.debug("gate_request_gone", method=method, error=str(error))

    async def close(self) -> None:
        """Stop working; what is held stays held until the connection or the relay is gone."""
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


def _headers_with(held: HeldRequest, added: tuple[str, str] | None) -> dict[str, Any]:
    """The order to send a request with one more header; the browser takes its headers as a whole or not at all."""
    if added is None:
        return {}
    kept = {name: value for name, value in held.headers.items() if name.lower() != added[0].lower()}
    return {"headers": [{"name": name, "value": value} for name, value in [*kept.items(), added]]}


def _is_made_up(params: dict[str, Any]) -> bool:
    """Whether Playwright's own proxy for client certificates wrote this answer, not the server.

    It does when its connection to the server fails, also after the request has left. The name that it gives to 503 and
    the headers that every server would add tell; taken for an answer, it would hide that the outcome is unknown.
    """
    if params.get("responseStatusCode") != 503 or params.get("responseStatusText") != "Internal Server Error":  # noqa: PLR2004
        return False
    return {item["name"].lower() for item in params.get("responseHeaders", ())} == {"content-type", "content-length"}
