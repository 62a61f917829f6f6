from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from browsermw.page.request_ids import REQUEST_ID_HEADERS, external_request_id, location


def test_the_application_s_own_id_comes_before_the_proxy_s_in_any_order_and_case() -> None:
    headers = [("CF-Ray", "ray"), ("X-Correlation-ID", "corr"), ("X-Request-Id", " req "), ("Server", "x")]
    assert external_request_id(headers) == ("x-request-id", "req")
    assert external_request_id(reversed(headers)) == ("x-request-id", "req")


def test_no_known_header_is_no_id() -> None:
    assert external_request_id([("Server", "x")]) is None
    assert external_request_id([]) is None


@pytest.mark.parametrize("bad", ["", "  ", "x" * 201, "a\nb", "a\x7f", "a\u2028b"])
def test_a_value_that_cannot_be_an_id_is_passed_over(bad: str) -> None:
    assert external_request_id([("x-request-id", bad), ("cf-ray", "ray")]) == ("cf-ray", "ray")


def test_the_first_of_two_equal_headers_counts() -> None:
    assert external_request_id([("x-request-id", "1"), ("X-Request-Id", "2")]) == ("x-request-id", "1")


def test_policy_may_name_its_own_headers() -> None:
    headers = [("x-request-id", "1"), ("Order-Number", "A7")]
    assert external_request_id(headers, names=["Order-Number"]) == ("order-number", "A7")


@given(st.lists(st.tuples(st.sampled_from(REQUEST_ID_HEADERS), st.text())))
def test_what_is_found_is_always_fit_to_store(headers: list[tuple[str, str]]) -> None:
    found = external_request_id(headers)
    if found is not None:
        assert 0 < len(found[1]) <= 200
        assert found[1].isprintable()


def test_location_is_found_in_any_case() -> None:
    assert location([("LOCATION", "/orders/7")]) == "/orders/7"
    assert location([("location", "a\r\nb"), ("location", "/x")]) == "/x"
    assert location([("link", "/x")]) is None
