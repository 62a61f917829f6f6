"""Waiting in sync code without starving the user's own handlers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from playwright.sync_api import Error as PlaywrightError

if TYPE_CHECKING:
    from concurrent.futures import Future

BLOCKING_S = 0.03
"""A commit takes less; what takes longer may be waiting for a route handler that runs on this very thread."""

PUMP_MS = 5


def wait_through(future: Future[Any], page: Any) -> Any:
    """Wait for the runtime; anything longer than a commit waits through Playwright (DESIGN section 10).

    Args:
        future: From ``Runtime.submit``.
        page: A live sync page, or ``None``: then the wait blocks.
    """
    if page is None:
        return future.result()
    try:
        return future.result(timeout=BLOCKING_S)
    except TimeoutError:
        if future.done():
            # It may have ended in this very moment; its own word counts, not the end of our patience.
            return future.result()
    while not future.done():
        try:
            page.wait_for_timeout(PUMP_MS)
        except PlaywrightError:
            return future.result()  # the page is gone; nobody's handler can starve any more
    return future.result()
