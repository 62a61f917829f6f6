"""Decides who is signed in, from what was seen, and what may be kept of it: a keyed hash and a masked hint.

The checkpoint's writer calls this. "Signed out" is a conclusion and needs proof; where there is none the
state is ``unreadable``, and callers must not take that for a change of user. Neither the hash nor the hint
lets anybody without the key get at a session's cookie.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from browsermw.page.probe import PageProbe

IDENTITY_HASH_PREFIX = "id1:"
COOKIE_HINT = "cookie session"
_MIN_KEY_BYTES = 16
_MAX_KEY_BYTES = hashlib.blake2b.MAX_KEY_SIZE
_SHORT_CHARS = 6
_SHORT_EMAIL_PART_CHARS = 3
_TOKEN_CHARS = 16
_EMAIL = re.compile(r"[^\s@]+@[^\s@]+")
_TOKEN = re.compile(r"[A-Za-z0-9_\-.~+/=%:|!*$&,;]+")

State = Literal["signed_in", "signed_out", "unreadable"]


@dataclass(frozen=True, slots=True)
class Identity:
    """Who the page is signed in as.

    Attributes:
        state: ``signed_in``, ``signed_out``, or ``unreadable`` when neither can be concluded.
        text: What names the user; only when signed in. A secret when it comes from a cookie: hash it, never
            store it.
        is_secret: Whether ``text`` is a credential rather than a name.
    """

    state: State
    text: str | None = field(default=None, repr=False)
    is_secret: bool = False

    @property
    def hint(self) -> str:
        """A masked hint that may be stored and shown; empty when there is nothing safe to say."""
        if self.text is None:
            return ""
        return COOKIE_HINT if self.is_secret else identity_hint(self.text)


def identity_from_cookie(cookies: Sequence[Mapping[str, object]], name: str) -> Identity:
    """Read the identity from a session cookie.

    Args:
        cookies: The cookies that the browser would send to the page's URL (CDP ``Network.getCookies``).
        name: The cookie's name, exactly.

    Returns:
        Signed in by its value; signed out when it is missing or empty; unreadable when several cookies of
        that name disagree, since which of them counts is the server's choice.
    """
    values = [cookie.get("value") for cookie in cookies if cookie.get("name") == name]
    if any(not isinstance(value, str) for value in values):
        return Identity("unreadable")
    distinct = {value for value in values if isinstance(value, str) and value}
    if not distinct:
        return Identity("signed_out")
    if len(distinct) > 1:
        return Identity("unreadable")
    return Identity("signed_in", distinct.pop(), is_secret=True)


def identity_from_selector(probe: PageProbe) -> Identity:
    """Read the identity from what the policy's selector showed.

    Args:
        probe: The page as it was seen.

    Returns:
        Signed in by the element's text; signed out when a whole page lacks it; otherwise unreadable.
    """
    if probe.identity_reading == "read" and probe.identity_text:
        return Identity("signed_in", probe.identity_text)
    return Identity("signed_out" if probe.identity_reading == "absent" else "unreadable")


def identity_hash(key: bytes, text: str) -> str:
    """Hash an identity so that two can be compared and none can be guessed without the key.

    Args:
        key: The ledger's own secret, 16 to 64 bytes.
        text: What names the user, or the cookie's value.

    Returns:
        ``id1:`` and 32 hex digits.

    Raises:
        ValueError: The key is too short or too long; without a key, names could be tried one by one.
    """
    if not _MIN_KEY_BYTES <= len(key) <= _MAX_KEY_BYTES:
        raise ValueError(
            f"the identity key has {len(key)} bytes; it needs {_MIN_KEY_BYTES} to {_MAX_KEY_BYTES}, for "
            "example secrets.token_bytes(32)"
        )
    digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), key=key, digest_size=16)
    return IDENTITY_HASH_PREFIX + digest.hexdigest()


def identity_hint(text: str) -> str:
    """Mask an identity so that its owner recognises it and nobody else learns it.

    Args:
        text: A user's name or e-mail address as the page shows it.

    Returns:
        At most three characters of the text, as in ``a…@e…`` or ``us…1``; empty when the text is short;
        ``cookie session`` when it looks like a token.
    """
    shown = "".join(char for char in text.strip() if char.isprintable() and char != "…")
    if _EMAIL.fullmatch(shown):
        local, _, domain = shown.rpartition("@")
        if min(len(local), len(domain)) < _SHORT_EMAIL_PART_CHARS:
            return ""
        return f"{local[0]}…@{domain[0]}…"
    if _looks_like_token(shown):
        return COOKIE_HINT
    return "" if len(shown) < _SHORT_CHARS else f"{shown[:2]}…{shown[-1]}"


def _looks_like_token(text: str) -> bool:
    if len(text) < _TOKEN_CHARS or not _TOKEN.fullmatch(text):
        return False
    has_digit = any(char.isdigit() for char in text)
    has_inner_capital = any(char.isupper() for char in text[1:])
    return has_digit or has_inner_capital
