"""What the two hooks share: from a Playwright call to a question for the desk, and from its answer to an error.

Written once, so that the sync and the async hook differ in nothing but ``await``. Records what the agent aimed at,
never what it typed.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode, urljoin

from playwright.sync_api import Error as PlaywrightError
from playwright.sync_api import TimeoutError as PlaywrightTimeoutError

from browsermw.boundary import CallTicket, CloseCall, OpenAction, OpenCall
from browsermw.errors import OutcomeUnknown
from browsermw.hooks.launched import base_url_of
from browsermw.hooks.payload import payload
from browsermw.hooks.timeouts import InFlightDuplicateTimeout, OutcomeUnknownTimeout
from browsermw.page.redact import redact_url
from browsermw.refusals import describe

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from browsermw.boundary import ActionClosed, Seen
    from browsermw.hooks.guards import Guard
    from browsermw.hooks.table import ActionKind
    from browsermw.models import Effect

_SELECTOR = re.compile(r"selector=(['\"])(.*)\1", re.DOTALL)
_ANSWERED = re.compile(r"^(?:\w+\.\w+: )?([1-5]\d\d) ")
"""How Playwright words the error of ``fail_on_status_code``: the request was answered, with this status."""

_URL = re.compile(r"\b[a-zA-Z][a-zA-Z0-9+.-]*://[^\s\"'<>]+")

WAITING_CLICKS = frozenset({"Page.click", "Frame.click", "Locator.click", "ElementHandle.click"})
"""These return two animation frames after the click at the earliest (field note 21), when what it began has begun."""

_SPOKEN_KINDS = frozenset({"script"})
KEY_NAME_LENGTH = 2


def opening(
    guard: Guard,
    entry: ActionKind,
    called: str,
    instance: Any,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    page_id: str | None,
    seen: Seen | None,
) -> OpenAction:
    """The question that a Playwright call puts to the desk.

    Args:
        guard: Of its context.
        entry: From the table.
        called: Such as ``Page.click``.
        instance: The object it is called on.
        args: Its arguments.
        kwargs: Its keyword arguments.
        page_id: Target id of its page.
        seen: What the page showed, where the hooks have to look.
    """
    return OpenAction(
        run_id=guard.run.run_id,
        kind=entry.kind,
        method=called,
        target=_target(entry, called, instance, args, kwargs),
        page_id=page_id,
        lazy=entry.lazy,
        reads_only=entry.reads_only,
        waits=called in WAITING_CLICKS and not kwargs.get("no_wait_after"),
        seen=seen,
    )


def _target(entry: ActionKind, called: str, instance: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> str:
    owner, _, name = called.partition(".")
    if owner in {"Page", "Frame"}:
        if entry.kind in _SPOKEN_KINDS:
            return ""
        aimed = args[0] if args else next((kwargs[key] for key in ("selector", "url", "source") if key in kwargs), "")
        return str(aimed)
    if owner == "Locator":
        found = _SELECTOR.search(repr(instance))
        return found.group(2) if found else ""
    if owner in {"Mouse", "Touchscreen"}:
        return ",".join(str(number) for number in args[:2])
    if owner == "Keyboard" and name in {"press", "down"}:
        key = str(args[0] if args else kwargs.get("key", ""))
        # A single letter may be a letter of a password; "Enter" and "Control+s" are aims.
        return key if len(key) >= KEY_NAME_LENGTH else "a key"
    return ""


def in_words(error: BaseException) -> str:
    """A failure for the record: its class and its first line, shortened, its URLs redacted."""
    first = str(error).partition("\n")[0]
    shown = _URL.sub(lambda found: redact_url(found.group()), first)
    return f"{type(error).__name__}: {shown}"[:300].encode("utf-8", "replace").decode().replace("\0", "")


def concluded(closed: ActionClosed, called: str, error: BaseException | None) -> BaseException | None:
    """The error that the agent should see instead of what Playwright said; ``None`` to leave it as it is.

    Args:
        closed: What came of the call.
        called: Such as ``Page.click``.
        error: What Playwright raised, if anything.
    """
    if error is not None and not isinstance(error, Exception):
        return None  # Ctrl-C and a cancelled task stay what they are
    if error is not None and closed.unanswered and isinstance(error, PlaywrightTimeoutError):
        first = closed.unanswered[0]
        return OutcomeUnknownTimeout(
            f"{called} timed out after a request had left the browser: {describe(first)}. Its outcome is unknown: do "
            f"not repeat the action; look it up at the application and record a verdict. ({in_words(error)})",
            facts={"effects": [effect.effect_id for effect in closed.unanswered]},
        )
    refusals = closed.refusals or (closed.asides if isinstance(error, PlaywrightError) else ())
    if refusals:
        return refusals[0]
    if isinstance(error, PlaywrightTimeoutError) and closed.page_waits_for:
        first = closed.page_waits_for[0]
        return InFlightDuplicateTimeout(
            f"{called} timed out and nothing left the browser: the page still waits for the answer to an earlier "
            f"request: {describe(first)}. Wait for it, or settle it with a verdict. ({in_words(error)})",
            facts={"rival": first.effect_id},
        )
    if isinstance(error, PlaywrightTimeoutError) and not closed.left_count:
        error.add_note("browsermw: no request with a side effect left the browser; the action may be tried again.")
    return None


# Calls that Playwright's driver sends itself.


def opening_call(
    guard: Guard, called: str, instance: Any, args: Sequence[Any], kwargs: Mapping[str, Any], page_id: str | None
) -> OpenCall:
    """The question that ``context.request.post`` and friends, and ``Route.fetch``, put to the desk."""
    if called == "Route.fetch":
        return _route_call(guard, called, instance.request, kwargs, page_id)
    verb = called.partition(".")[2].upper()
    first = args[0] if args else kwargs.get("url", kwargs.get("url_or_request", ""))
    if verb == "FETCH" and not isinstance(first, str):
        return _route_call(guard, called, first, kwargs, page_id)
    method = str(kwargs.get("method") or "GET").upper() if verb == "FETCH" else verb
    content_type, body = payload(kwargs)
    url, headers = _aimed(guard, str(first), kwargs), kwargs.get("headers") or {}
    return OpenCall(guard.run.run_id, called, method, url, content_type, body, page_id, headers)


def _aimed(guard: Guard, url: str, kwargs: Mapping[str, Any]) -> str:
    """The URL that the driver will ask for.

    With its host, or the relay would be asked about no host at all and say that nothing went there; with ``params``, or
    two requests that differ in nothing else would be one.
    """
    url = urljoin(base_url_of(guard.context), url)
    params = kwargs.get("params")
    if not params:
        return url
    query = params.lstrip("?") if isinstance(params, str) else urlencode({k: str(v) for k, v in dict(params).items()})
    return f"{url}{'&' if '?' in url else '?'}{query}"


def as_ruled(kwargs: dict[str, Any], opening: OpenCall, ticket: CallTicket) -> dict[str, Any]:
    """Arguments of a call that sends an effect: with its idempotency key, and without ``max_retries``.

    With that the driver would send it again by itself.
    """
    once = {"max_retries": 0} if kwargs.get("max_retries") else {}
    keyed = {"headers": {**opening.headers, ticket.added[0]: ticket.added[1]}} if ticket.added is not None else {}
    return {**kwargs, **once, **keyed}


def _route_call(guard: Guard, called: str, request: Any, kwargs: Mapping[str, Any], page_id: str | None) -> OpenCall:
    method = str(kwargs.get("method") or request.method).upper()
    headers = request.headers if kwargs.get("headers") is None else kwargs["headers"]
    given = {"data": kwargs.get("post_data"), **kwargs, "headers": headers}
    content_type, body = payload(given)
    if all(given.get(name) is None for name in ("data", "form", "multipart")):
        # Playwright leaves out what comes from a file; that is a body all the same, and equal to no other.
        body = request.post_data_buffer or (None if content_type else b"")
    url = _aimed(guard, str(kwargs.get("url") or request.url), kwargs)
    return OpenCall(guard.run.run_id, called, method, url, content_type, body, page_id, headers)


def answered_call(guard: Guard, ticket: CallTicket, url: str, response: Any) -> CloseCall:
    """What an answered call tells the desk."""
    headers = tuple((item["name"], item["value"]) for item in response.headers_array)
    return CloseCall(guard.run.run_id, ticket, url, status=response.status, headers=headers)


def failed_call(guard: Guard, ticket: CallTicket, url: str, error: BaseException) -> CloseCall:
    """What a failed call tells the desk; ``fail_on_status_code`` fails although there was an answer."""
    answered = _ANSWERED.match(str(error)) if isinstance(error, PlaywrightError) else None
    if answered is not None:
        return CloseCall(guard.run.run_id, ticket, url, status=int(answered.group(1)))
    # The driver may go on for a moment after its caller was interrupted, so that asking the relay now proves nothing.
    interrupted = not isinstance(error, Exception)
    return CloseCall(guard.run.run_id, ticket, url, failed=in_words(error), interrupted=interrupted)


def call_in_doubt(called: str, effect: Effect, error: BaseException) -> BaseException:
    """The error for a call that was sent and whose outcome is unknown."""
    text = (
        f"{called} failed after its request was sent: {describe(effect)}. Its outcome is unknown: do not repeat it; "
        f"look it up at the application and record a verdict. ({in_words(error)})"
    )
    facts = {"effects": [effect.effect_id]}
    if isinstance(error, PlaywrightTimeoutError):
        return OutcomeUnknownTimeout(text, facts=facts)
    return OutcomeUnknown(text, facts=facts)
