"""Which page, and which browser context, a frame belongs to (field note 7).

Fed by the engine with ``Target`` and ``Page`` events, asked by the gate for each effect. It is a picture in memory
of what the browser said; it sends nothing and decides nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from browsermw.newest import Newest

PAGE_TYPES = frozenset({"page", "tab", "webview"})

REPEAT_LIMIT = 10_000
"""A navigation's request comes right after its announcement, unless the user's own route keeps it meanwhile."""


@dataclass
class Target:
    """One page, frame process or worker as the browser describes it.

    Attributes:
        target_id: The browser's id; for a page also the id of its main frame.
        kind: ``page``, ``iframe``, ``worker``, ``shared_worker``, ``service_worker``, ….
        context_id: The browser context.
        session: Our CDP session on it.
        opener_id: The page that opened it.
        parent_frame_id: The frame that embeds it, for ``iframe``.
        parent_id: The page, frame or worker that made it, for what is no target of its own at the browser.
        url: Address of the page, not redacted; never stored as it is.
        loader_id: The browser's id of the navigation that brought its document, once it has navigated.
        older_than_gate: It was there before the gate and has not navigated since (field note 16).
    """

    target_id: str
    kind: str
    context_id: str
    session: str
    opener_id: str | None = None
    parent_frame_id: str | None = None
    parent_id: str | None = None
    url: str = ""
    loader_id: str = ""
    older_than_gate: bool = False


@dataclass
class TargetMap:
    """All targets of one browser, and the frames of its pages."""

    targets: dict[str, Target] = field(default_factory=dict)
    by_session: dict[str, Target] = field(default_factory=dict)
    _frame_parent: dict[str, str] = field(default_factory=dict)
    _reloading: Newest[str, None] = field(default_factory=lambda: Newest(REPEAT_LIMIT))

    def attached(self, session: str, described: dict[str, Any], *, parent_session: str | None = None) -> Target:
        """Note a target that we now have a session on."""
        parent = self.by_session.get(parent_session or "")
        target = Target(
            target_id=described["targetId"],
            kind=described["type"],
            context_id=described.get("browserContextId", ""),
            session=session,
            opener_id=described.get("openerId"),
            parent_frame_id=described.get("parentFrameId"),
            parent_id=parent.target_id if parent is not None else None,
            url=described.get("url", ""),
        )
        self.targets[target.target_id] = target
        self.by_session[session] = target
        if target.parent_frame_id:
            self._frame_parent.setdefault(target.target_id, target.parent_frame_id)
        return target

    def detached(self, session: str) -> Target | None:
        """Forget a target; returns it if it was known."""
        target = self.by_session.pop(session, None)
        if target is not None and self.targets.get(target.target_id) is target:
            del self.targets[target.target_id]
            if target.kind in PAGE_TYPES:
                self._forget_frames(target.target_id)
        return target

    def _forget_frames(self, page_id: str) -> None:
        below = {page_id}
        for frame_id in self._frame_parent:
            chain = [frame_id]
            while (parent := self._frame_parent.get(chain[-1])) is not None and parent not in chain:
                chain.append(parent)
            if page_id in chain:
                below.add(frame_id)
        self._frame_parent = {frame: parent for frame, parent in self._frame_parent.items() if frame not in below}

    def frame_attached(self, frame_id: str, parent_id: str | None) -> None:
        """Note which frame embeds a frame."""
        if parent_id:
            self._frame_parent[frame_id] = parent_id

    def frame_tree(self, tree: dict[str, Any]) -> None:
        """Note a whole ``Page.getFrameTree`` answer."""
        frame = tree["frame"]
        self.frame_attached(frame["id"], frame.get("parentId"))
        for child in tree.get("childFrames", ()):
            self.frame_tree(child)

    def navigating(self, loader_id: str, navigation_type: str) -> None:
        """Note how a navigation began; a reload or a step in the history repeats an earlier request."""
        if navigation_type in {
            "reload",
            "reloadBypassingCache",
            "restore",
            "restoreWithPost",
            "historyDifferentDocument",
        }:
            self._reloading[loader_id] = None

    def is_repeat(self, loader_id: str | None) -> bool:
        """Whether that navigation is a reload or a step in the history."""
        return loader_id in self._reloading

    def page_of_frame(self, frame_id: str | None) -> Target | None:
        """The page that shows a frame, through any depth of embedding."""
        seen: set[str] = set()
        while frame_id and frame_id not in seen:
            seen.add(frame_id)
            target = self.targets.get(frame_id)
            if target is not None and target.kind in PAGE_TYPES:
                return target
            frame_id = self._frame_parent.get(frame_id)
        return None

    def page_of(self, target: Target) -> Target | None:
        """The page that a frame or a worker belongs to; none for a shared or service worker."""
        seen: set[str] = set()
        current: Target | None = target
        while current is not None and current.target_id not in seen:
            seen.add(current.target_id)
            page = self.page_of_frame(current.target_id)
            if page is not None:
                return page
            current = self.targets.get(current.parent_id or "")
        return None

    def context_of_frame(self, frame_id: str | None) -> str | None:
        """The browser context of a frame, or of the worker whose target id the browser gave instead."""
        page = self.page_of_frame(frame_id)
        if page is not None:
            return page.context_id
        target = self.targets.get(frame_id or "")
        return target.context_id if target is not None else None

    def openers(self, page: Target | None) -> tuple[Target, ...]:
        """The page, the page that opened it, and so on; empty where there is no page."""
        found: dict[str, Target] = {}
        while page is not None and page.target_id not in found:
            found[page.target_id] = page
            page = self.targets.get(page.opener_id or "")
        return tuple(found.values())

    def pages(self, context_id: str | None = None) -> list[Target]:
        """All pages, or those of one context."""
        return [
            target
            for target in self.targets.values()
            if target.kind in PAGE_TYPES and context_id in (None, target.context_id)
        ]

    def contexts(self) -> set[str]:
        """All contexts that a target is known of."""
        return {target.context_id for target in self.targets.values()}
