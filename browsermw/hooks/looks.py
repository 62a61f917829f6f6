"""Looking at a page through Playwright, where the desk cannot (wire ``routed``): before and after each action.

Both hooks call it. A look is bounded in time and never raises: a page that cannot be read is recorded as "not
available", because a checkpoint must never break the agent's click. It runs in the page's own world, which Playwright
offers and which the page can see into; nothing is left there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from playwright.sync_api import Error as PlaywrightError

from browsermw.boundary import Seen
from browsermw.hooks.journal import in_words
from browsermw.hooks.table import CLICK
from browsermw.wire.worlds import in_next_turn

if TYPE_CHECKING:
    from browsermw.hooks.guards import Guard
    from browsermw.hooks.table import ActionKind


class Look:
    """The looks beside one action.

    Args:
        guard: Of the context.
        page: The action's page, or ``None``.
        entry: What kind of action it is.
    """

    def __init__(self, guard: Guard, page: Any, entry: ActionKind) -> None:
        self._guard = guard
        self._page: Any = page if guard.routed is not None else None
        self._lazy = entry.lazy
        self._ruled_count = guard.routed.ruled_count if guard.routed is not None else 0
        self._repeats = entry.kind in {"reload", "history"}

    def before_sync(self) -> Seen | None:
        """What is there before the call; nobody looks for one that may turn out to have sent nothing."""
        self._note_repeat(on=True)
        return None if self._page is None or self._lazy else self._seen_sync(self._expression())

    async def before_async(self) -> Seen | None:
        """See ``before_sync``."""
        self._note_repeat(on=True)
        return None if self._page is None or self._lazy else await self._seen_async(self._expression())

    def after_sync(self, error: BaseException | None, *, waited: bool) -> Seen | None:
        """What is there after it, in the page's next turn, when what it set off has begun.

        Args:
            error: What the call raised. Whoever presses Ctrl-C, or cancels a task, is not kept waiting for a look.
            waited: Playwright itself gave the page its next turns.
        """
        self._note_repeat(on=False)
        if self._page is None or not isinstance(error, Exception | None):
            return None
        if self._lazy:
            turned = self._seen_sync(in_next_turn("true"))
            return turned if turned.failed or not self._sent() else self._seen_sync(self._expression())
        return self._seen_sync(self._expression() if waited else in_next_turn(self._expression()))

    async def after_async(self, error: BaseException | None, *, waited: bool) -> Seen | None:
        """See ``after_sync``."""
        self._note_repeat(on=False)
        if self._page is None or not isinstance(error, Exception | None):
            return None
        if self._lazy:
            turned = await self._seen_async(in_next_turn("true"))
            return turned if turned.failed or not self._sent() else await self._seen_async(self._expression())
        return await self._seen_async(self._expression() if waited else in_next_turn(self._expression()))

    def _note_repeat(self, *, on: bool) -> None:
        if self._repeats and self._guard.routed is not None:
            self._guard.routed.repeating(self._page, on=on)

    def _sent(self) -> bool:
        return self._guard.routed is not None and self._guard.routed.ruled_count != self._ruled_count

    def _expression(self) -> str:
        return self._guard.run.runtime.desk.sight.visiting

    def _limit_ms(self) -> float:
        return self._guard.run.runtime.policy.probe_timeout_s * 1000

    def _seen_sync(self, expression: str) -> Seen:
        try:
            # Of Playwright's two ways to evaluate, this is the one that takes a time limit.
            found = self._page.wait_for_function(expression, timeout=self._limit_ms())
            value = found.json_value()
            found.dispose()
            cookies = self._guard.context.cookies(self._page.url) if self._asks_cookies() else ()
        except PlaywrightError as error:
            return Seen(failed=in_words(error))
        return Seen(value, tuple(cookies))

    async def _seen_async(self, expression: str) -> Seen:
        try:
            found = await self._page.wait_for_function(expression, timeout=self._limit_ms())
            value = await found.json_value()
            await found.dispose()
            cookies = await self._guard.context.cookies(self._page.url) if self._asks_cookies() else ()
        except PlaywrightError as error:
            return Seen(failed=in_words(error))
        return Seen(value, tuple(cookies))

    def _asks_cookies(self) -> bool:
        return self._guard.run.runtime.desk.sight.asks_cookies


def look_sync(guard: Guard, page: Any) -> Seen | None:
    """A look beside no action; ``None`` where the desk can look itself."""
    return Look(guard, page, CLICK).before_sync()


async def look_async(guard: Guard, page: Any) -> Seen | None:
    """See ``look_sync``."""
    return await Look(guard, page, CLICK).before_async()
