"""Tell a GraphQL query from a mutation, by the body alone.

GraphQL sends reads by POST too. A read that were held as an effect would cost a record for each look at a page; a
mutation that were let go as a read would break the promise. So: an effect unless every operation that could run is
surely a query. Called by ``effect_rules``.
"""

from __future__ import annotations

import json
import re

_TOKENS = re.compile(
    r'"""(?:\\"""|[^"]|"(?!""))*"""'  # block string
    r'|"(?:\\.|[^"\\\n])*"'  # string
    r"|#[^\n]*"  # comment
    r"|[_A-Za-z][_0-9A-Za-z]*|\.\.\.|[{}()\[\]:=!|&$@,]|-?\d[\d.eE+-]*|\s+|﻿",
)
_OPERATIONS = frozenset({"query", "mutation", "subscription"})


def only_queries(body: bytes) -> bool:
    """Whether a JSON body is one or more GraphQL requests that can only read.

    Args:
        body: The request's body.
    """
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        return False
    requests = document if isinstance(document, list) else [document]
    return bool(requests) and all(_is_query(request) for request in requests)


def _is_query(request: object) -> bool:
    if not isinstance(request, dict) or not isinstance(request.get("query"), str):
        return False
    operations = operations_of(request["query"])
    name = request.get("operationName")
    if operations is None or not operations:
        return False
    if isinstance(name, str) and name:
        chosen = [kind for kind, called in operations if called == name]
        return chosen == ["query"]
    return all(kind == "query" for kind, _ in operations)


def operations_of(document: str) -> list[tuple[str, str | None]] | None:
    """Operations of a GraphQL document as (kind, name); ``None`` where it is not one.

    Args:
        document: The text under the ``query`` key.
    """
    operations: list[tuple[str, str | None]] = []
    depth = position = 0
    definition: list[str] = []
    while position < len(document):
        match = _TOKENS.match(document, position)
        if match is None:
            return None
        position, token = match.end(), match.group()
        if token[0] in '#"\ufeff' or token.isspace():
            continue
        if token in "{([" and token:
            if token == "{" and not depth:
                operations.extend(_opened(definition))
            depth += 1
        elif token in "})]":
            depth -= 1
            if depth < 0:
                return None
            if not depth and token == "}":
                definition = []
        elif not depth:
            definition.append(token)
            if definition[0] not in _OPERATIONS | {"fragment"}:
                return None
    return operations if not depth and not definition else None


def _opened(definition: list[str]) -> list[tuple[str, str | None]]:
    if not definition:
        return [("query", None)]
    if definition[0] == "fragment":
        return []
    named = len(definition) > 1 and definition[1].isidentifier()
    return [(definition[0], definition[1] if named else None)]
