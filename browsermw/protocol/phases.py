"""The phase tables: every step that an action, an effect, a run or a runtime may take.

The rules, before the tables:

1. A step is a pair (from, to). A pair that is not in its table raises ``IllegalTransition`` and changes nothing.
2. ``None`` on the left means "not in the ledger yet".
3. An effect enters the ledger as DISPATCHED (its record is durable before the request leaves) or as REFUSED
   (it never leaves). It has no PLANNED: before DISPATCHED it is part of its action's intent.
4. An action's phase follows from its effects and from whether its after-checkpoint is stored
   (``action_phase``); it is never set by opinion. So OBSERVED, ABANDONED and REFUSED are ends of an effect, but of
   an action only until it gets another effect: a retry after a refused connection, a redirect hop, a late request.
5. NEEDS_REVIEW is left only by a verdict.

The ledger calls ``check_step`` before each guarded update; the diagram in ``docs/explanation/phases.md`` is drawn
from these tables by ``browsermw.protocol.diagram``.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

from browsermw.errors import IllegalTransition

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping


class Phase(StrEnum):
    """Phase of an action or of an effect (DESIGN section 5)."""

    PLANNED = "PLANNED"
    DISPATCHED = "DISPATCHED"
    ACKNOWLEDGED = "ACKNOWLEDGED"
    OBSERVED = "OBSERVED"
    NEEDS_REVIEW = "NEEDS_REVIEW"
    ABANDONED = "ABANDONED"
    REFUSED = "REFUSED"


class RunPhase(StrEnum):
    """Phase of a run."""

    ACTIVE = "ACTIVE"
    SUSPENDED = "SUSPENDED"
    NEEDS_REVIEW = "NEEDS_REVIEW"
    FINISHED = "FINISHED"


class RuntimeState(StrEnum):
    """State of a runtime (DESIGN section 8)."""

    RUNNING = "RUNNING"
    DRAINING = "DRAINING"
    QUIESCED = "QUIESCED"
    STOPPED = "STOPPED"
    NEEDS_REVIEW = "NEEDS_REVIEW"


ACTION_STEPS: Mapping[tuple[Phase | None, Phase], str] = {
    (None, Phase.PLANNED): "intent and before-checkpoint are durable",
    (Phase.PLANNED, Phase.DISPATCHED): "its first effect may leave",
    (Phase.PLANNED, Phase.OBSERVED): "it had no effect; after-checkpoint stored",
    (Phase.PLANNED, Phase.REFUSED): "the gate refused its only effects",
    (Phase.PLANNED, Phase.ABANDONED): "the process ended, or the call failed, before anything left",
    (Phase.PLANNED, Phase.NEEDS_REVIEW): "the process ended on a wire that lets held requests go",
    (Phase.DISPATCHED, Phase.ACKNOWLEDGED): "every effect is answered",
    (Phase.DISPATCHED, Phase.OBSERVED): "its last open effect was not sent; the answered ones are observed",
    (Phase.DISPATCHED, Phase.ABANDONED): "no effect left after all",
    (Phase.DISPATCHED, Phase.REFUSED): "armed, no frame followed, and the gate refused its only effects",
    (Phase.DISPATCHED, Phase.NEEDS_REVIEW): "an effect may have happened",
    (Phase.ABANDONED, Phase.DISPATCHED): "not closed yet, and a further effect may leave after one that did not",
    (Phase.ACKNOWLEDGED, Phase.DISPATCHED): "a further effect may leave",
    (Phase.ACKNOWLEDGED, Phase.OBSERVED): "a checkpoint has seen the answer: its own, or the next action's",
    (Phase.ACKNOWLEDGED, Phase.NEEDS_REVIEW): "a further effect may have happened",
    (Phase.NEEDS_REVIEW, Phase.ACKNOWLEDGED): "verdict: committed",
    (Phase.NEEDS_REVIEW, Phase.OBSERVED): "verdict: not committed, and its other effects are observed",
    (Phase.NEEDS_REVIEW, Phase.ABANDONED): "verdict: not committed",
    (Phase.NEEDS_REVIEW, Phase.DISPATCHED): "one doubt settled, another effect still unanswered",
}

EFFECT_STEPS: Mapping[tuple[Phase | None, Phase], str] = {
    (None, Phase.DISPATCHED): "durable before the request may leave",
    (None, Phase.REFUSED): "the gate refused it; it never leaves",
    (Phase.DISPATCHED, Phase.ACKNOWLEDGED): "status and external request id, before the page sees them",
    (Phase.DISPATCHED, Phase.ABANDONED): "proved not sent",
    (Phase.DISPATCHED, Phase.NEEDS_REVIEW): "no answer: the process ended, or the connection broke",
    (Phase.ACKNOWLEDGED, Phase.OBSERVED): "the result that the next decision uses is stored",
    (Phase.NEEDS_REVIEW, Phase.ACKNOWLEDGED): "verdict: committed",
    (Phase.NEEDS_REVIEW, Phase.ABANDONED): "verdict: not committed",
}

RUN_STEPS: Mapping[tuple[RunPhase | None, RunPhase], str] = {
    (None, RunPhase.ACTIVE): "first claim",
    (RunPhase.ACTIVE, RunPhase.ACTIVE): "taken over from a dead owner, fence raised",
    (RunPhase.ACTIVE, RunPhase.FINISHED): "left without an error and without doubt",
    (RunPhase.ACTIVE, RunPhase.SUSPENDED): "left by an error, nothing in doubt",
    (RunPhase.ACTIVE, RunPhase.NEEDS_REVIEW): "left with an effect in doubt",
    (RunPhase.SUSPENDED, RunPhase.ACTIVE): "claimed again",
    (RunPhase.NEEDS_REVIEW, RunPhase.ACTIVE): "claimed again; read-only until the doubt is settled",
    (RunPhase.NEEDS_REVIEW, RunPhase.SUSPENDED): "last doubt settled while nobody owned it",
    (RunPhase.FINISHED, RunPhase.ACTIVE): "claimed again",
}

RUNTIME_STEPS: Mapping[tuple[RuntimeState | None, RuntimeState], str] = {
    (None, RuntimeState.RUNNING): "first boot",
    (RuntimeState.RUNNING, RuntimeState.RUNNING): "next boot",
    (RuntimeState.RUNNING, RuntimeState.DRAINING): "drain or hold; generation raised",
    (RuntimeState.DRAINING, RuntimeState.QUIESCED): "no obligation left; receipt written",
    (RuntimeState.QUIESCED, RuntimeState.STOPPED): "the process ended after its receipt",
    (RuntimeState.QUIESCED, RuntimeState.RUNNING): "reopened",
    (RuntimeState.STOPPED, RuntimeState.RUNNING): "reopened, or the next boot after a clean drain",
    (RuntimeState.RUNNING, RuntimeState.NEEDS_REVIEW): "state unreadable or a part failed",
    (RuntimeState.DRAINING, RuntimeState.NEEDS_REVIEW): "deadline passed, or the process was lost",
    (RuntimeState.QUIESCED, RuntimeState.NEEDS_REVIEW): "something came to light after the receipt",
    (RuntimeState.STOPPED, RuntimeState.NEEDS_REVIEW): "something came to light after the receipt",
    (RuntimeState.NEEDS_REVIEW, RuntimeState.RUNNING): "reopened by name of generation and boot",
}

STEPS_OF: Mapping[str, Mapping[tuple[StrEnum | None, StrEnum], str]] = {
    "action": ACTION_STEPS,  # type: ignore[dict-item]
    "effect": EFFECT_STEPS,  # type: ignore[dict-item]
    "run": RUN_STEPS,  # type: ignore[dict-item]
    "runtime": RUNTIME_STEPS,  # type: ignore[dict-item]
}

OPEN_PHASES = frozenset({Phase.PLANNED, Phase.DISPATCHED, Phase.ACKNOWLEDGED, Phase.NEEDS_REVIEW})
"""Phases that a restart has to look at."""

IN_DOUBT_PHASES = frozenset({Phase.DISPATCHED, Phase.NEEDS_REVIEW})
"""Phases of an effect that must not be sent again."""


def check_step(kind: str, old: StrEnum | None, new: StrEnum) -> str:
    """Return why the step is allowed.

    Args:
        kind: ``action``, ``effect``, ``run`` or ``runtime``.
        old: The phase in the ledger; ``None`` for a new record.
        new: The phase asked for.

    Raises:
        IllegalTransition: The pair is not in the table. Nothing was changed.
    """
    label = STEPS_OF[kind].get((old, new))
    if label is None:
        message = f"Nothing was changed: the {kind} table has no step {old or 'new'} -> {new}."
        raise IllegalTransition(message, facts={"kind": kind, "from": old and str(old), "to": str(new)})
    return label


def action_phase(effects: Collection[Phase], *, closed: bool) -> Phase:
    """Phase of an action, from the phases of its effects.

    Args:
        effects: The phase of each effect of the action.
        closed: Whether the after-checkpoint is stored.
    """
    # ACKNOWLEDGED: answered, and no checkpoint of the agent's has seen the answer yet.
    for unfinished in (Phase.NEEDS_REVIEW, Phase.DISPATCHED, Phase.ACKNOWLEDGED):
        if unfinished in effects:
            return unfinished
    if Phase.OBSERVED in effects:
        return Phase.OBSERVED if closed else Phase.ACKNOWLEDGED
    if Phase.ABANDONED in effects:
        return Phase.ABANDONED
    if not closed:
        return Phase.PLANNED
    return Phase.REFUSED if effects else Phase.OBSERVED
