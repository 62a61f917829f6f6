"""Is a page as the last checkpoint of an earlier boot saw it? Pure: two sights in, the differences out.

``Run.verify`` asks. What was not to be seen, then or now, is never taken for "the same": it is said to be unknown.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from browsermw.models import Verification

if TYPE_CHECKING:
    from browsermw.models import Checkpoint, DomVerdict, IdentityVerdict


class Sight(Protocol):
    """What a page shows now, in the words of a checkpoint."""

    @property
    def url(self) -> str:
        """Redacted URL."""

    @property
    def dom_hash(self) -> str | None:
        """``None`` where it is not available."""

    @property
    def dom_note(self) -> str | None:
        """Why not."""

    @property
    def identity_state(self) -> str:
        """See ``models.Checkpoint``."""

    @property
    def identity_hash(self) -> str | None:
        """Keyed hash."""

    @property
    def identity_hint(self) -> str | None:
        """Masked hint."""


def compare(before: Checkpoint, now: Sight) -> Verification:
    """Hold a page against a checkpoint.

    Args:
        before: The checkpoint.
        now: What the page shows.
    """
    identity, dom = _identity(before, now), _dom(before, now)
    same_url = before.url == now.url
    differences = [
        "" if same_url else f"the page is {now.url or 'nowhere'}, it was {before.url or 'nowhere'}",
        _IDENTITY_WORDS.get(identity, "").format(then=_who(before), now=_who(now)),
        _DOM_WORDS.get(dom, "").format(why=now.dom_note or before.dom_note or "it was not read"),
    ]
    return Verification(
        checkpoint=before, same_url=same_url, identity=identity, dom=dom, differences=tuple(filter(None, differences))
    )


_IDENTITY_WORDS = {
    "another": "another user is signed in{now}, it was the run's own{then}",
    "signed_out": "nobody is signed in, the run's user{then} was",
    "signed_in": "somebody is signed in{now}, nobody was",
    "unreadable": "who is signed in cannot be read",
}
_DOM_WORDS = {"changed": "the page shows something else", "unknown": "the page's state cannot be compared: {why}"}


def _identity(before: Checkpoint, now: Sight) -> IdentityVerdict:
    states = (before.identity_state, now.identity_state)
    if "undeclared" in states:
        return "undeclared"
    if "unreadable" in states:
        return "unreadable"
    if states == ("signed_in", "signed_in"):
        return "same" if before.identity_hash == now.identity_hash else "another"
    if states[0] == states[1]:
        return "same"
    return "signed_out" if now.identity_state == "signed_out" else "signed_in"


def _dom(before: Checkpoint, now: Sight) -> DomVerdict:
    if before.dom_hash is None or now.dom_hash is None:
        return "unknown"
    return "same" if before.dom_hash == now.dom_hash else "changed"


def _who(sight: Sight | Checkpoint) -> str:
    return f" ({sight.identity_hint})" if sight.identity_hint else ""
