"""The narrow line between the agent's thread and the runtime's: small frozen records, in both directions.

The hooks fill in a question, the desk answers it. Nothing of Playwright and nothing of the loop crosses here, so
that the runtime can live in a process of its own beside the agent.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from browsermw.errors import BrowsermwError
    from browsermw.models import Effect


@dataclass(frozen=True)
class Seen:
    """What the hooks saw of a page that the desk cannot look at itself (wire ``routed``).

    Attributes:
        value: The probe's raw answer; ``None`` where there was none.
        cookies: Cookies of the page's URL, where the identity is read from one.
        failed: Why there was no answer, in words.
    """

    value: object = None
    cookies: tuple[Mapping[str, object], ...] = ()
    failed: str | None = None


@dataclass(frozen=True)
class OpenAction:
    """A Playwright call is about to be made.

    Attributes:
        run_id: The run.
        kind: See ``models.Action``.
        method: Such as ``Page.click``.
        target: Selector or URL as given; shortened and redacted by the desk.
        page_id: The page's target id; ``None`` where the call has no page.
        lazy: Journal it only if an effect comes of it (scripts, typing).
        reads_only: A navigation; passes in quarantine.
        waits: Playwright itself gives the page its next turns before the call returns.
        seen: What the page showed, where the hooks have to look.
    """

    run_id: str
    kind: str
    method: str
    target: str
    page_id: str | None
    lazy: bool = False
    reads_only: bool = False
    waits: bool = False
    seen: Seen | None = None


@dataclass(frozen=True)
class CloseAction:
    """The Playwright call returned, or failed.

    Attributes:
        run_id: The run.
        action_id: What ``OpenAction`` was answered with.
        failed: The failure in words; ``None`` where it returned.
        seen: What the page showed, where the hooks have to look.
    """

    run_id: str
    action_id: str
    failed: str | None = None
    seen: Seen | None = None


@dataclass(frozen=True)
class ActionClosed:
    """What came of the call.

    Attributes:
        refusals: Errors of the call's own requests that the gate refused, in order.
        asides: Errors of refused requests that explain the failure of the call, if it failed.
        unanswered: Effects that left and are unanswered.
        left_count: Effects that left at all.
        page_waits_for: Effects of earlier actions on the same page that are still unanswered.
    """

    refusals: tuple[BrowsermwError, ...] = ()
    asides: tuple[BrowsermwError, ...] = ()
    unanswered: tuple[Effect, ...] = ()
    left_count: int = 0
    page_waits_for: tuple[Effect, ...] = ()


@dataclass(frozen=True)
class OpenCall:
    """A request that Playwright's driver will send itself (``context.request``, ``Route.fetch``).

    Attributes:
        run_id: The run.
        api_method: Such as ``APIRequestContext.post``.
        method: HTTP method.
        url: As given.
        content_type: Of the body, or empty.
        body: ``None`` where it is not known.
        page_id: Page of the route, if any.
        headers: Headers that it is sent with, as far as the call says.
    """

    run_id: str
    api_method: str
    method: str
    url: str
    content_type: str
    body: bytes | None
    page_id: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class CallTicket:
    """An API call that may now be sent. ``effect_id`` is ``None`` where it is no effect.

    Attributes:
        effect_id: Its record.
        action_id: The action that it belongs to.
        sent_from_s: The earliest moment at which it can have left, on the loop's clock.
        added: Header, name and value, that it is to be sent with on top of its own.
    """

    effect_id: str | None
    action_id: str | None = None
    sent_from_s: float = 0.0
    added: tuple[str, str] | None = None


@dataclass(frozen=True)
class CloseCall:
    """An API call was answered, or failed.

    Attributes:
        run_id: The run.
        ticket: From ``OpenCall``.
        status: HTTP status.
        headers: Response headers.
        failed: The failure in words.
        url: For the relay's knowledge after a failure.
        never_made: The caller was interrupted before it was handed to the driver.
        interrupted: The caller was interrupted while the driver was at it.
    """

    run_id: str
    ticket: CallTicket
    url: str
    status: int | None = None
    headers: tuple[tuple[str, str], ...] = ()
    failed: str | None = None
    never_made: bool = False
    interrupted: bool = False
