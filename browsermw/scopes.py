"""Open actions as the loop sees them: which of them does a held request belong to?

A ``Scope`` is an action between its opening and its closing. A ``GuardedRun`` holds the scopes of one run and its
effects in flight. Only the desk uses them, only on the runtime's loop; nothing here waits or stores.
"""

from __future__ import annotations

import asyncio
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Self

from browsermw.newest import Newest
from browsermw.protocol.recovery import Wire

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from browsermw.armed import Armed
    from browsermw.errors import BrowsermwError
    from browsermw.ledger.contract import Grant
    from browsermw.models import Effect
    from browsermw.wire.engine import Engine


HABIT_LIMIT = 2000
HOP_LIMIT = 200
"""Redirects whose next request is on its way; one that never comes must not be waited for in memory."""


@dataclass(eq=False)
class Scope:
    """An open action.

    Attributes:
        action_id: Its id, made before any I/O.
        kind: See ``models.Action``.
        method: The Playwright method, or empty for what a page does by itself.
        target: Selector or URL, redacted.
        page_id: Target id of its page.
        lazy: Not in the ledger until an effect comes of it.
        reads_only: A navigation.
        wire: How strongly its context is guarded.
        waits: Playwright gives the page its next turns before the call returns.
        planned: Its record is durable.
        given_up: The caller no longer waits; what is still held must not leave (field note 9).
        refusals: Errors of refused requests that the call itself made, in order.
        asides: Errors of refused requests that the page may have made by itself meanwhile.
        last_refusal: The last of both.
        left: Effects that left, by id; the value is the answered record or ``None``.
        armed: What it may send on open WebSockets, by effect id.
    """

    action_id: str
    kind: str
    method: str
    target: str
    page_id: str | None
    wire: Wire
    lazy: bool = False
    reads_only: bool = False
    waits: bool = False
    planned: bool = False
    given_up: bool = False
    refusals: list[BrowsermwError] = field(default_factory=list)
    asides: list[BrowsermwError] = field(default_factory=list)
    last_refusal: BrowsermwError | None = None
    left: dict[str, Effect] = field(default_factory=dict)
    unanswered: dict[str, Effect] = field(default_factory=dict)
    armed: dict[str, Armed] = field(default_factory=dict)
    planning: asyncio.Lock = field(default_factory=asyncio.Lock)
    quiet: asyncio.Event = field(default_factory=asyncio.Event)
    _deciding_count: int = 0

    def __post_init__(self) -> None:
        self.quiet.set()

    def forget(self, error: BrowsermwError) -> None:
        """The error was raised where it arose."""
        for errors in (self.refusals, self.asides):
            if error in errors:
                errors.remove(error)

    @property
    def may_send_frames(self) -> bool:
        """Whether it is a click or a key press, beside which open WebSockets count."""
        return not (self.lazy or self.reads_only or self.by_page)

    @property
    def by_page(self) -> bool:
        """Whether the page did it by itself, so that no call will close it."""
        return self.kind == "page"

    def __enter__(self) -> Self:
        """A request of this action is being decided."""
        self._deciding_count += 1
        self.quiet.clear()
        return self

    def __exit__(self, *_: object) -> None:
        self._deciding_count -= 1
        if not self._deciding_count:
            self.quiet.set()

    async def decided(self) -> None:
        """Wait until no request of this action is being decided; that still holds when the caller goes on."""
        while not self.quiet.is_set():
            await self.quiet.wait()


@dataclass(eq=False)
class GuardedRun:
    """A run that this boot owns.

    Attributes:
        grant: Proof of ownership.
        contexts: Its browser contexts: id to the engine that guards it.
        wires: How strongly each context is guarded.
        scopes: Open actions, oldest first.
        in_flight: Effects that left and are unanswered: id to action and record.
        context_of_effect: Browser context of each effect in flight; ``None`` where Playwright's driver sent it.
        habits: What pages were seen to send by themselves lately: page, method and redacted URL.
        hops: Actions of effects that were answered lately by a redirect which repeats them.
        endings: Tasks that record the end of a lost browser.
        settled: Set while nothing is in flight or being decided.
    """

    grant: Grant
    contexts: dict[str, Engine] = field(default_factory=dict)
    wires: dict[str, Wire] = field(default_factory=dict)
    scopes: list[Scope] = field(default_factory=list)
    in_flight: dict[str, tuple[Scope, Effect]] = field(default_factory=dict)
    context_of_effect: dict[str, str | None] = field(default_factory=dict)
    habits: Newest[tuple[str | None, str, str], None] = field(default_factory=lambda: Newest(HABIT_LIMIT))
    hops: Newest[str, Scope] = field(default_factory=lambda: Newest(HOP_LIMIT))
    endings: set[asyncio.Task[None]] = field(default_factory=set)
    settled: asyncio.Event = field(default_factory=asyncio.Event)
    _deciding_count: int = 0

    def __post_init__(self) -> None:
        self.settled.set()

    def wire_of(self, context_id: str | None) -> Wire:
        """How strongly a context is guarded; the weakest of all where the context is not known."""
        return self.wires.get(context_id or "") or min(
            self.wires.values(), key=lambda wire: wire.strength, default=Wire.SEALED
        )

    def browser_of(self, page_id: str | None) -> Engine | None:
        """The engine that guards a page of this run."""
        return next((it for it in self.contexts.values() if page_id in it.targets.targets), None)

    def scope(self, action_id: str) -> Scope | None:
        """An open action by its id."""
        return next((scope for scope in self.scopes if scope.action_id == action_id), None)

    def scope_for(self, page_ids: Iterable[str]) -> Scope | None:
        """The open action that a request belongs to.

        Args:
            page_ids: The page that sends it and the pages that opened that one, nearest first; none for a worker.

        Returns:
            The newest open action on the nearest of those pages; for a worker the newest open action of the run.
        """
        pages = list(page_ids)
        if not pages:
            return self.scopes[-1] if self.scopes else None
        for page_id in pages:
            for scope in reversed(self.scopes):
                if scope.page_id == page_id:
                    return scope
        return None

    def unanswered_on(self, page_id: str | None) -> list[tuple[Scope, Effect]]:
        """Effects of a page that left and are unanswered, with their actions."""
        return [(scope, effect) for scope, effect in self.in_flight.values() if scope.page_id == page_id is not None]

    def left(self, scope: Scope, effect: Effect, context_id: str | None) -> None:
        """Note an effect that may now leave."""
        scope.left[effect.effect_id] = effect
        scope.unanswered[effect.effect_id] = effect
        self.in_flight[effect.effect_id] = (scope, effect)
        self.context_of_effect[effect.effect_id] = context_id
        self.settled.clear()

    def answered(self, effect_id: str) -> Scope | None:
        """Note that an effect is no longer in flight; returns its action."""
        scope, _ = self.in_flight.pop(effect_id, (None, None))
        self.context_of_effect.pop(effect_id, None)
        if scope is not None:
            scope.unanswered.pop(effect_id, None)
        self._note_quiet()
        return scope

    @contextmanager
    def deciding(self) -> Iterator[None]:
        """While a request of the run is being decided, nobody may take the run for settled."""
        self._deciding_count += 1
        self.settled.clear()
        try:
            yield
        finally:
            self._deciding_count -= 1
            self._note_quiet()

    def _note_quiet(self) -> None:
        if not self.in_flight and not self._deciding_count:
            self.settled.set()
