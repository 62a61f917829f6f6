"""What a page's scripts have begun is waited for until its request is at the gate, and no longer."""

from __future__ import annotations

import pytest

from browsermw.wire.begun import Begun
from browsermw.wire.targets import TargetMap

PAGE, POPUP, FRAME = "page-1", "page-2", "frame-1"


@pytest.fixture
def targets() -> TargetMap:
    targets = TargetMap()
    targets.attached("s-1", {"targetId": PAGE, "type": "page"})
    targets.frame_attached(FRAME, PAGE)
    return targets


def asked(reason: str, disposition: str = "currentTab", frame: str = PAGE) -> dict[str, str]:
    return {"frameId": frame, "reason": reason, "disposition": disposition, "url": "http://shop.test/order"}


@pytest.mark.parametrize("frame", [PAGE, FRAME])
def test_a_submitted_form_is_on_the_way_until_it_is_at_the_gate(targets: TargetMap, frame: str) -> None:
    begun = Begun(targets)
    begun.page_event("frameRequestedNavigation", asked("formSubmissionPost", frame=frame), "s-1")
    assert begun.on_the_way(PAGE)
    begun.at_the_gate(frame)
    assert not begun.on_the_way(PAGE)


@pytest.mark.parametrize(("reason", "disposition"), [("anchorClick", "currentTab"), ("formSubmissionPost", "newTab")])
def test_what_sends_no_effect_or_sends_it_elsewhere_is_not_waited_for(
    targets: TargetMap, reason: str, disposition: str
) -> None:
    begun = Begun(targets)
    begun.page_event("frameRequestedNavigation", asked(reason, disposition), "s-1")
    assert not begun.on_the_way(PAGE)


def test_a_frame_that_is_gone_is_not_waited_for(targets: TargetMap) -> None:
    begun = Begun(targets)
    begun.page_event("frameRequestedNavigation", asked("formSubmissionPost", frame=FRAME), "s-1")
    begun.page_event("frameDetached", {"frameId": FRAME}, "s-1")
    assert not begun.on_the_way(PAGE)


def test_a_page_that_is_opened_is_on_the_way_until_its_request_is_at_the_gate(targets: TargetMap) -> None:
    begun = Begun(targets)
    begun.page_event("windowOpen", {"url": "https://shop.test/form"}, "s-1")
    assert begun.on_the_way(PAGE)
    targets.attached("s-2", {"targetId": POPUP, "type": "page", "openerId": PAGE})
    begun.at_the_gate(POPUP)
    assert not begun.on_the_way(PAGE)


@pytest.mark.parametrize("url", ["", "about:blank", "blob:http://shop.test/1", "mailto:a@b.test"])
def test_a_page_that_is_opened_without_a_request_is_not_waited_for(targets: TargetMap, url: str) -> None:
    begun = Begun(targets)
    begun.page_event("windowOpen", {"url": url}, "s-1")
    assert not begun.on_the_way(PAGE)


def test_a_page_navigates_from_the_start_of_a_navigation_to_its_arrival(targets: TargetMap) -> None:
    begun = Begun(targets)
    begun.page_event("frameStartedNavigating", {"frameId": PAGE, "navigationType": "sameDocument"}, "s-1")
    assert not begun.is_navigating(PAGE)
    begun.page_event("frameStartedNavigating", {"frameId": PAGE, "navigationType": "differentDocument"}, "s-1")
    assert begun.is_navigating(PAGE)
    begun.page_event("frameNavigated", {"frame": {"id": PAGE}}, "s-1")
    assert not begun.is_navigating(PAGE)
