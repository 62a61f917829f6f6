"""``OutcomeUnknown`` in the place of a Playwright ``TimeoutError``: it is both, so that existing clauses match."""

from __future__ import annotations

from typing import TYPE_CHECKING

from playwright.sync_api import TimeoutError as PlaywrightTimeoutError

from browsermw.errors import BrowsermwError, OutcomeUnknown

if TYPE_CHECKING:
    from collections.abc import Mapping


class OutcomeUnknownTimeout(OutcomeUnknown, PlaywrightTimeoutError):
    """A request left the browser and the call timed out before its answer: do not repeat the action.

    Look the outcome up at the application, then record a verdict.
    """

    def __init__(self, message: str, *, facts: Mapping[str, object] | None = None) -> None:
        PlaywrightTimeoutError.__init__(self, message)
        BrowsermwError.__init__(self, message, facts=facts)
