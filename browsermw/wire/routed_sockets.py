"""WebSockets of a routed context: each message that a page sends is put to the desk before it goes on.

A message that is refused is dropped, and its socket closed, because what follows would arrive in its place. A message
has no answer, so it is settled as accepted once it was handed over. Used by ``routed`` alone; it must never let a
message pass that the desk did not rule on, unless ``policy.ignore_websockets`` or ``policy.ignore`` names the socket.
"""

from __future__ import annotations

import asyncio
from concurrent.futures import CancelledError as FutureCancelledError
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from browsermw.events import Events
from browsermw.faults import Point, reach
from browsermw.protocol.admission import Refusal
from browsermw.protocol.effect_rules import SOCKET_METHOD, is_armed, is_effect
from browsermw.wire.held import Ruling, SeenAnswer
from browsermw.wire.routed_request import held_frame

if TYPE_CHECKING:
    from concurrent.futures import Future

    from browsermw.wire.routed import RoutedContext

POLICY_VIOLATION = 1008
REASON = "browsermw refused a message; see the ledger"

log = Events("browsermw.routed")


class RoutedSockets:
    """The sockets of one context.

    Args:
        engine: Of the context.
    """

    def __init__(self, engine: RoutedContext) -> None:
        self._engine = engine
        self._shut: WeakSet[Any] = WeakSet()

    def opened_sync(self, socket: Any) -> None:
        """A page opens a socket: connect it, and hold what the page sends; what the server sends passes by itself."""
        server = socket.connect_to_server()
        if self._is_effect_on(socket):
            socket.on_message(lambda message: self._message_sync(socket, server, message))

    async def opened_async(self, socket: Any) -> None:
        """See ``opened_sync``."""
        server = socket.connect_to_server()
        if self._is_effect_on(socket):
            in_turn = asyncio.Lock()  # first come, first served: messages keep their order

            async def passed(message: str | bytes) -> None:
                async with in_turn:
                    await self._message_async(socket, server, message)

            socket.on_message(passed)

    def _is_effect_on(self, socket: Any) -> bool:
        policy = self._engine.owner.policy
        return is_armed(policy, socket.url) and is_effect(policy, SOCKET_METHOD, socket.url, "", None)

    def _message_sync(self, socket: Any, server: Any, message: str | bytes) -> None:
        if socket in self._shut:
            return
        try:
            ruling = self._ask(socket).result()
        except (Exception, FutureCancelledError) as error:  # noqa: BLE001 - whatever it is, nothing may leave
            ruling = nobody_rules(error)
        if self._may_send(socket, ruling):
            self._send(server, message, ruling)
        else:
            socket.close(code=POLICY_VIOLATION, reason=REASON)
            server.close()

    async def _message_async(self, socket: Any, server: Any, message: str | bytes) -> None:
        if socket in self._shut:
            return
        try:
            ruling = await asyncio.wrap_future(self._ask(socket))
        except (Exception, asyncio.CancelledError) as error:  # noqa: BLE001 - whatever it is, nothing may leave
            ruling = nobody_rules(error)
        if self._may_send(socket, ruling):
            self._send(server, message, ruling)
        else:
            await socket.close(code=POLICY_VIOLATION, reason=REASON)
            await server.close()

    def _may_send(self, socket: Any, ruling: Ruling) -> bool:
        """Whether a message goes on; once one is refused, none that was sent after it may arrive in its place."""
        if ruling.refusal is not None:
            self._shut.add(socket)
        return ruling.refusal is None

    def _send(self, server: Any, message: str | bytes, ruling: Ruling) -> None:
        server.send(message)
        reach(Point.GATE_RELEASED, SOCKET_METHOD)
        if ruling.effect_id is not None:
            self._engine.record(ruling.effect_id, SeenAnswer(sent=True))

    def _ask(self, socket: Any) -> Future[Ruling]:
        return self._engine.ask(held_frame(socket.url, context_id=self._engine.context_id))


def nobody_rules(error: BaseException) -> Ruling:
    """The run was left, the runtime is closing, or we failed ourselves: it must not leave."""
    log.warning("effect_refused", reason=Refusal.CALLER_GONE, cause=f"{type(error).__name__}: {error}")
    return Ruling(refusal=Refusal.CALLER_GONE)
