"""Our errors in the place of a Playwright ``TimeoutError``: they are both, so that existing clauses match."""

from __future__ import annotations

from typing import TYPE_CHECKING

from playwright.sync_api import TimeoutError as PlaywrightTimeoutError

from browsermw.errors import BrowsermwError, InFlightDuplicate, OutcomeUnknown

if TYPE_CHECKING:
    from collections.abc import Mapping


class _AlsoTimeout(BrowsermwError, PlaywrightTimeoutError):
    """Carries the message through both constructors."""

    def __init__(self, message: str, *, facts: Mapping[str, object] | None = None) -> None:
        PlaywrightTimeoutError.__init__(self, message)
        BrowsermwError.__init__(self, message, facts=facts)


class OutcomeUnknownTimeout(_AlsoTimeout, OutcomeUnknown):
    """A request left the browser and the call timed out before its answer: do not repeat the action.

    Look the outcome up at the application, then record a verdict.
    """


class InFlightDuplicateTimeout(_AlsoTimeout, InFlightDuplicate):
    """Nothing left the browser: the call timed out, because the page waits for the answer to an earlier request.

    Wait for that answer, or settle it with a verdict, before the action is tried again.
    """
