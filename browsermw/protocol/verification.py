"""What a page shows now, held against what a checkpoint saw: is it the same user, and the same state?

``browsermw.verifying`` asks, for ``Run.verify``. What was not to be seen, then or now, is never taken for "the same".
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from browsermw.models import DomVerdict, IdentityVerdict


def identity_verdict(then: str, now: str, *, same_hash: bool) -> IdentityVerdict:
    """Who is signed in.

    Args:
        then: The checkpoint's ``identity_state``.
        now: The page's.
        same_hash: Whether the keyed hashes of both identities are equal.
    """
    if "undeclared" in {then, now}:
        return "undeclared"
    if "unreadable" in {then, now}:
        return "unreadable"
    if then == now:
        return "same" if same_hash else "another"
    return "signed_out" if now == "signed_out" else "signed_in"


def dom_verdict(then: str | None, now: str | None) -> DomVerdict:
    """What the page shows.

    Args:
        then: The checkpoint's ``dom_hash``; ``None`` where it was not available.
        now: The page's.
    """
    if then is None or now is None:
        return "unknown"
    return "same" if then == now else "changed"
