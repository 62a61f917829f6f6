"""Digests: how a record names its own content and the record before it.

The ledger writes them and checks them again at recovery. SHA-256 over canonical JSON of the digest before and
the facts: sorted keys, no spaces, UTF-8, moments as ISO 8601 text. A record that was changed on disk no longer
matches its digest.
"""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

GENESIS = "0" * 64
"""The digest before the first record of a run."""


def digest(previous: str, facts: Mapping[str, str | int | None]) -> str:
    """Digest of a record in its chain.

    Args:
        previous: Digest of the record before it in the same run, or ``GENESIS``.
        facts: The record's fields. Text, whole numbers and ``None`` only, so that every database gives back
            what it was given.

    Returns:
        64 hexadecimal digits.
    """
    text = json.dumps([previous, dict(facts)], sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
