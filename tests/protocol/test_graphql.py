"""A GraphQL body is a read only if every operation that could run is surely a query."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from browsermw.protocol.graphql import only_queries, operations_of


def asked(text: object, **more: object) -> bytes:
    return json.dumps({"query": text, **more}).encode()


QUERIES = {
    "anonymous": "{ me { name } }",
    "anonymous with keyword": "query { me { name } }",
    "named": "query Me { me { name } }",
    "named like a keyword": "query mutation { me }",
    "with variables": "query Me($id: ID!, $tags: [String!]! = []) { me(id: $id, tags: $tags) { name } }",
    "with default object": 'query Me($in: In = {a: 1, b: [{c: "}"}]}) { me(in: $in) }',
    "with directives": "query Me @cached(for: {s: 5}) @live { me @include(if: true) { name @skip(if: false) } }",
    "with directive on a variable": "query Me($id: ID @deprecated) { me(id: $id) }",
    "with fragments": "query Me { ...F ... on User { id } } fragment F on User @x { name }",
    "fragment first": "fragment F on User { name } { me { ...F } }",
    "fragment named like a keyword": "{ ...mutation } fragment mutation on User { name }",
    "field named like a keyword": "{ mutation { mutation(mutation: 1) } query subscription }",
    "alias": "{ mutation: me }",
    "brace in a comment": "# } mutation { pay\n{ me # }\n { name } }",
    "brace in a string": '{ me(note: "} mutation { pay }") { name } }',
    "escaped quote in a string": r'{ me(note: "\"} mutation { pay } \\") { name } }',
    "brace in a block string": '{ me(note: """ } " "" \\""" mutation { pay } """) }',
    "empty strings": '{ me(a: "", b: """""") }',
    "numbers": "{ me(a: -1, b: 2.5e-10, c: 0) }",
    "commas, BOM and CRLF": "\ufeff,{ me,\r\n name }\r,",
    "described": '"""what it does""" query Me { me }',
    "two queries": "query A { a } query B { b }",
}
NOT_QUERIES = {
    "mutation": "mutation { pay { id } }",
    "named mutation": "mutation Pay($id: ID!) { pay(id: $id) { id } }",
    "mutation named query": "mutation query { pay }",
    "subscription": "subscription { news }",
    "mutation after a query": "query A { a } mutation B { pay }",
    "mutation before a query": "mutation B { pay } query A { a }",
    "mutation after a fragment": "fragment F on Q { a } mutation { pay }",
    "mutation after a comment that ends in CR": "query A { a } #\rmutation B { pay }\r#",
    "mutation after a string with a brace": 'query A { a(x: "{") } mutation B { pay }',
    "mutation after a block string": 'query A { a(x: """\\"""{""") } mutation B { pay }',
    "mutation after an empty string": 'query A { a(x: "") } mutation B { pay(x: "") }',
    "fragment alone": "fragment F on User { name }",
    "schema": "type Query { me: User }",
    "extension": "extend type Query { me: User }",
    "empty": "",
    "blank": " \n# nothing\n",
    "open brace": "{ me ",
    "too many closers": "{ me } }",
    "wrong closers": "{ ( } mutation { pay } )",
    "wrong closers that add up": "{ a ( } mutation { pay } }",
    "head without body": "query Me",
    "body after parentheses": "(a: 1) { me }",
    "two names": "query mutation Pay { pay }",
    "open string": '{ me(a: "x) }',
    "string over two lines": '{ me(a: "x\ny") }',
    "open block string": '{ me(a: """x) }',
    "open block string with a quote in it": '{ me(a: """x") }',
    "open block string that ends in an escape": '{ me(a: """x\\""") }',
    "no token": "{ me; you }",
    "word": "me",
    "upper case": "QUERY { me }",
}


@pytest.mark.parametrize("text", QUERIES.values(), ids=QUERIES)
def test_a_query_is_only_read(text: str) -> None:
    assert only_queries(asked(text))
    assert only_queries(asked(text, variables={"id": 1}, operationName=None, extensions={}))


@pytest.mark.parametrize("text", NOT_QUERIES.values(), ids=NOT_QUERIES)
def test_whatever_is_not_surely_a_query_is_an_effect(text: str) -> None:
    assert not only_queries(asked(text))


@pytest.mark.parametrize(
    ("name", "is_read"),
    [
        ("Read", True), ("Pay", False), ("News", False), ("Gone", False), ("Twice", False), ("read", False),
        ("", False), (None, False), (7, False), (["Read"], False),
    ],
)  # fmt: skip
def test_of_several_operations_the_named_one_counts(name: object, is_read: bool) -> None:
    text = "query Read { a } mutation Pay { pay } subscription News { n } query Twice { a } mutation Twice { pay }"
    assert only_queries(asked(text, operationName=name)) is is_read


def test_a_batch_is_a_read_only_if_each_of_it_is() -> None:
    read, write = {"query": "{ me }"}, {"query": "mutation { pay }"}
    assert only_queries(json.dumps([read, read]).encode())
    assert not only_queries(json.dumps([read, write]).encode())
    assert not only_queries(json.dumps([[read]]).encode())
    assert not only_queries(b"[]")


@pytest.mark.parametrize(
    "body",
    [
        json.dumps({"extensions": {"persistedQuery": {"version": 1, "sha256Hash": "ab"}}}).encode(),
        json.dumps({"id": "ab", "query": "{ me }"}).encode(),
        json.dumps({"query": "{ me }", "action": "delete"}).encode(),
        asked(None), asked(5), asked(["{ me }"]),
        b'{"query": "mutation { pay }", "query": "{ me }"}',
        b"", b"{", b"null", b"5", b'"{ me }"', b"{ me }", b"\xff\xfe\x00", b"[" * 100_000,
    ],
    ids=lambda body: str(body[:30]),
)  # fmt: skip
def test_a_body_without_one_clear_query_text_is_an_effect(body: bytes) -> None:
    assert not only_queries(body)


def test_operations_are_told_by_kind_and_name() -> None:
    text = "{ a } query B($x: I = {y: 1}) { b } mutation C @d(e: 1) { c } subscription { s } fragment F on B { f }"
    assert operations_of(text) == [("query", None), ("query", "B"), ("mutation", "C"), ("subscription", None)]
    assert operations_of("nothing of the kind") is None


def test_deep_nesting_and_long_texts_are_read_without_recursion() -> None:
    depth = 50_000
    assert operations_of("{a" * depth + "}" * depth) == [("query", None)]
    assert operations_of('{ a(b: """' + 'x"' * 200_000 + '""") }') is None  # ends in four quotes
    assert operations_of('{ a(b: """' + '"x' * 200_000 + '""") }') == [("query", None)]


# A grammar of documents, with words and texts that would confuse a careless reader.
words = st.sampled_from(["a", "pay", "query", "mutation", "subscription", "fragment", "_0"])
names = st.sampled_from(["A", "B", "Pay", "query", "mutation", "subscription"])
gaps = st.sampled_from([" ", "\n", "\r", ", ", "\t", "\ufeff ", "\n# } mutation { x\n", " #\r", ' # " """\r\n'])
plain_values = st.sampled_from(
    ["1", "-2.5e3", "$v", "true", "null", '""', '"}"', '"mutation {"', r'"\"{"', '""""""', '"""{ " \\""" }"""', '"# {"']
)
values = st.recursive(
    plain_values,
    lambda inner: (
        st.lists(inner, max_size=3).map(lambda held: f"[{' '.join(held)}]")
        | st.lists(inner, max_size=3).map(lambda held: "{" + " ".join(f"k: {value}" for value in held) + "}")
    ),
    max_leaves=5,
)
arguments = st.one_of(
    st.just(""), st.lists(values, min_size=1, max_size=2).map(lambda held: f"(x: {' y: '.join(held)})")
)
directives = st.one_of(st.just(""), st.builds(lambda name, args: f" @{name}{args}", words, arguments))
selections = st.recursive(
    st.builds(lambda name, args, directive: f"{name}{args}{directive}", words, arguments, directives),
    lambda inner: st.builds(
        lambda head, held: f"{head} {{ {' '.join(held)} }}",
        st.one_of(words, st.just("... on Q"), st.just("...")),
        st.lists(inner, min_size=1, max_size=3),
    ),
    max_leaves=6,
)
bodies = st.lists(selections, min_size=1, max_size=3).map(lambda held: f"{{ {' '.join(held)} }}")
variables = st.one_of(st.just(""), values.map(lambda value: f"($v: [In!]! = {value})"))
operations = st.builds(
    lambda kind, name, held, directive, body: (f"{kind} {name}{held}{directive} {body}", (kind, name or None)),
    st.sampled_from(["query", "mutation", "subscription"]),
    st.one_of(st.just(""), names),
    variables,
    directives,
    bodies,
)
anonymous = bodies.map(lambda body: (body, ("query", None)))
fragments = st.builds(
    lambda name, directive, body: (f"fragment {name} on Q{directive} {body}", None), names, directives, bodies
)
Definitions = list[tuple[str, tuple[str, str | None] | None]]
definition_lists = st.lists(st.one_of(operations, anonymous, fragments), min_size=1, max_size=4)


@given(definition_lists, gaps, st.sampled_from(["", "\n# mutation { pay }"]))
def test_every_document_of_the_grammar_is_read_as_what_it_is(definitions: Definitions, gap: str, tail: str) -> None:
    text = gap + gap.join(definition for definition, _ in definitions) + tail
    expected = [operation for _, operation in definitions if operation is not None]
    assert operations_of(text) == expected
    assert only_queries(asked(text)) == (bool(expected) and all(kind == "query" for kind, _ in expected))


@given(definition_lists, definition_lists, gaps)
def test_no_text_around_a_mutation_makes_it_a_query(before: Definitions, after: Definitions, gap: str) -> None:
    mutation: Definitions = [("mutation { pay }", ("mutation", None))]
    assert not only_queries(asked(gap.join(text for text, _ in [*before, *mutation, *after])))


crumbs = st.lists(
    st.sampled_from(
        [
            "mutation", "query", "fragment", "on", "{", "}", "(", ")", "[", "]", '"', '"""', "\\", "#", "\r", "\n", " ",
            "@", "$", ":", "...", "a", "1", "\ufeff", "\u2028", "\x00", "\ud800",
        ]
    ),
    max_size=25,
).map("".join)  # fmt: skip


@given(st.one_of(crumbs, st.text(max_size=40)))
def test_no_text_makes_the_reader_raise(text: str) -> None:
    assert only_queries(asked(text)) in {True, False}


@given(st.one_of(st.binary(max_size=60), crumbs.map(lambda text: text.encode("utf-8", "surrogatepass"))))
def test_no_body_makes_the_reader_raise(body: bytes) -> None:
    assert only_queries(body) in {True, False}


@given(crumbs)
def test_whatever_text_follows_or_precedes_a_mutation_it_is_never_a_query(text: str) -> None:
    """A newline ends any comment; what is left open in front of the mutation makes the text no document at all."""
    assert not only_queries(asked("mutation { pay }\n" + text))
    if operations_of(text) is not None:
        assert not only_queries(asked(text + "\nmutation { pay }"))
