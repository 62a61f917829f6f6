"""A caller that is interrupted while its action or its call is being opened: it is closed again behind its back.

Used by both hooks. Without it the opening would succeed with nobody left to close it: an action that takes over what
the page does from then on, or an effect that is written as DISPATCHED, never sent, and in doubt for ever.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from browsermw.boundary import CloseAction, CloseCall
from browsermw.errors import BrowsermwError
from browsermw.hooks.waiting import wait_through

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from concurrent.futures import Future

    from browsermw.boundary import CallTicket, OpenCall
    from browsermw.hooks.guards import Guard

    Work = Coroutine[Any, Any, Any]

INTERRUPTED = "the caller was interrupted before it was performed"


def open_sync(guard: Guard, work: Work, page: Any, closing: Callable[[Any], Work]) -> Any:
    """Open something and wait for it.

    Args:
        guard: Of the context.
        work: The desk's coroutine that opens it.
        page: A live page to wait through, or ``None``.
        closing: Makes the desk's coroutine that closes it, from what ``work`` returned.
    """
    opened = guard.run.runtime.submit(work)
    try:
        return wait_through(opened, page)
    except BaseException as error:
        if not (opened.done() and opened.exception() is error):  # a signal's exception, not the desk's
            _close_once_open(guard, opened, closing)
        raise


async def open_async(guard: Guard, work: Work, closing: Callable[[Any], Work]) -> Any:
    """The same for a caller that may be cancelled."""
    opened = guard.run.runtime.submit(work)
    try:
        return await asyncio.shield(asyncio.wrap_future(opened))
    except asyncio.CancelledError:
        _close_once_open(guard, opened, closing)
        raise


def closing_action(guard: Guard) -> Callable[[str], Work]:
    """Closes an action that was opened and never performed."""
    desk = guard.run.runtime.desk
    return lambda action_id: desk.close_action(CloseAction(guard.run.run_id, action_id, INTERRUPTED))


def closing_call(guard: Guard, opening: OpenCall) -> Callable[[CallTicket], Work]:
    """Closes a call that was opened and never made."""
    desk = guard.run.runtime.desk
    return lambda ticket: desk.close_call(
        CloseCall(guard.run.run_id, ticket, opening.url, failed=INTERRUPTED, never_made=True)
    )


def _close_once_open(guard: Guard, opened: Future[Any], closing: Callable[[Any], Work]) -> None:
    def close(done: Future[Any]) -> None:
        if done.cancelled() or done.exception() is not None:
            return
        try:
            guard.run.runtime.submit(closing(done.result()))
        except BrowsermwError:
            return  # the runtime is closed; leaving its runs has settled it

    opened.add_done_callback(close)
