"""Requests that look like a GraphQL read and may be something else."""

from __future__ import annotations

import pytest

from browsermw.policy import Policy
from browsermw.protocol.effect_rules import is_effect

READ = b'{"query": "query { orders { id } }"}'


@pytest.mark.parametrize(
    ("method", "url", "expected"),
    [
        ("POST", "https://shop.test/graphql", False),
        ("POST", "https://shop.test/graphql?page=2", False),
        ("DELETE", "https://shop.test/orders/1", True),
        ("PUT", "https://shop.test/saved-search", True),
        ("POST", "https://shop.test/graphql?query=mutation%7Bpay%7D", True),
        ("POST", "https://shop.test/graphql?a=1&operationName=Pay", True),
    ],
)
def test_only_a_post_whose_url_says_nothing_else_is_a_read(method: str, url: str, expected: bool) -> None:
    assert is_effect(Policy(), method, url, "application/json", READ) is expected
