"""The hooks on Playwright's sync classes; everything they decide is in ``journal``, the desk and the gate."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from playwright.sync_api import Error as PlaywrightError

from browsermw.boundary import CloseAction
from browsermw.hooks import journal
from browsermw.hooks.guards import Guard, find_guard, guard_of, guard_of_route
from browsermw.hooks.launched import attaching, note_context, note_launch
from browsermw.hooks.looks import Look
from browsermw.hooks.opening import closing_action, closing_call, open_sync
from browsermw.hooks.waiting import wait_through

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from browsermw.boundary import ActionClosed
    from browsermw.hooks.table import ActionKind

Wrapped = Any


def _ask(guard: Guard, work: Coroutine[Any, Any, Any], page: Any) -> Any:
    return wait_through(guard.run.runtime.submit(work), _live(page))


def _live(page: Any) -> Any:
    return page if page is not None and not page.is_closed() else None


def action(class_name: str, name: str, entry: ActionKind) -> Callable[..., Any]:
    """The hook of a method that is an action."""
    called = f"{class_name}.{name}"

    def hook(wrapped: Wrapped, instance: Any, args: Any, kwargs: Any) -> Any:
        guard, page = guard_of(class_name, instance)
        if guard is None or guard.passes(entry):
            return wrapped(*args, **kwargs)
        desk, page_id = guard.run.runtime.desk, guard.page_id_sync(page)
        look = Look(guard, page, entry)
        opening = journal.opening(guard, entry, called, instance, args, kwargs, page_id, look.before_sync())
        action_id = open_sync(guard, desk.open_action(opening), _live(page), closing_action(guard))

        def close(error: BaseException | None) -> ActionClosed:
            failed = journal.in_words(error) if error is not None else None
            seen = look.after_sync(error, waited=opening.waits)
            closing = CloseAction(guard.run.run_id, action_id, failed, seen)
            return _ask(guard, desk.close_action(closing), page)  # type: ignore[no-any-return]

        try:
            result = wrapped(*args, **kwargs)
        except BaseException as error:
            instead = journal.concluded(close(error), called, error)
            if instead is not None:
                raise instead from error
            raise
        instead = journal.concluded(close(None), called, None)
        if instead is not None:
            raise instead
        return result

    return hook


def call(class_name: str, name: str) -> Callable[..., Any]:
    """The hook of a request that Playwright's driver sends."""
    called = f"{class_name}.{name}"

    def hook(wrapped: Wrapped, instance: Any, args: Any, kwargs: Any) -> Any:
        guard, page = guard_of_route(instance) if class_name == "Route" else guard_of(class_name, instance)
        if guard is None:
            return wrapped(*args, **kwargs)
        desk = guard.run.runtime.desk
        page_id = guard.page_id_sync(page)
        opening = journal.opening_call(guard, called, instance, args, kwargs, page_id)
        ticket = open_sync(guard, desk.open_call(opening), None, closing_call(guard, opening))
        if ticket.effect_id is None:
            return wrapped(*args, **kwargs)
        try:
            response = wrapped(*args, **journal.as_ruled(kwargs, opening, ticket))
        except BaseException as error:
            closing = journal.failed_call(guard, ticket, opening.url, error)
            doubt = _ask(guard, desk.close_call(closing), None)
            if doubt is not None and isinstance(error, Exception):
                raise journal.call_in_doubt(called, doubt, error) from error
            raise
        _ask(guard, desk.close_call(journal.answered_call(guard, ticket, opening.url, response)), None)
        return response

    return hook


def close(class_name: str) -> Callable[..., Any]:
    """The hook of ``close``: answers that are still out are awaited first, for ``policy.settle_s`` at most."""

    def hook(wrapped: Wrapped, instance: Any, args: Any, kwargs: Any) -> Any:
        guards = guards_to_settle(class_name, instance)
        for guard in guards:
            page = next(iter(guard.open_pages()), None)
            _ask(guard, guard.run.runtime.desk.settle(guard.run.run_id, guard.run.runtime.policy.settle_s), page)
        result = wrapped(*args, **kwargs)
        for guard, context_id in ended(guards):
            _ask(guard, guard.run.runtime.desk.context_closed(guard.run.run_id, context_id), None)
        return result

    return hook


def opens(_class_name: str) -> Callable[..., Any]:
    """In sync code a context was found when it was wrapped; there is nothing to wait for."""

    def hook(wrapped: Wrapped, _instance: Any, args: Any, kwargs: Any) -> Any:
        return wrapped(*args, **kwargs)

    return hook


def release(wrapped: Wrapped, instance: Any, args: Any, kwargs: Any) -> Any:
    """The hook of ``Route.continue_``: it would send a request past our route, which rules on it here instead."""
    guard, _ = guard_of_route(instance)
    if guard is None or guard.routed is None:
        return wrapped(*args, **kwargs)
    return guard.routed.pass_sync(instance, lambda: wrapped(*args, **kwargs), kwargs)


def unroute(wrapped: Wrapped, instance: Any, args: Any, kwargs: Any) -> Any:
    """The hook of ``unroute_all``: our route stays."""
    guard = find_guard(instance)
    if guard is None or guard.routed is None:
        return wrapped(*args, **kwargs)
    return guard.routed.keep_only_ours()


def launch(wrapped: Wrapped, _instance: Any, args: Any, kwargs: Any) -> Any:
    """The hook of a launch: it returns with the gate in place, or ``wrap`` will say why it is not."""
    made = wrapped(*args, **kwargs)
    note_launch(made, kwargs)
    attached = attaching(kwargs)
    if attached is not None:
        attached.exception()
        for page in first_pages(made):
            with suppress(PlaywrightError):
                page.evaluate("1")
    return made


def making(wrapped: Wrapped, _instance: Any, args: Any, kwargs: Any) -> Any:
    """The hook of a method that makes a context."""
    made = wrapped(*args, **kwargs)
    note_context(made, kwargs)
    return made


def first_pages(made: Any) -> list[Any]:
    """Pages that a persistent context began with, to be asked something once.

    Each was given a new document, and Playwright has to hear of that before the agent's first call.
    """
    return list(made.pages) if hasattr(made, "pages") else []


def guards_to_settle(class_name: str, instance: Any) -> list[Guard]:
    """Open guards of what is about to be closed."""
    if class_name == "Browser":
        contexts = instance.contexts
    else:
        contexts = [instance.context if class_name == "Page" else instance]
    guards = [find_guard(context) for context in contexts]
    return [guard for guard in guards if guard is not None and not guard.closed]


def ended(guards: list[Guard]) -> list[tuple[Guard, str]]:
    """Those of them whose context is closed, with its id at the gate; a page of it may have been all that was."""
    return [(it, it.context_id) for it in guards if it.context_id is not None and it.context.is_closed()]
