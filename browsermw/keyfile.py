"""The ledger's key: what identities are hashed with, in a file of its own beside the ledger (mode 0600).

Read, or made at the first start; never logged, never in the database. Losing it means that identities recorded
before can no longer be compared; nothing else depends on it.
"""

from __future__ import annotations

import os
import secrets
from typing import TYPE_CHECKING

from browsermw.errors import LedgerUnavailable

if TYPE_CHECKING:
    from pathlib import Path

KEY_BYTE_COUNT = 32


def read_or_make_key(path: Path) -> bytes:
    """The key in a file; two processes that start at once get the same one.

    Args:
        path: The file; its folder is made.

    Raises:
        LedgerUnavailable: It can be neither read nor written, or is no key.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        if not path.exists():
            _make(path)
        key = path.read_bytes()
    except OSError as error:
        raise LedgerUnavailable(
            f"Nothing left the browser: the key file {path} cannot be read or made ({error.strerror})."
        ) from error
    if len(key) != KEY_BYTE_COUNT:
        raise LedgerUnavailable(
            f"Nothing left the browser: {path} holds {len(key)} bytes instead of a key of {KEY_BYTE_COUNT}. "
            "Restore it from a backup, or remove it to start with a new key."
        )
    return key


def _make(path: Path) -> None:
    """Write it whole under another name first, so that nobody ever reads half a key."""
    draft = path.with_name(f"{path.name}.{secrets.token_hex(8)}")
    handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "wb") as file:
        file.write(secrets.token_bytes(KEY_BYTE_COUNT))
        file.flush()
        os.fsync(file.fileno())
    try:
        os.link(draft, path)
    except FileExistsError:
        pass  # another process was first; its key stands
    finally:
        draft.unlink()
