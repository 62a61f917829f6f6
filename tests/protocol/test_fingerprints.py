"""Fingerprints: the same for the same submission, another one for any other, and never an error."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from browsermw.policy import Policy
from browsermw.protocol.fingerprints import fingerprint

URL = "https://billing.example/send"
FORM = "application/x-www-form-urlencoded"
JSON = "application/json"
VOLATILE = Policy().volatile_fields


def of(body: bytes | None = b"", kind: str = "", url: str = URL, method: str = "POST", unique: str = "effect-1") -> str:
    return fingerprint(method, url, kind, body, volatile=VOLATILE, unique=unique)


def of_json(document: object) -> str:
    return of(json.dumps(document).encode(), JSON)


def test_a_fingerprint_names_its_version_and_is_the_same_in_every_version_of_browsermw() -> None:
    assert re.fullmatch("fp1:[0-9a-f]{32}", of())
    assert of(b'{"to": "a@b.example"}', JSON) == "fp1:d0eb3f8adfc1380b32d4ea8949599221"


def test_method_host_path_and_query_count_and_the_fragment_does_not() -> None:
    urls = [URL, URL + "?to=1", URL + "?to=2", URL + "/", "https://other.example/send", "http://billing.example/send"]
    assert len({of(url=url) for url in urls} | {of(method="PUT")}) == len(urls) + 1
    assert of(url=URL + "#top") == of()
    assert of(url="HTTPS://user:secret@BILLING.example/send") == of()
    assert of(method="post") == of()


def test_the_order_of_the_querys_fields_and_volatile_ones_do_not_count() -> None:
    assert of(url=URL + "?a=1&b=2&csrf_token=x") == of(url=URL + "?b=2&_ts=99&a=1")
    assert of(url=URL + "?a=1&b=2") != of(url=URL + "?a=2&b=1")
    assert of(url=URL + "?a=1") != of(url=URL + "?a=1&a=1")


def test_the_order_of_form_fields_and_volatile_ones_do_not_count() -> None:
    assert of(b"to=a%40b&sum=5&CSRF_Token=x", FORM) == of(b"sum=5&csrf_token=y&to=a%40b", FORM + "; charset=UTF-8")
    assert of(b"invoice[sum]=5&invoice[_token]=x", FORM) == of(b"invoice%5B_token%5D=y&invoice[sum]=5", FORM)
    assert of(b"a=1&invoice[by][nonce]=x", FORM) == of(b"a=1", FORM) != of(b"a=1&invoice[nonce][by]=x", FORM)
    assert of(b"to=a&sum=5", FORM) != of(b"to=a&sum=6", FORM)
    assert of(b"to=a&sum=", FORM) != of(b"to=a", FORM)


def test_a_list_in_another_order_is_another_submission() -> None:
    assert of(b"step=1&step=2", FORM) != of(b"step=2&step=1", FORM)
    assert of_json([1, 2]) != of_json([2, 1])


def test_json_keys_may_come_in_any_order_and_volatile_ones_do_not_count_at_any_depth() -> None:
    left = {"to": "a", "lines": [{"sum": 5, "nonce": "x"}], "meta": {"CSRF": "1", "by": {"timestamp": 1}}}
    right = {"meta": {"by": {}}, "lines": [{"sum": 5, "nonce": "y"}], "to": "a", "_token": "z"}
    assert of_json(left) == of_json(right)
    assert of(json.dumps(left, indent=3).encode(), JSON) == of(json.dumps(left).encode(), "")
    assert of_json(left) != of_json({**left, "to": "b"})


@pytest.mark.parametrize("changed", [1, 1.5, "1", True, None, [1], {"a": 1}, "", [], {}])
def test_a_json_value_of_another_type_is_another_submission(changed: object) -> None:
    others = [1, 1.5, "1", True, None, [1], {"a": 1}, "", [], {}]
    same = [other for other in others if of_json({"sum": other}) == of_json({"sum": changed})]
    assert [(type(other), other) for other in same] == [(type(changed), changed)]


Part = tuple[str, str, bytes]


def multipart(parts: list[Part], boundary: str) -> tuple[bytes, str]:
    edge = f"--{boundary}".encode()
    texts = [
        edge + f'\r\nContent-Disposition: form-data; name="{name}"{more}\r\n\r\n'.encode() + content + b"\r\n"
        for name, more, content in parts
    ]
    return b"".join(texts) + edge + b"--\r\n", f"multipart/form-data; boundary={boundary}"


def of_parts(parts: list[Part], boundary: str = "----WebKitFormBoundaryAbC") -> str:
    return of(*multipart(parts, boundary))


FILE = '; filename="a.pdf"\r\nContent-Type: application/pdf'
PARTS: list[Part] = [("to", "", b"a"), ("note", "", b""), ("file", FILE, b"%PDF\r\n--x\r\n\x00\xff\r\n")]


def test_multipart_with_another_boundary_or_order_or_token_is_the_same_submission() -> None:
    assert of_parts(PARTS, "one") == of_parts(PARTS, "----WebKitFormBoundaryZ9")
    assert of_parts(PARTS, "it's,a:b=c?") == of_parts(PARTS, "one")
    assert of_parts(PARTS[::-1]) == of_parts(PARTS)
    assert of_parts([*PARTS, ("csrf_token", "", b"x")]) == of_parts([("order[_token]", "", b"y"), *PARTS])
    body, kind = multipart(PARTS, "one")
    assert of(body, kind.replace("=one", '="one"; charset=utf-8')) == of(body, kind)


def test_a_file_that_holds_the_boundary_in_mid_line_is_read_to_its_end() -> None:
    left: list[Part] = [("file", FILE, b"x--one--\r\nleft")]
    right: list[Part] = [("file", FILE, b"x--one--\r\nright")]
    assert of_parts(left, "one") == of_parts(left, "two") != of_parts(right, "one")


@pytest.mark.parametrize(
    "changed",
    [
        ("file", FILE, PARTS[2][2] + b"\n"),
        ("file", FILE, PARTS[2][2] + b"\r\n"),
        ("file", FILE, PARTS[2][2][:-2]),
        ("file", FILE, b"\n" + PARTS[2][2]),
        ("file", FILE, PARTS[2][2].replace(b"\x00", b"\x01")),
        ("file", FILE.replace("a.pdf", "b.pdf"), PARTS[2][2]),
        ("file", FILE.replace("/pdf", "/zip"), PARTS[2][2]),
        ("files", FILE, PARTS[2][2]),
    ],
)
def test_a_changed_file_part_is_another_submission(changed: Part) -> None:
    assert of_parts([*PARTS[:2], changed]) != of_parts(PARTS)


def test_files_under_one_name_in_another_order_are_another_submission() -> None:
    files: list[Part] = [("file", FILE, b"1"), ("file", FILE, b"2")]
    assert of_parts(files) != of_parts(files[::-1])
    assert of_parts(files) != of_parts(files[:1])


def broken_multiparts() -> dict[str, tuple[bytes, str]]:
    body, kind = multipart(PARTS, "one")
    return {
        "no boundary": (body, "multipart/form-data"),
        "other boundary": (body, "multipart/form-data; boundary=two"),
        "cut short": (body[:-8], kind),
        "nameless part": (body.replace(b'name="to"', b""), kind),
        "not multipart": (b"to=a", kind),
    }


NOT_UNDERSTOOD = {
    "unread": (None, FORM),
    "unread, no type": (None, ""),
    "protobuf": (b"\x08\x96\x01", "application/x-protobuf"),
    "no type": (b"\x00\x01", ""),
    "broken JSON": (b'{"a": ', JSON),
    "no UTF-8 in JSON": (b'{"a": "\xff"}', JSON),
    "JSON too deep": (b"[" * 200_000 + b"]" * 200_000, JSON),
    "JSON number too long": (b"9" * 10_000, JSON),
    "too many form fields": (b"a&" * 100_001, FORM),
    **broken_multiparts(),
}


@pytest.mark.parametrize(("body", "kind"), NOT_UNDERSTOOD.values(), ids=NOT_UNDERSTOOD)
def test_a_body_that_is_not_understood_equals_none_but_itself(body: bytes | None, kind: str) -> None:
    assert of(body, kind, unique="effect-1") != of(body, kind, unique="effect-2")
    assert of(body, kind, unique="effect-1") == of(body, kind, unique="effect-1")
    assert of(body, kind) != of(b"", kind)


UNDERSTOOD = {
    "empty": (b"", ""),
    "form": (b"a=1", FORM),
    "form without UTF-8": (b"a=%ff\xfe", FORM),
    "JSON": (b"{}", JSON),
    "JSON with a lone surrogate": (rb'{"a": "\ud800"}', JSON),
    "text": (b"hello", "text/plain;charset=UTF-8"),
    "XML": (b"<a/>", "application/soap+xml"),
    "multipart": multipart(PARTS, "one"),
}


@pytest.mark.parametrize(("body", "kind"), UNDERSTOOD.values(), ids=UNDERSTOOD)
def test_a_body_that_is_understood_goes_by_its_content_alone(body: bytes, kind: str) -> None:
    assert of(body, kind, unique="effect-1") == of(body, kind, unique="effect-2")


def test_bodies_of_different_kinds_never_meet() -> None:
    prints = [of(body, kind) for body, kind in UNDERSTOOD.values()]
    assert len(set(prints)) == len(prints)


@pytest.mark.parametrize(
    "url",
    [
        "http://[bad/",
        "http://a:port/",
        "//",
        "",
        "about:blank",
        "blob:https://a/\ud800?\ud800=1",
        "http://a/?" + "a&" * 100_001,
    ],
)
def test_a_url_that_is_none_has_a_fingerprint_of_its_own(url: str) -> None:
    assert of(url=url) == of(url=url + "#fragment") != of(url="x" + url)


kinds = st.sampled_from(
    [FORM, JSON, "", "text/plain", "multipart/form-data; boundary=one", "multipart/form-data; boundary=\ud800", "a;b=,"]
)
json_values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5)),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=5), inner, max_size=3)),
    max_leaves=8,
)
crumbs = st.lists(
    st.sampled_from([b"--one", b"--", b"\r\n", b'name="a"', b"\r\n\r\n", b"=", b"&", b"%f", b"\xff", b"[", b'"', b"1"])
).map(b"".join)


@given(
    st.one_of(st.none(), st.binary(), crumbs), st.one_of(kinds, st.text(max_size=20)), st.text(), st.text(max_size=5)
)
def test_no_request_makes_it_raise(body: bytes | None, kind: str, url: str, method: str) -> None:
    for tried in (url, "https://a/" + url, "https://a/?" + url, "https://[" + url):
        assert re.fullmatch("fp1:[0-9a-f]{32}", of(body, kind, tried, method))


@given(
    st.lists(st.tuples(st.text(max_size=4), st.text(max_size=4)), max_size=5).flatmap(
        lambda pairs: st.tuples(st.just(pairs), st.permutations(pairs))
    )
)
def test_multipart_parts_under_different_names_may_come_in_any_order(
    both: tuple[list[tuple[str, str]], list[tuple[str, str]]],
) -> None:
    def parts(pairs: list[tuple[str, str]]) -> list[Part]:
        fields = dict(sorted(pairs))
        order = list(dict.fromkeys(name for name, _ in pairs))
        return [
            (f"f{name.encode('utf-8', 'surrogatepass').hex()}", "", fields[name].encode("utf-8", "surrogatepass"))
            for name in order
        ]

    assert of_parts(parts(both[0]), "one") == of_parts(parts(both[1]), "two")


@given(json_values, json_values)
def test_json_bodies_are_the_same_exactly_when_their_documents_are(left: object, right: object) -> None:
    def canonical(value: object) -> str:
        return json.dumps(value, sort_keys=True)

    assert (of_json(left) == of_json(right)) == (canonical(left) == canonical(right))


@given(json_values, st.text(st.characters(codec="ascii"), max_size=3))
def test_a_volatile_key_never_counts(value: object, note: str) -> None:
    assert of_json({"a": [{"b": 1, "Nonce": value}], "csrf": note}) == of_json({"a": [{"b": 1}]})
