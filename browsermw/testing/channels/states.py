"""The words of the channel suite: what can become of an effect, and on which engine.

Used by the table, the runner and ``browsermw doctor``; decides nothing.
"""

from __future__ import annotations

from enum import StrEnum


class State(StrEnum):
    """What was measured of a channel, with the server's count as the oracle.

    ``WRITE_AHEAD``: each arrival had a durable DISPATCHED record before its first byte was there. ``ARMED``: the same,
    by a record that the click made for the socket and not for the frame. ``REFUSED``: the gate refused it and nothing
    arrived. ``NOT_COVERED``: something arrived that had no record. ``NO_EFFECT``: only reading arrived, and the ledger
    says nothing of it. ``CANNOT_LEAVE``: the browser itself would not send it, by the page's own word.
    """

    WRITE_AHEAD = "write-ahead"
    ARMED = "armed"
    REFUSED = "refused"
    NOT_COVERED = "not covered"
    NO_EFFECT = "no effect"
    CANNOT_LEAVE = "cannot leave"


class Engine(StrEnum):
    """How the browser is guarded; the names are those of ``Wire``."""

    SEALED = "sealed"
    ATTACHED = "attached"
    ROUTED = "routed"
