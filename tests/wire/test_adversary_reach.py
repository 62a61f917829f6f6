"""An effect that its page took back is never answered; the application must not stay out of reach for it."""

from __future__ import annotations

from browsermw.wire.reach import BAR_S, Reach


def test_a_bar_ends_with_the_answer_or_after_a_while() -> None:
    reach = Reach()
    reach.bar("shop.test", 443, 5.0)
    assert not reach.is_barred("shop.test", 443, 5.0)  # nothing is in doubt there
    reach.effect_released("shop.test", 443, 10.0)
    reach.bar("shop.test", 443, 20.0)
    assert reach.is_barred("shop.test", 443, 20.0)
    assert reach.is_barred("shop.test", 443, 20.0 + BAR_S - 0.1)
    assert not reach.is_barred("shop.test", 443, 20.0 + BAR_S)
    reach.bar("shop.test", 443, 60.0)
    reach.effect_answered("shop.test", 443)
    assert not reach.is_barred("shop.test", 443, 60.0)
