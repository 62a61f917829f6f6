"""A memory of bounded size, for what a long run would otherwise pile up.

Used where forgetting the oldest costs a detail and never a promise: nothing that decides whether a request may leave
may depend on an entry older than the limit.
"""

from __future__ import annotations

from typing import TypeVar

Key = TypeVar("Key")
Value = TypeVar("Value")


class Newest(dict[Key, Value]):
    """A dict that keeps the entries that were set last.

    Args:
        limit: How many; at least one.
    """

    def __init__(self, limit: int) -> None:
        super().__init__()
        self._limit = limit

    def __setitem__(self, key: Key, value: Value) -> None:
        """Set an entry, which makes it the newest, and forget the oldest where there are too many."""
        self.pop(key, None)
        super().__setitem__(key, value)
        if len(self) > self._limit:
            del self[next(iter(self))]
