"""What a long run remembers is bounded, and what is used goes on being remembered."""

from __future__ import annotations

from browsermw.newest import Newest
from browsermw.wire.targets import TargetMap


def test_the_oldest_is_forgotten_and_what_is_set_again_is_new() -> None:
    newest: Newest[str, int] = Newest(2)
    for key, value in (("a", 1), ("b", 2), ("a", 3), ("c", 4)):
        newest[key] = value
    assert newest == {"a": 3, "c": 4}


def test_the_frames_of_a_page_are_forgotten_with_it_and_no_others() -> None:
    targets = TargetMap()
    for name in ("p1", "p2"):
        targets.attached(f"s-{name}", {"targetId": name, "type": "page", "browserContextId": "c"})
        targets.frame_attached(f"{name}-frame", name)
        targets.frame_attached(f"{name}-inner", f"{name}-frame")
    targets.detached("s-p1")
    assert targets.page_of_frame("p1-inner") is None
    page = targets.page_of_frame("p2-inner")
    assert page is not None
    assert page.target_id == "p2"
    assert {frame for frame in targets._frame_parent if frame.startswith("p1")} == set()


def test_a_repeat_is_known_among_thousands() -> None:
    targets = TargetMap()
    for number in range(20_000):
        targets.navigating(f"loader-{number}", "reload")
    assert targets.is_repeat("loader-19999")
    assert targets.is_repeat("loader-15000")
    assert not targets.is_repeat("loader-1")
