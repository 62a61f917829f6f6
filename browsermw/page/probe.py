"""Decides what counts as the state of a page: one expression that reads it, one record of what it said.

The checkpoint's writer calls ``probe_expression`` once per policy and ``read_probe`` on every answer; the
wire evaluates the expression in between, in an isolated world (``Page.createIsolatedWorld``, then
``Runtime.evaluate`` with ``returnByValue``). Nothing here raises on what a page holds: a page that cannot be
read is a fact of the checkpoint, not an error. No password's value, and no text of the page other than the
declared identity, outlives ``read_probe``: what is kept is a hash.

The probe keeps itself in the isolated world's global object, so that the second probe of a document runs
compiled code. The page's own world does not see it.
"""

from __future__ import annotations

import functools
import importlib.resources
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, cast, get_args

import xxhash

from browsermw.policy import checked_selector

if TYPE_CHECKING:
    from collections.abc import Sequence

DOM_HASH_PREFIX = "dom1:"
MAX_ELEMENTS = 400_000
MAX_CHARS = 64_000_000
TIME_CAP_MS = 3_000
_PROBE = "__browsermwProbe1"

IdentityReading = Literal["read", "absent", "unreadable", "not_asked"]


@dataclass(frozen=True, slots=True)
class PageProbe:
    """What was seen on a page at one moment.

    Attributes:
        url: The document's address, unredacted, at most 8,192 characters; empty when nothing answered.
        dom_hash: ``dom1:`` and 32 hex digits, or ``None`` when the state could not be read.
        identity_text: What the identity selector showed; only with ``identity_reading == "read"``.
        identity_reading: ``absent`` means a whole page was there without the element; ``unreadable`` means
            that nothing can be concluded (error page, page still loading, empty element, no HTML).
        element_count: How many elements went into the hash.
        not_available: Why ``dom_hash`` is ``None``, for people; otherwise ``None``.
    """

    url: str
    dom_hash: str | None
    identity_text: str | None = field(repr=False)
    identity_reading: IdentityReading
    element_count: int
    not_available: str | None


def probe_expression(
    ignore_selectors: Sequence[str],
    identity_selector: str | None,
    volatile_fields: Sequence[str],
    *,
    max_elements: int = MAX_ELEMENTS,
    time_cap_ms: int = TIME_CAP_MS,
) -> str:
    """Build the JavaScript expression whose value ``read_probe`` understands.

    Args:
        ignore_selectors: Elements matching one of these are left out with all that is in them.
        identity_selector: The element that shows who is signed in, or ``None``.
        volatile_fields: Names of form fields whose values change by themselves, beyond the known CSRF fields.
        max_elements: A page with more elements is not hashed.
        time_cap_ms: A walk that takes longer is given up.

    Returns:
        An expression for ``Runtime.evaluate`` with ``returnByValue``.

    Raises:
        ValueError: A selector is empty or holds control characters.
    """
    options = _options(ignore_selectors, identity_selector, volatile_fields, max_elements, time_cap_ms)
    return f"(globalThis.{_PROBE} ??= {_script()})({options})"


def repeat_expression(
    ignore_selectors: Sequence[str],
    identity_selector: str | None,
    volatile_fields: Sequence[str],
    *,
    max_elements: int = MAX_ELEMENTS,
    time_cap_ms: int = TIME_CAP_MS,
) -> str:
    """The same question for a world that evaluated ``probe_expression`` before: a fiftieth of the text.

    Sending and reading 16 KB of script again costs 0.5 ms of a click. In a world without the probe the value is
    ``undefined``. Arguments and errors as for ``probe_expression``.
    """
    options = _options(ignore_selectors, identity_selector, volatile_fields, max_elements, time_cap_ms)
    return f"globalThis.{_PROBE}?.({options})"


def visiting_expression(
    ignore_selectors: Sequence[str], identity_selector: str | None, volatile_fields: Sequence[str]
) -> str:
    """The same question for a world that is not ours (the page's own): nothing is kept there.

    Arguments and errors as for ``probe_expression``.
    """
    options = _options(ignore_selectors, identity_selector, volatile_fields, MAX_ELEMENTS, TIME_CAP_MS)
    return f"({_script()})({options})"


def _options(
    ignore_selectors: Sequence[str],
    identity_selector: str | None,
    volatile_fields: Sequence[str],
    max_elements: int,
    time_cap_ms: int,
) -> str:
    options = {
        "ignore": [checked_selector(selector) for selector in ignore_selectors],
        "identity": None if identity_selector is None else checked_selector(identity_selector),
        "volatile": list(volatile_fields),
        "maxElements": max_elements,
        "maxChars": MAX_CHARS,
        "timeCapMs": time_cap_ms,
    }
    return json.dumps(options)


def read_probe(value: object) -> PageProbe:
    """Turn the browser's answer into a record; whatever else it is becomes "not available", never an error.

    Args:
        value: The ``result.value`` of the evaluation, or ``None`` when there was none.

    Returns:
        What was seen, with ``not_available`` set when the state could not be read.
    """
    if not isinstance(value, Mapping) or not isinstance(value.get("url"), str):
        return _unseen(f"the page gave no answer ({type(value).__name__})")
    reading, identity_text = _read_identity(value.get("identity"))
    text, reason, count = value.get("text"), value.get("reason"), value.get("elements")
    dom_hash = _dom_hash(text) if isinstance(text, str) and reason is None else None
    if dom_hash is None and not isinstance(reason, str):
        reason = "the page's answer holds no state"
    return PageProbe(
        url=value["url"],
        dom_hash=dom_hash,
        identity_text=identity_text,
        identity_reading=reading,
        element_count=int(count) if isinstance(count, int | float) else 0,
        not_available=None if dom_hash is not None else str(reason),
    )


def _read_identity(value: object) -> tuple[IdentityReading, str | None]:
    if not isinstance(value, Mapping) or value.get("state") not in get_args(IdentityReading):
        return "unreadable", None
    reading, text = cast("IdentityReading", value["state"]), value.get("text")
    if reading != "read":
        return reading, None
    return ("read", text) if isinstance(text, str) and text else ("unreadable", None)


def _unseen(reason: str) -> PageProbe:
    return PageProbe(
        url="",
        dom_hash=None,
        identity_text=None,
        identity_reading="unreadable",
        element_count=0,
        not_available=reason,
    )


def _dom_hash(text: str) -> str:
    # Pages may hold lone surrogates; they are hashed as they are instead of failing the checkpoint.
    return DOM_HASH_PREFIX + xxhash.xxh3_128_hexdigest(text.encode("utf-8", "surrogatepass"))


@functools.cache
def _script() -> str:
    return importlib.resources.files("browsermw.page").joinpath("probe.js").read_text(encoding="utf-8").strip()
