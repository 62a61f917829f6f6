"""Navigations that a page's scripts have begun and whose request is not at the gate yet.

``form.submit()`` and ``window.open()`` return before their request exists; the browser announces them beforehand. The
engine feeds this with ``Page`` events and asks it before an action is closed, so that what a call set off still
counts as the call's. A picture in memory; it sends nothing and waits for nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from browsermw.wire.targets import TargetMap

SENDING_REASONS = frozenset({"formSubmissionPost", "reload"})
"""Navigations that a script or a click may begin and whose request may be an effect."""

WITHIN_THE_DOCUMENT = frozenset({"sameDocument", "historySameDocument"})


class Begun:
    """What the pages of one browser have begun.

    Args:
        targets: What is known of its pages.
    """

    def __init__(self, targets: TargetMap) -> None:
        self._targets = targets
        self._asked: set[str] = set()
        self._opening: set[str] = set()
        self._navigating: set[str] = set()

    def page_event(self, name: str, params: dict[str, Any], session: str | None) -> None:
        """Take a ``Page`` event; other events are passed over.

        Args:
            name: Without its domain.
            params: Its parameters.
            session: Whose it is.
        """
        if name == "frameRequestedNavigation":
            if params["reason"] in SENDING_REASONS and params["disposition"] == "currentTab":
                self._asked.add(params["frameId"])
        elif name == "frameStartedNavigating":
            if params["navigationType"] not in WITHIN_THE_DOCUMENT:
                self._navigating.add(params["frameId"])
        elif name == "windowOpen":
            opener = self._targets.by_session.get(session or "")
            if opener is not None and params["url"].startswith(("http:", "https:")):
                self._opening.add(opener.target_id)
        elif name in {"frameStoppedLoading", "frameDetached"}:
            self.arrived(params["frameId"])
        elif name == "frameNavigated":
            self.arrived(params["frame"]["id"])

    def arrived(self, frame_id: str) -> None:
        """A frame is where it was going, or gone."""
        self._navigating.discard(frame_id)
        self._asked.discard(frame_id)

    def at_the_gate(self, frame_id: str) -> None:
        """The request of a frame's navigation is held."""
        self._asked.discard(frame_id)
        page = self._targets.page_of_frame(frame_id)
        if page is not None and page.opener_id is not None:
            self._opening.discard(page.opener_id)

    def waits_no_more(self, target_id: str) -> None:
        """A page that was opened and asked for nothing is not waited for again."""
        self._opening.discard(target_id)

    def is_navigating(self, target_id: str) -> bool:
        """Whether the page itself is on its way to another document."""
        return target_id in self._navigating

    def on_the_way(self, target_id: str) -> bool:
        """Whether a navigation of the page, of its frames or of a page that it opens is not at the gate yet."""
        pages = (self._targets.page_of_frame(frame_id) for frame_id in self._asked)
        return target_id in self._opening or any(page is not None and page.target_id == target_id for page in pages)
