"""The steps of ``Run.verify`` that both flavours share: what is compared with what, in which words, what is raised.

What counts as the same is ``protocol.verification``'s word.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from browsermw.errors import BrowsermwError, IdentityMismatch
from browsermw.hooks.guards import Guard, find_guard
from browsermw.models import Verification
from browsermw.protocol.verification import dom_verdict, identity_verdict

if TYPE_CHECKING:
    from browsermw.ledger.contract import Sighting
    from browsermw.models import Checkpoint
    from browsermw.run import Run

_IDENTITY_WORDS = {
    "another": "another user is signed in{now}, it was the run's own{then}",
    "signed_out": "nobody is signed in, the run's user{then} was",
    "signed_in": "somebody is signed in{now}, nobody was",
    "unreadable": "who is signed in cannot be read",
}
_DOM_WORDS = {"changed": "the page shows something else", "unknown": "the page's state cannot be compared: {why}"}


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


def compare(before: Checkpoint, now: Sighting) -> Verification:
    """Hold a page against a checkpoint.

    Args:
        before: The checkpoint.
        now: What the page shows.
    """
    same_hash = before.identity_hash == now.identity_hash
    identity = identity_verdict(before.identity_state, now.identity_state, same_hash=same_hash)
    dom = dom_verdict(before.dom_hash, now.dom_hash)
    same_url = before.url == now.url
    differences = [
        "" if same_url else f"the page is {now.url or 'nowhere'}, it was {before.url or 'nowhere'}",
        _IDENTITY_WORDS.get(identity, "").format(then=_hint(before.identity_hint), now=_hint(now.identity_hint)),
        _DOM_WORDS.get(dom, "").format(why=now.dom_note or before.dom_note or "it was not read"),
    ]
    return Verification(
        checkpoint=before, same_url=same_url, identity=identity, dom=dom, differences=tuple(filter(None, differences))
    )


def _hint(hint: str | None) -> str:
    return f" ({hint})" if hint else ""
