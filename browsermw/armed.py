"""Armed actions: frames on an open WebSocket cannot be held, so they are written down before the action may send them.

An action beside an open socket is DISPATCHED before it is performed, one effect for each socket, and settled when it
is over: to nothing where no frame followed (DESIGN section 6). Used by the desk on the runtime's loop; decides nothing
that ``protocol`` does not.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from browsermw.ids import new_id
from browsermw.ledger.contract import Answer, EffectPlan
from browsermw.page.redact import redact_url
from browsermw.protocol.effect_rules import SOCKET, SOCKET_METHOD
from browsermw.protocol.fingerprints import fingerprint
from browsermw.protocol.outcome import outcome_of_frames

if TYPE_CHECKING:
    from browsermw.wire.sockets import Socket


@dataclass(frozen=True)
class Armed:
    """What an action may send on one socket.

    Attributes:
        plan: Its effect.
        socket: The socket.
        sent_before: Frames that had left on it when the action began.
        is_new: It was opened in the middle of the action, so that every frame on it is the action's.
    """

    plan: EffectPlan
    socket: Socket
    sent_before: int
    is_new: bool = False

    @property
    def is_silent(self) -> bool:
        """Whether the action opened it and has not sent on it yet, as it surely wants to."""
        return self.is_new and not self.socket.sent_count and not self.socket.closed

    def answer(self, *, failed: bool) -> Answer:
        """What became of it.

        Args:
            failed: Whether the call failed, so that nobody has seen its result.
        """
        count = self.socket.sent_count - self.sent_before
        outcome = outcome_of_frames(
            sent=count > 0, answered=self.socket.answered, lost=self.socket.closed, failed=failed
        )
        state = "closed" if self.socket.closed else "open"
        return Answer(outcome, reason=f"{count} frame(s) left; the socket is {state}" if count else "no frame followed")


def arm(action_id: str, socket: Socket, *, is_new: bool = False) -> Armed:
    """Arm an action for one socket.

    Args:
        action_id: The action.
        socket: The socket.
        is_new: See ``Armed``.
    """
    effect_id = new_id("e")
    plan = EffectPlan(
        effect_id=effect_id,
        action_id=action_id,
        method=SOCKET_METHOD,
        url=redact_url(socket.url),
        fingerprint=fingerprint(SOCKET_METHOD, socket.url, "", None, volatile=(), unique=effect_id),
        channel=SOCKET,
    )
    return Armed(plan, socket, 0 if is_new else socket.sent_count, is_new)
