"""What a failure's text may bring into the ledger."""

from __future__ import annotations

import pytest
from playwright.sync_api import Error

from browsermw.hooks.journal import in_words


@pytest.mark.parametrize(
    "text",
    [
        "Page.goto: net::ERR_CONNECTION_REFUSED at http://shop.test/reset?token=s3cret\nCall log:",
        'Navigation to "https://ann:s3cret@shop.test/" is interrupted by another navigation to "about:blank"',
        "Page.evaluate: Error: cannot read wss://shop.test/live?key=s3cret#s3cret",
    ],
)
def test_urls_are_redacted(text: str) -> None:
    words = in_words(Error(text))
    assert "s3cret" not in words
    assert "shop.test" in words


def test_what_no_database_can_hold_is_left_out() -> None:
    assert in_words(Error("Page.click: \ud800 and \0 in a selector")) == "Error: Page.click: ? and  in a selector"
