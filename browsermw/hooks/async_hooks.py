"""The hooks on Playwright's async classes: the sync ones with ``await``.

Closing is shielded, because a cancelled click has to be closed in the ledger too.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from playwright.async_api import Error as PlaywrightError

from browsermw.boundary import CloseAction
from browsermw.hooks import journal
from browsermw.hooks.guards import Guard, find_guard, guard_of, guard_of_route
from browsermw.hooks.launched import attaching, note_context, note_launch
from browsermw.hooks.looks import Look
from browsermw.hooks.opening import closing_action, closing_call, open_async
from browsermw.hooks.sync_hooks import ended, first_pages, guards_to_settle

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from browsermw.hooks.table import ActionKind

Wrapped = Any


async def _ask(guard: Guard, work: Coroutine[Any, Any, Any]) -> Any:
    return await asyncio.wrap_future(guard.run.runtime.submit(work))


def action(class_name: str, name: str, entry: ActionKind) -> Callable[..., Any]:
    """The hook of a method that is an action."""
    called = f"{class_name}.{name}"

    async def hook(wrapped: Wrapped, instance: Any, args: Any, kwargs: Any) -> Any:
        guard, page = guard_of(class_name, instance)
        if guard is None or guard.passes(entry):
            return await wrapped(*args, **kwargs)
        await guard.identified()
        desk, page_id = guard.run.runtime.desk, await guard.page_id_async(page)
        look = Look(guard, page, entry)
        seen = await look.before_async()
        opening = journal.opening(guard, entry, called, instance, args, kwargs, page_id, seen)
        action_id = await open_async(guard, desk.open_action(opening), closing_action(guard))

        async def close(error: BaseException | None) -> Any:
            failed = journal.in_words(error) if error is not None else None
            seen = await look.after_async(error, waited=opening.waits)
            closing = CloseAction(guard.run.run_id, action_id, failed, seen)
            return await _ask(guard, desk.close_action(closing))

        try:
            result = await wrapped(*args, **kwargs)
        except BaseException as error:
            instead = journal.concluded(await asyncio.shield(close(error)), called, error)
            if instead is not None:
                raise instead from error
            raise
        instead = journal.concluded(await asyncio.shield(close(None)), called, None)
        if instead is not None:
            raise instead
        return result

    return hook


def call(class_name: str, name: str) -> Callable[..., Any]:
    """The hook of a request that Playwright's driver sends."""
    called = f"{class_name}.{name}"

    async def hook(wrapped: Wrapped, instance: Any, args: Any, kwargs: Any) -> Any:
        guard, page = guard_of_route(instance) if class_name == "Route" else guard_of(class_name, instance)
        if guard is None:
            return await wrapped(*args, **kwargs)
        await guard.identified()
        desk = guard.run.runtime.desk
        page_id = await guard.page_id_async(page)
        opening = journal.opening_call(guard, called, instance, args, kwargs, page_id)
        ticket = await open_async(guard, desk.open_call(opening), closing_call(guard, opening))
        if ticket.effect_id is None:
            return await wrapped(*args, **kwargs)
        try:
            response = await wrapped(*args, **journal.as_ruled(kwargs, opening, ticket))
        except BaseException as error:
            closing = journal.failed_call(guard, ticket, opening.url, error)
            doubt = await asyncio.shield(_ask(guard, desk.close_call(closing)))
            if doubt is not None and isinstance(error, Exception):
                raise journal.call_in_doubt(called, doubt, error) from error
            raise
        closing = journal.answered_call(guard, ticket, opening.url, response)
        await asyncio.shield(_ask(guard, desk.close_call(closing)))
        return response

    return hook


def close(class_name: str) -> Callable[..., Any]:
    """The hook of ``close``: answers that are still out are awaited first, for ``policy.settle_s`` at most."""

    async def hook(wrapped: Wrapped, instance: Any, args: Any, kwargs: Any) -> Any:
        guards = guards_to_settle(class_name, instance)
        for guard in guards:
            await _ask(guard, guard.run.runtime.desk.settle(guard.run.run_id, guard.run.runtime.policy.settle_s))
        result = await wrapped(*args, **kwargs)
        for guard, context_id in ended(guards):
            await _ask(guard, guard.run.runtime.desk.context_closed(guard.run.run_id, context_id))
        return result

    return hook


def opens(_class_name: str) -> Callable[..., Any]:
    """The hook of ``new_page``: the context has to be known at the gate before it has a page."""

    async def hook(wrapped: Wrapped, instance: Any, args: Any, kwargs: Any) -> Any:
        guard = find_guard(instance)
        if guard is not None:
            await guard.identified()
        return await wrapped(*args, **kwargs)

    return hook


async def release(wrapped: Wrapped, instance: Any, args: Any, kwargs: Any) -> Any:
    """The hook of ``Route.continue_``: it would send a request past our route, which rules on it here instead."""
    guard, _ = guard_of_route(instance)
    if guard is None or guard.routed is None:
        return await wrapped(*args, **kwargs)
    return await guard.routed.pass_async(instance, lambda: wrapped(*args, **kwargs), kwargs)


async def unroute(wrapped: Wrapped, instance: Any, args: Any, kwargs: Any) -> Any:
    """The hook of ``unroute_all``: our route stays."""
    guard = find_guard(instance)
    if guard is None or guard.routed is None:
        return await wrapped(*args, **kwargs)
    return guard.routed.keep_only_ours()


async def launch(wrapped: Wrapped, _instance: Any, args: Any, kwargs: Any) -> Any:
    """The hook of a launch: it returns with the gate in place, or ``wrap`` will say why it is not."""
    made = await wrapped(*args, **kwargs)
    note_launch(made, kwargs)
    attached = attaching(kwargs)
    if attached is not None:
        try:
            await asyncio.wait([asyncio.wrap_future(attached)])
        except asyncio.CancelledError:
            await asyncio.shield(made.close())  # nobody else could
            raise
        for page in first_pages(made):
            with suppress(PlaywrightError):
                await page.evaluate("1")
    return made


async def making(wrapped: Wrapped, _instance: Any, args: Any, kwargs: Any) -> Any:
    """The hook of a method that makes a context."""
    made = await wrapped(*args, **kwargs)
    note_context(made, kwargs)
    return made
