"""What the relay knows about each target: was it reached, how did dials fail, which effects are unanswered.

The runtime asks this to tell "nothing was sent" from "the outcome is unknown", because behind a relay every
connection error looks the same to the browser. Filled by `tunnel`, asked through `Relay`. It must never
forget a target: a connection that is forgotten would read as one that never was.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

BAR_S: Final = 30.0
"""How long `Reach.bar` holds. Chromium sends again within milliseconds or not at all, and an effect that its page took
back is never answered, so that a bar without an end would cut the agent off from its application."""


@dataclass
class _Record:
    last_reached_at: float = float("-inf")
    last_failure_at: float = float("-inf")
    last_failure: str = ""
    effect_count: int = 0
    doubt_since: float = float("inf")
    barred_until: float = float("-inf")


@dataclass
class Reach:
    """One record per host and port; moments are on the clock of the loop."""

    _records: dict[tuple[str, int], _Record] = field(default_factory=dict)

    def _of(self, host: str, port: int) -> _Record:
        # The gate names hosts as URLs do, with brackets; SOCKS does without.
        return self._records.setdefault((host.strip("[]").lower(), port), _Record())

    def touched(self, host: str, port: int, at: float) -> None:
        """A connection carried there what may be a request of the browser's, or a part of one."""
        self._of(host, port).last_reached_at = at

    def failed(self, host: str, port: int, kind: str, at: float) -> None:
        """A dial came to nothing."""
        record = self._of(host, port)
        record.last_failure, record.last_failure_at = kind, at

    def reached(self, host: str, port: int, since: float) -> bool:
        """Whether a request can have gone there since."""
        return self._of(host, port).last_reached_at >= since

    def failure(self, host: str, port: int, since: float) -> str | None:
        """How the last dial failed, if one did since."""
        record = self._of(host, port)
        return record.last_failure if record.last_failure_at >= since else None

    def effect_count(self, host: str, port: int) -> int:
        """Effects released to this target and not yet answered."""
        return self._of(host, port).effect_count

    def effect_released(self, host: str, port: int, at: float) -> None:
        """The gate is about to let an effect go to this target."""
        record = self._of(host, port)
        record.effect_count += 1
        record.doubt_since = min(record.doubt_since, at)

    def effect_answered(self, host: str, port: int) -> None:
        """An effect got its answer, or its failure is written down."""
        record = self._of(host, port)
        record.effect_count = max(0, record.effect_count - 1)
        if record.effect_count == 0:
            record.doubt_since = float("inf")
            record.barred_until = float("-inf")

    def bar(self, host: str, port: int, at: float) -> None:
        """Let no new connection go there until its effects are answered: it may carry one of them again."""
        record = self._of(host, port)
        if record.effect_count:
            record.barred_until = at + BAR_S

    def is_barred(self, host: str, port: int, at: float) -> bool:
        """Whether `bar` holds at that moment."""
        return at < self._of(host, port).barred_until

    def doubt_since(self, host: str, port: int) -> float | None:
        """Since when there has been at least one unanswered effect; None for none."""
        record = self._of(host, port)
        return record.doubt_since if record.effect_count else None
