"""Which requests are effects, and which rule decides first."""

from __future__ import annotations

import json

import pytest

from browsermw.policy import METHODS, Policy
from browsermw.protocol.effect_rules import SAFE_METHODS, is_effect

URL = "https://billing.example/invoices/8472"
QUERY = json.dumps({"query": "{ me { name } }"}).encode()
MUTATION = json.dumps({"query": "mutation { pay(id: 1) { id } }"}).encode()


@pytest.mark.parametrize("method", sorted(METHODS | {"PURGE", "post", "get", ""}))
def test_everything_but_a_safe_method_is_an_effect_an_unknown_method_too(method: str) -> None:
    assert is_effect(Policy(), method, URL, "", b"") is (method not in SAFE_METHODS)


def test_a_safe_method_that_the_policy_names_is_an_effect() -> None:
    policy = Policy(effects=("GET https://billing.example/**/send",))
    assert is_effect(policy, "GET", "https://billing.example/invoices/send", "", b"")
    assert not is_effect(policy, "HEAD", "https://billing.example/invoices/send", "", b"")
    assert not is_effect(policy, "GET", "https://billing.example/invoices/read", "", b"")


def test_an_ignored_request_is_none() -> None:
    policy = Policy(ignore=("POST https://stats.example/**",))
    assert not is_effect(policy, "POST", "https://stats.example/collect", "", b"")
    assert is_effect(policy, "PUT", "https://stats.example/collect", "", b"")


def test_well_known_telemetry_is_ignored_by_default() -> None:
    assert not is_effect(Policy(), "POST", "https://www.google-analytics.com/g/collect?v=2", "", b"x")
    assert is_effect(Policy(), "POST", "https://evil.example/www.google-analytics.com/g", "", b"x")


def test_what_both_lists_name_is_an_effect() -> None:
    policy = Policy(effects=("https://billing.example/**",), ignore=("https://billing.example/**",))
    assert is_effect(policy, "POST", URL, "", b"")
    assert is_effect(policy, "GET", URL, "", b"")


@pytest.mark.parametrize(
    "content_type", ["application/json", "Application/JSON; charset=utf-8", "application/graphql+json"]
)
def test_a_graphql_query_is_a_read_and_a_mutation_is_not(content_type: str) -> None:
    assert not is_effect(Policy(), "POST", URL, content_type, QUERY)
    assert is_effect(Policy(), "POST", URL, content_type, MUTATION)


@pytest.mark.parametrize("content_type", ["", "text/plain", "application/x-www-form-urlencoded", "application/graphql"])
def test_a_query_that_does_not_say_it_is_json_is_an_effect(content_type: str) -> None:
    assert is_effect(Policy(), "POST", URL, content_type, QUERY)


def test_a_graphql_query_that_the_policy_names_is_an_effect() -> None:
    policy = Policy(effects=("POST https://billing.example/**",))
    assert is_effect(policy, "POST", URL, "application/json", QUERY)


def test_a_json_body_that_could_not_be_read_is_an_effect() -> None:
    assert is_effect(Policy(), "POST", URL, "application/json", None)
    assert is_effect(Policy(), "POST", URL, "application/json", b"")
