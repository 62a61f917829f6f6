"""What a restart makes of what an earlier boot left (DESIGN section 5).

Called once, inside the transaction that claims a run. The wire makes the difference: on a sealed wire nothing
can leave once the process is dead, because the relay died with it, so intent without a DISPATCHED record proves
that nothing left. On the other wires a dying gate lets go of what it held (field note 2), so the same record proves
nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from browsermw.protocol.phases import Phase, action_phase

if TYPE_CHECKING:
    from collections.abc import Collection


class Wire(StrEnum):
    """How strongly an action was guarded, weakest first."""

    ROUTED = "routed"
    ATTACHED = "attached"
    SEALED = "sealed"

    @property
    def strength(self) -> int:
        """Rank for comparison with ``policy.minimum_wire``."""
        return list(Wire).index(self)


_RELEASED = frozenset(Phase) - {Phase.PLANNED, Phase.REFUSED}
"""Phases of an effect that was released at some time. An action may be past PLANNED without one: armed beside an
open WebSocket, or settled by a verdict on a weak wire, where nobody saw its requests."""


@dataclass(frozen=True)
class Classified:
    """A phase to write, and why."""

    phase: Phase
    reason: str


def classify_effect(phase: Phase) -> Classified:
    """What becomes of an effect that a dead boot left.

    Args:
        phase: The phase in the ledger.
    """
    if phase is Phase.DISPATCHED:
        return Classified(Phase.NEEDS_REVIEW, "released, and the process ended before an answer was recorded")
    return Classified(phase, "unchanged")


def classify_action(
    phase: Phase, wire: Wire, effects: Collection[Phase], *, closed: bool, reads_only: bool
) -> Classified:
    """What becomes of an action that a dead boot left, after its effects were classified.

    Args:
        phase: The action's phase in the ledger.
        wire: How strongly it was guarded.
        effects: Phases of its effects, already classified.
        closed: Whether its after-checkpoint is stored.
        reads_only: Whether it only reads (a navigation by GET), so that nothing it sent could matter.
    """
    if phase is Phase.PLANNED:
        if wire is Wire.SEALED or reads_only:
            return Classified(Phase.ABANDONED, "the process ended before anything left")
        return Classified(Phase.NEEDS_REVIEW, f"the process ended on the {wire} wire, which may have let it go")
    if phase in {Phase.DISPATCHED, Phase.ACKNOWLEDGED} and _RELEASED.intersection(effects):
        return Classified(action_phase(effects, closed=closed), "follows its effects")
    if phase is Phase.DISPATCHED:
        return Classified(Phase.NEEDS_REVIEW, "written as dispatched, and no effect of it is on record")
    return Classified(phase, "unchanged")
