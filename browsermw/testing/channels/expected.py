"""What is expected of each channel on each engine; the one place to change when a channel becomes stronger.

Write-ahead is expected of every channel that has no line here.
"""

from __future__ import annotations

from browsermw.testing.channels.states import Engine, State

_A, _C, _G, _N = State.ARMED, State.CANNOT_LEAVE, State.NO_EFFECT, State.NOT_COVERED
_W = State.WRITE_AHEAD

EXCEPTIONS: dict[str, tuple[State, State, State]] = {
    # sealed, attached, routed
    "form-dialog": (_G, _G, _G),
    "event-source": (_G, _G, _G),
    "prefetch": (_G, _G, _G),
    "prerender": (_G, _G, _G),
    "streaming-body": (_C, _C, _C),
    "websocket-before": (_A, _A, _A),
    "websocket-after": (_A, _A, _A),
    "websocket-worker": (_A, _A, _N),
    "webtransport": (_C, _N, _N),
    "webrtc": (_C, _N, _N),
    # Playwright's routes do not see these (field note 1).
    "shared-worker": (_W, _W, _N),
    "beacon-at-pagehide": (_W, _W, _N),
    "keepalive-at-pagehide": (_W, _W, _N),
    "redirect-307": (_W, _W, _N),
    "redirect-308": (_W, _W, _N),
    "redirect-307-other-host": (_W, _W, _N),
    "redirect-308-other-host": (_W, _W, _N),
    # The engine blocks service workers, so that their pages cannot register one.
    "service-worker-relays": (_W, _W, _C),
    "service-worker-sends": (_W, _W, _C),
    "service-worker-sync": (_W, _W, _C),
    "service-worker-alone": (_W, _W, _C),
}


def expected(channel: str, engine: Engine) -> State:
    """What a channel's state should be on an engine."""
    row = EXCEPTIONS.get(channel)
    return State.WRITE_AHEAD if row is None else row[list(Engine).index(engine)]
