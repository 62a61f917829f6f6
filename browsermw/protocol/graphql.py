"""Tell a GraphQL query from a mutation, by the body alone.

GraphQL sends reads by POST too. A read that were held as an effect would cost a record for each look at a page; a
mutation that were let go as a read would break the promise. So: an effect unless every operation that could run is
surely a query. Where a server might read the text in another way than we do (a key given twice, keys that the
GraphQL protocol does not have, a head that the grammar does not have), it is an effect. Called by ``effect_rules``.
"""

from __future__ import annotations

import json
import re

_TOKEN = re.compile(
    r'(?P<text>"""(?:[^"\\]|\\(?:""")?|"(?!""))*+"""|"(?!"")(?:\\[^\r\n]|[^"\\\r\n])*+")'
    r"|(?P<gap>[ \t\r\n,\ufeff]+|#[^\r\n]*)"
    r"|(?P<word>[_A-Za-z][_0-9A-Za-z]*|\.\.\.|[{}()\[\]:=!|&$@]|-?[0-9][0-9.eE+-]*)",
)
_NAME = "[_A-Za-z][_0-9A-Za-z]*"
_REST = rf"(?: \(\))?(?: @ {_NAME}(?: \(\))?)* {{}}"
_OPERATION = re.compile(rf"(query|mutation|subscription)(?: ({_NAME}))?{_REST}")
_FRAGMENT = re.compile(rf"fragment {_NAME}(?: \(\))? on {_NAME}{_REST}")
_CLOSER_OF = {"{": "}", "(": ")", "[": "]"}
_REQUEST_KEYS = frozenset({"query", "operationName", "variables", "extensions"})

Operation = tuple[str, str | None]


def only_queries(body: bytes) -> bool:
    """Whether a JSON body is one or more GraphQL requests that can only read.

    Args:
        body: The request's body.
    """
    try:
        document = json.loads(body, object_pairs_hook=_keys_once)
    except (ValueError, RecursionError):
        return False
    requests = document if isinstance(document, list) else [document]
    return bool(requests) and all(_is_query(request) for request in requests)


def operations_of(document: str) -> list[Operation] | None:
    """Operations of a GraphQL document as (kind, name); ``None`` where it is not one.

    Args:
        document: The text under the ``query`` key.
    """
    words = _words(document)
    heads = _heads(words) if words else None
    if heads is None:
        return None
    operations: list[Operation] = []
    for head in heads:
        if _FRAGMENT.fullmatch(head):
            continue
        operation = _OPERATION.fullmatch("query {}" if head == "{}" else head)
        if operation is None:
            return None
        operations.append((operation[1], operation[2]))
    return operations


def _keys_once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    document = dict(pairs)
    if len(document) != len(pairs):
        raise ValueError("a key is given twice; which one the server takes is its own affair")
    return document


def _is_query(request: object) -> bool:
    if not isinstance(request, dict) or not request.keys() <= _REQUEST_KEYS:
        return False
    text = request.get("query")
    operations = operations_of(text) if isinstance(text, str) else None
    if not operations:
        return False
    name = request.get("operationName")
    if isinstance(name, str) and name:
        return [kind for kind, called in operations if called == name] == ["query"]
    return all(kind == "query" for kind, _ in operations)


def _words(document: str) -> list[str] | None:
    """Words and signs without strings, comments and commas; ``None`` where a character belongs to none of them."""
    words: list[str] = []
    position = 0
    while position < len(document):
        token = _TOKEN.match(document, position)
        if token is None:
            return None
        position = token.end()
        if token.lastgroup == "word":
            words.append(token.group())
    return words


def _heads(words: list[str]) -> list[str] | None:
    """What stands before the braces of each top-level definition; what is in parentheses counts as ``()``."""
    heads: list[str] = []
    head: list[str] = []
    closers: list[str] = []
    for word in words:
        if word in _CLOSER_OF:
            if not closers:
                head.append(word + _CLOSER_OF[word])
            closers.append(_CLOSER_OF[word])
        elif word in _CLOSER_OF.values():
            if not closers or closers.pop() != word:
                return None
            if not closers and word == "}":
                heads.append(" ".join(head))
                head = []
        elif not closers:
            head.append(word)
    return None if closers or head else heads
