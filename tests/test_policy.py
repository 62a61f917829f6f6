"""The policy: where it is read from, what wins, and what it refuses by the key's path."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from browsermw.policy import METHODS, TELEMETRY, Identity, Policy, compiled_pattern, matches

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in [name for name in os.environ if name.upper().startswith("BROWSERMW_")]:
        monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def refusal(**fields: object) -> str:
    with pytest.raises(ValidationError) as refused:
        Policy(**fields)  # type: ignore[arg-type]
    return str(refused.value)


@pytest.mark.parametrize(
    ("pattern", "url", "fits"),
    [
        ("https://a.example/x", "https://a.example/x", True),
        ("https://a.example/x", "https://a.example/x?y=1", False),
        ("https://a.example/x", "https://a.example/xx", False),
        ("https://a.example/*", "https://a.example/x", True),
        ("https://a.example/*", "https://a.example/", True),
        ("https://a.example/*", "https://a.example/x/y", False),
        ("https://a.example/**", "https://a.example/x/y?z=1/2", True),
        ("**/send", "https://a.example/x/send", True),
        ("https://*.example/x", "https://a.b.example/x", True),
        ("https://*.example/x", "https://evil.com/a.example/x", False),
        ("**/{send,pay}/*", "https://a.example/pay/1", True),
        ("**/{send,pay}/*", "https://a.example/read/1", False),
        ("**/{a,{b,c}}", "https://a.example/c", True),
        ("**/{,v2/}send", "https://a.example/v2/send", True),
        ("**/a,b", "https://a.example/a,b", True),
        ("**/a,b", "https://a.example/a", False),
        ("**/a.b?c=[1]+$^|(x)", "https://a.example/a.b?c=[1]+$^|(x)", True),
        ("**/a.b", "https://a.example/axb", False),
        ("**/a?", "https://a.example/ab", False),
        ("**", "anything at all\n", True),
    ],
)
def test_a_pattern_fits_the_whole_url(pattern: str, url: str, fits: bool) -> None:
    assert matches(pattern, "POST", url) is fits
    assert matches(f"POST {pattern}", "POST", url) is fits
    assert not matches(f"PUT {pattern}", "POST", url)


@pytest.mark.parametrize("method", sorted(METHODS))
def test_a_pattern_with_a_method_fits_that_method_only(method: str) -> None:
    assert {other for other in METHODS if matches(f"{method} **", other, "https://a.example/")} == {method}
    assert matches("**", method, "https://a.example/")


@given(st.text(st.characters(exclude_characters="*{},"), max_size=20), st.text(max_size=20))
def test_a_pattern_without_signs_fits_itself_alone(text: str, other: str) -> None:
    try:
        compiled_pattern("https://" + text)
    except ValueError:
        return
    assert matches("https://" + text, "GET", "https://" + text)
    assert matches("https://" + text, "GET", "https://" + other) is (text == other)


@given(st.text(st.sampled_from("*{},a/[](|\\ \n+?.PUT"), max_size=12))
def test_a_pattern_is_read_or_refused_with_a_value_error_that_names_it(pattern: str) -> None:
    try:
        compiled_pattern(pattern)
    except ValueError as error:
        refused = str(error)
    else:
        refused = ""
        matches(pattern, "PUT", "https://a.example/")
    assert not refused or repr(pattern) in refused


BAD_PATTERNS = [
    "",
    "POST ",
    "FETCH https://a/**",
    "post https://a/**",
    "https://a b",
    "**/{a",
    "**/a}",
    "}{",
    "a\nb",
    "a\x7f",
]


@pytest.mark.parametrize("field", ["effects", "ignore"])
@pytest.mark.parametrize("pattern", BAD_PATTERNS)
def test_a_bad_pattern_is_refused_by_its_place(field: str, pattern: str) -> None:
    message = refusal(**{field: ("https://fine.example/**", pattern)})
    assert f"{field}.1" in message
    assert f"{field}.0" not in message


@pytest.mark.parametrize("pattern", BAD_PATTERNS)
def test_a_bad_pattern_as_a_key_is_refused_by_its_place(pattern: str) -> None:
    with pytest.raises(ValidationError) as refused:
        Policy(idempotency_headers={"POST https://fine.example/**": "Idempotency-Key", pattern: "Idempotency-Key"})
    assert [error["loc"] for error in refused.value.errors()] == [("idempotency_headers", pattern, "[key]")]


STATUS_KEYS = ["accepted_statuses", "rejected_statuses", "ambiguous_statuses"]


@pytest.mark.parametrize("field", STATUS_KEYS)
def test_statuses_are_refused_by_the_pattern_that_they_stand_under(field: str) -> None:
    for status in (100, 199, 600, "many"):
        message = refusal(**{field: {"POST https://fine.example/**": [201], "POST https://api.example/**": [status]}})
        assert f"{field}.`POST https://api.example/**`.0" in message
        assert "fine.example" not in message
    assert f"{field}.`FETCH https://api.example/**`" in refusal(**{field: {"FETCH https://api.example/**": [409]}})


@pytest.mark.parametrize("pattern", [*BAD_PATTERNS, "GET wss://chat.example/**"])
def test_a_pattern_for_sockets_has_no_method(pattern: str) -> None:
    assert "ignore_websockets.1" in refusal(ignore_websockets=("wss://chat.example/**", pattern))


@pytest.mark.parametrize(
    "name",
    ["", " ", "Idempotency Key", "Idempotency-Key:", "Schlüssel", "Key\n", "Host", "cookie", "Proxy-Key", "Sec-Key"],
)
def test_a_header_that_cannot_carry_a_key_is_refused_by_its_pattern(name: str) -> None:
    message = refusal(idempotency_headers={"POST https://api.example/**": name})
    assert "idempotency_headers.`POST https://api.example/**`" in message
    assert repr(name) in message


@pytest.mark.parametrize("selector", ["", "  ", "#a\x00", "#a\nb", "x" * 2001])
def test_a_bad_selector_is_refused_by_its_place(selector: str) -> None:
    assert "ignore_selectors.0" in refusal(ignore_selectors=(selector,))
    assert "identity.selector" in refusal(identity={"selector": selector})


@pytest.mark.parametrize("fields", [{}, {"cookie": "sid", "selector": "#user"}])
def test_an_identity_is_told_in_exactly_one_way(fields: dict[str, str]) -> None:
    assert "exactly one of cookie and selector" in refusal(identity=fields)
    assert "identity" in refusal(identity=fields)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("settle_s", -1), ("settle_s", 601), ("probe_timeout_s", 0), ("probe_timeout_s", 61), ("lease_s", 1),
        ("lease_s", float("nan")), ("attach_timeout_s", "soon"), ("unowned", "maybe"), ("minimum_wire", "strong"),
        ("volatile_fields", [""]), ("max_body_bytes", -1), ("max_body_bytes", 1.5),
    ],
)  # fmt: skip
def test_a_value_out_of_its_range_is_refused_by_its_key(field: str, value: object) -> None:
    assert field in refusal(**{field: value})


def test_the_defaults_are_the_careful_ones() -> None:
    policy = Policy()
    assert (policy.unowned, policy.minimum_wire, policy.identity) == ("refuse", "sealed", None)
    assert policy.ignore == TELEMETRY
    assert policy.effects == ()


def test_a_policy_is_frozen() -> None:
    policy = Policy(identity=Identity(cookie="sid"))
    with pytest.raises(ValidationError, match="frozen"):
        policy.unowned = "allow"  # type: ignore[misc]
    assert policy.identity is not None
    with pytest.raises(ValidationError, match="frozen"):
        policy.identity.cookie = "other"  # type: ignore[misc]


def test_volatile_names_are_kept_in_lower_case() -> None:
    assert Policy(volatile_fields=frozenset({"CSRFToken", "ts"})).volatile_fields == {"csrftoken", "ts"}


def test_arguments_win_over_the_environment_and_that_over_the_file(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "browsermw.toml").write_text("settle_s = 1\nlease_s = 11\nprobe_timeout_s = 21\n", "utf-8")
    monkeypatch.setenv("BROWSERMW_SETTLE_S", "2")
    monkeypatch.setenv("BROWSERMW_LEASE_S", "12")
    policy = Policy(settle_s=3)
    assert (policy.settle_s, policy.lease_s, policy.probe_timeout_s) == (3, 12, 21)
    assert policy.attach_timeout_s == 15


def test_an_identity_is_taken_whole_from_the_source_that_wins(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "browsermw.toml").write_text('[identity]\nselector = "#user"\n', "utf-8")
    monkeypatch.setenv("BROWSERMW_IDENTITY__COOKIE", "sid")
    assert Policy().identity == Identity(cookie="sid")
    assert Policy(identity=Identity(selector="#name")).identity == Identity(selector="#name")
    assert Policy.model_validate({"identity": {"selector": "#name"}}).identity == Identity(selector="#name")


def test_the_file_has_plain_keys(folder: Path) -> None:
    (folder / "browsermw.toml").write_text(
        'effects = ["GET **/send"]\nignore = []\nvolatile_fields = ["Stamp"]\n[identity]\nselector = "#user"\n', "utf-8"
    )
    policy = Policy()
    assert policy.effects == ("GET **/send",)
    assert policy.ignore == ()
    assert policy.volatile_fields == {"stamp"}
    assert policy.identity == Identity(selector="#user")


def test_patterns_with_values_are_a_table_in_the_file_and_json_in_the_environment(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = {"POST https://api.example/**": "Idempotency-Key"}
    (folder / "browsermw.toml").write_text(
        '[idempotency_headers]\n"POST https://api.example/**" = "Idempotency-Key"\n', "utf-8"
    )
    assert Policy().idempotency_headers == asked
    monkeypatch.setenv("BROWSERMW_IDEMPOTENCY_HEADERS", '{"POST https://api.example/**": "X-Key"}')
    assert Policy().idempotency_headers == {"POST https://api.example/**": "X-Key"}


def test_the_environment_takes_lists_as_json_and_parts_by_two_underscores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BROWSERMW_IGNORE", '["POST https://stats.example/**"]')
    monkeypatch.setenv("BROWSERMW_IDENTITY__COOKIE", "sid")
    policy = Policy()
    assert policy.ignore == ("POST https://stats.example/**",)
    assert policy.identity == Identity(cookie="sid")


def test_a_bad_pattern_in_the_environment_is_refused_by_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BROWSERMW_IGNORE", '["FETCH https://a/**"]')
    assert "ignore.0" in refusal()


def test_a_bad_pattern_in_the_file_is_refused_by_its_place(folder: Path) -> None:
    (folder / "browsermw.toml").write_text('ignore = ["**/{a"]\n', "utf-8")
    assert "ignore.0" in refusal()


@pytest.mark.parametrize(
    ("text", "path"), [('ignored = ["**"]', "ignored"), ('[identity]\ncookies = "x"', "identity.cookies")]
)
def test_a_key_that_the_policy_does_not_have_is_refused_by_name(folder: Path, text: str, path: str) -> None:
    (folder / "browsermw.toml").write_text(text, "utf-8")
    assert path in refusal()


def test_an_argument_that_the_policy_does_not_have_is_refused_by_name() -> None:
    assert "ignored" in refusal(ignored=())


def test_other_variables_of_browsermw_are_none_of_the_policys_business(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("LEDGER", "BROWSER", "SOMETHING_ELSE", "IGNORED"):
        monkeypatch.setenv(f"BROWSERMW_{name}", "x")
    assert Policy() == Policy(unowned="refuse")


@pytest.mark.parametrize("content", [b"ignore = [", b"\xff\xfe"])
def test_a_file_that_cannot_be_read_is_named(folder: Path, content: bytes) -> None:
    path = folder / "browsermw.toml"
    path.write_bytes(content)
    with pytest.raises(ValueError, match="cannot be read as TOML") as refused:
        Policy()
    assert str(path) in str(refused.value)
