"""Ids of boots, actions and effects."""

from __future__ import annotations

import uuid


def new_id(letter: str) -> str:
    """An id that is unique in the ledger, made before any I/O: a letter for its kind and 20 hexadecimal digits."""
    return f"{letter}-{uuid.uuid4().hex[:20]}"
