"""What each status and each network error says about an effect."""

from __future__ import annotations

import pytest

from browsermw.policy import Policy
from browsermw.protocol.outcome import (
    NEVER_CONNECTED_ERRORS,
    Outcome,
    outcome_of_answer,
    outcome_of_error,
    outcome_of_status,
)

URL = "https://api.example/orders?id=1"


@pytest.mark.parametrize("status", range(100, 600))
def test_every_status_has_the_outcome_that_the_design_gives_it(status: int) -> None:
    expected = {1: Outcome.AMBIGUOUS, 2: Outcome.ACCEPTED, 3: Outcome.ACCEPTED, 4: Outcome.REJECTED}
    if status in {408, 409, 425, 429}:
        assert outcome_of_status(status) is Outcome.AMBIGUOUS
    else:
        assert outcome_of_status(status) is expected.get(status // 100, Outcome.AMBIGUOUS)


@pytest.mark.parametrize(
    ("method", "url", "status", "outcome"),
    [
        ("POST", URL, 409, Outcome.ACCEPTED),
        ("PUT", URL, 409, Outcome.AMBIGUOUS),
        ("POST", "https://other.example/orders", 409, Outcome.AMBIGUOUS),
        ("POST", URL, 429, Outcome.REJECTED),
        ("POST", URL, 202, Outcome.AMBIGUOUS),
        ("POST", URL, 503, Outcome.AMBIGUOUS),
        ("POST", URL, 200, Outcome.ACCEPTED),
        ("POST", URL, 404, Outcome.AMBIGUOUS),
    ],
)
def test_policy_says_what_a_status_means_at_a_url_and_two_words_on_one_are_none(
    method: str, url: str, status: int, outcome: Outcome
) -> None:
    policy = Policy(
        accepted_statuses={"POST https://api.example/**": frozenset({409, 404})},
        rejected_statuses={"**/elsewhere": frozenset({200}), "https://api.example/orders?**": frozenset({429, 404})},
        ambiguous_statuses={"https://api.example/**": frozenset({202})},
    )
    assert outcome_of_answer(policy, method, url, status) is outcome


@pytest.mark.parametrize("status", [0, 99, 600, 999])
def test_a_status_that_no_standard_knows_proves_nothing(status: int) -> None:
    assert outcome_of_status(status) is Outcome.AMBIGUOUS


@pytest.mark.parametrize("reason", [*sorted(NEVER_CONNECTED_ERRORS), "Failed", "ERR_CONNECTION_RESET", ""])
def test_a_relay_that_never_reached_the_host_proves_that_nothing_was_sent(reason: str) -> None:
    assert outcome_of_error(reason, reached=False) is Outcome.NOT_SENT


@pytest.mark.parametrize("reason", [*sorted(NEVER_CONNECTED_ERRORS), "Failed", "ERR_CONNECTION_RESET", ""])
def test_once_the_relay_had_a_connection_no_error_text_proves_anything(reason: str) -> None:
    assert outcome_of_error(reason, reached=True) is Outcome.UNKNOWN


WEBKIT_ON_LINUX = "Error resolving “shop.invalid”: Name or service not known"


@pytest.mark.parametrize("reason", [*sorted(NEVER_CONNECTED_ERRORS), WEBKIT_ON_LINUX])
def test_without_a_relay_an_error_before_the_first_byte_proves_that_nothing_was_sent(reason: str) -> None:
    assert outcome_of_error(reason, reached=None) is Outcome.NOT_SENT
    assert outcome_of_error(f"net::{reason}", reached=None) is Outcome.NOT_SENT


@pytest.mark.parametrize(
    "reason",
    [
        "Aborted", "Failed", "TimedOut", "ConnectionClosed", "ConnectionReset", "ConnectionAborted", "ConnectionFailed",
        "ERR_ABORTED", "ERR_FAILED", "ERR_TIMED_OUT", "ERR_CONNECTION_RESET", "ERR_CONNECTION_CLOSED",
        "ERR_EMPTY_RESPONSE", "ERR_NETWORK_CHANGED", "ERR_HTTP2_PROTOCOL_ERROR", "ERR_SOMETHING_NEW", "",
        "NS_ERROR_CONNECTION_REFUSED", "NS_ERROR_NET_RESET", "NS_BINDING_ABORTED", "NS_ERROR_NET_TIMEOUT",
        "SSL_ERROR_UNKNOWN", "cancelled", "Load request cancelled", "The network connection was lost.",
        "after a redirect: net::ERR_NAME_NOT_RESOLVED",
    ],
)  # fmt: skip
def test_without_a_relay_every_other_error_leaves_the_outcome_unknown(reason: str) -> None:
    assert outcome_of_error(reason, reached=None) is Outcome.UNKNOWN
    assert outcome_of_error(f"net::{reason}", reached=None) is Outcome.UNKNOWN


@pytest.mark.parametrize(
    "reason",
    [
        "ERR_CONNECTION_REFUSED", "ConnectionRefused", "ERR_SSL_PROTOCOL_ERROR", "ERR_ADDRESS_UNREACHABLE",
        "AddressUnreachable", "ERR_INTERNET_DISCONNECTED", "InternetDisconnected", "ERR_BLOCKED_BY_CLIENT",
    ],
)  # fmt: skip
def test_what_may_be_the_error_of_chromiums_own_second_try_proves_nothing_without_a_relay(reason: str) -> None:
    """Measured: a server that reads a POST on a kept-alive connection and dies gives ERR_CONNECTION_REFUSED."""
    assert outcome_of_error(reason, reached=None) is Outcome.UNKNOWN
    assert outcome_of_error(reason, reached=False) is Outcome.NOT_SENT
