"""Isolated worlds of our own on pages' main frames: where the probe runs, out of the reach of the page's scripts.

The engine asks here; the world goes with its document, and is made anew at the next question.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from browsermw.wire.cdp import CdpError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from browsermw.wire.targets import Target

    Command = Callable[[str, dict[str, Any], str], Awaitable[dict[str, Any]]]


class Worlds:
    """See the module.

    Args:
        command: Sends a command: method, parameters, session.
    """

    def __init__(self, command: Command) -> None:
        self._command = command
        self._known: dict[str, int] = {}

    def forget(self, target_id: str) -> None:
        """The page's document is gone."""
        self._known.pop(target_id, None)

    async def evaluate(self, target: Target, expression: str, repeated: str) -> object:
        """See ``GuardedBrowser.evaluate``."""
        world = self._known.get(target.target_id)
        if world is not None:
            try:
                answer = await self._evaluate_in(target.session, world, repeated)
                return answer if answer is not None else await self._evaluate_in(target.session, world, expression)
            except CdpError:
                if self._known.get(target.target_id) == world:
                    self.forget(target.target_id)
        order = {"frameId": target.target_id, "worldName": "browsermw"}
        made = await self._command("Page.createIsolatedWorld", order, target.session)
        self._known[target.target_id] = made["executionContextId"]
        return await self._evaluate_in(target.session, made["executionContextId"], expression)

    async def _evaluate_in(self, session: str, world: int, expression: str) -> object:
        order = {"expression": expression, "contextId": world, "returnByValue": True, "awaitPromise": True}
        answer = await self._command("Runtime.evaluate", order, session)
        if "exceptionDetails" in answer:
            raise CdpError(str(answer["exceptionDetails"].get("text", "the probe failed")))
        return answer["result"].get("value")


def in_next_turn(expression: str) -> str:
    """An expression whose value is that of another one in the page's next turn."""
    return (
        f"new Promise((done, failed) => setTimeout(() => {{ try {{ done({expression}) }} catch (e) {{ failed(e) }} }}))"
    )
