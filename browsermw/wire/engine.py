"""What desk, scopes and sight know of an engine, whichever it is: its wire, its pages, and how to look at them.

``wire.chromium`` and ``wire.routed`` fill it in. It decides nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from browsermw.protocol.recovery import Wire
    from browsermw.wire.sockets import Socket
    from browsermw.wire.targets import TargetMap


class Engine(Protocol):
    """What stands before a context.

    Attributes:
        wire: How strongly it guards.
        targets: What is known of its pages.
    """

    wire: Wire
    targets: TargetMap

    @property
    def gate_is_gone(self) -> bool:
        """Whether requests can leave unrecorded, because the gate was lost and no relay stands behind it."""

    def sockets_beside(self, page_id: str) -> list[Socket]:
        """Open WebSockets that a click on a page may send on unheld."""

    async def flushed(self, target_ids: set[str]) -> None:
        """Wait until the events of what those pages and workers have done so far are here; not for long."""

    async def evaluate(self, target_id: str, expression: str, *, repeated: str) -> object:
        """Evaluate an expression on a page's main frame; ``CdpError`` where that cannot be done."""

    async def cookies(self, target_id: str) -> list[dict[str, Any]]:
        """Cookies that the page's URL would be sent; ``CdpError`` where they cannot be read."""

    async def caught_up(self, target_id: str, *, turned: bool = False) -> None:
        """Wait until the navigations that a page's scripts have begun are at the gate."""

    def context_closed(self, context_id: str) -> None:
        """A context was closed in order: the browser has dropped what it held of it, and nothing of it may leave."""

    def reached_by(self, effect_id: str) -> bool | None:
        """Whether anything can have gone where a released effect went, since then; ``None`` where nobody can know."""

    def reached(self, host: str, port: int, *, since: float) -> bool | None:
        """Whether a connection was had there since that loop time; ``None`` where nobody can know."""
