"""The steps of ``Run.verify`` that both flavours share: what is compared, with what, and what is raised.

What counts as the same is ``protocol.verification``'s word.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from browsermw.errors import BrowsermwError, IdentityMismatch
from browsermw.hooks.guards import Guard, find_guard
from browsermw.protocol.verification import compare

if TYPE_CHECKING:
    from browsermw.ledger.contract import Sighting
    from browsermw.models import Checkpoint, Verification
    from browsermw.run import Run


def guard_in(run: Run, page: object) -> Guard:
    """The guard of a page's context.

    Raises:
        BrowsermwError: The page is not the run's.
    """
    guard = find_guard(getattr(page, "context", None))
    if guard is None or guard.closed or guard.run is not run:
        raise BrowsermwError(
            f"Nothing left the browser: {page!r} is no page of a context that run {run.run_id!r} wraps; give one of "
            "run.wrap(context)."
        )
    return guard


def checkpoint_of(run: Run) -> Checkpoint:
    """What an earlier boot saw last.

    Raises:
        BrowsermwError: There is nothing.
    """
    if run.resume is None or run.resume.last_checkpoint is None:
        raise BrowsermwError(
            f"Nothing left the browser: no earlier process left a checkpoint of run {run.run_id!r}, so nothing "
            "can be held against it. Ask run.resume first: it is None for a new run."
        )
    return run.resume.last_checkpoint


def verified(run: Run, before: Checkpoint, now: Sighting) -> Verification:
    """What the comparison says.

    Raises:
        IdentityMismatch: Another user is signed in.
    """
    found = compare(before, now)
    if found.identity == "another":
        raise IdentityMismatch(
            f"Nothing left the browser: the page is {found}. Sign in as the user of run {run.run_id!r}, or start a run "
            "of its own for the other one.",
            facts={"run_id": run.run_id, "differences": list(found.differences)},
        )
    return found
