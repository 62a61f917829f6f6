"""Fingerprints decide whether two requests are the same submission (DESIGN section 6).

Asked by the gate and by the API hooks; nothing here raises, whatever the request holds. Method, URL and canonical
body, as xxh3-128. Form fields and JSON keys are sorted; volatile fields (CSRF tokens, time stamps) are left out by
name; multipart goes by the hash of each part; a body that cannot be read or understood never equals another one,
because a false "same" would refuse honest work. Bodies are not kept.
"""

from __future__ import annotations

import json
import re
from operator import itemgetter
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, urlsplit

from xxhash import xxh3_128_hexdigest

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

VERSION = "fp1"

_FIELD_COUNT_LIMIT = 100_000


def fingerprint(
    method: str, url: str, content_type: str, body: bytes | None, *, volatile: Collection[str], unique: str
) -> str:
    """Fingerprint of a request.

    Args:
        method: HTTP method.
        url: The full URL; the fragment does not count, the order of the query's fields does not either.
        content_type: Value of the ``Content-Type`` header, or empty.
        body: The body; ``b""`` for none, ``None`` where it could not be read.
        volatile: Lower-case field names that do not count.
        unique: Stands for a body that is not understood; give the effect's id.

    Returns:
        ``fp1:`` and 32 hexadecimal digits.
    """
    canonical = [method.upper(), *_place(url, volatile), _body(content_type, body, volatile) or unique]
    text = json.dumps(canonical, ensure_ascii=True, separators=(",", ":"))
    return f"{VERSION}:{xxh3_128_hexdigest(text.encode('ascii'))}"


def _place(url: str, volatile: Collection[str]) -> list[str]:
    try:
        parts = urlsplit(url)
        query = _fields(parts.query, volatile)
    except ValueError:  # a port or host that is none, or more fields than anybody counts: the text itself counts
        return [url.partition("#")[0]]
    return [parts.scheme.lower(), parts.netloc.rpartition("@")[2].lower(), parts.path or "/", query]


def _body(content_type: str, body: bytes | None, volatile: Collection[str]) -> str | None:
    if not body:
        return None if body is None else "empty"
    kind = content_type.partition(";")[0].strip().lower()
    try:
        if kind == "application/x-www-form-urlencoded":
            return "form" + _fields(body.decode("utf-8", "surrogateescape"), volatile)
        if kind == "multipart/form-data":
            return _multipart(content_type, body, volatile)
        return "json" + json.dumps(_without(json.loads(body), volatile), sort_keys=True)
    except (ValueError, RecursionError):  # not what it says it is, or too deep to read
        is_text = kind.startswith("text/") or kind.endswith(("/xml", "+xml"))
        return "text" + xxh3_128_hexdigest(body) if is_text else None


def _fields(query: str, volatile: Collection[str]) -> str:
    pairs = parse_qsl(query, keep_blank_values=True, errors="surrogateescape", max_num_fields=_FIELD_COUNT_LIMIT)
    return _sorted_by_name((name, value) for name, value in pairs if not _is_volatile(name, volatile))


def _sorted_by_name(fields: Iterable[tuple[str, str]]) -> str:
    """Fields of one name keep their order among themselves: a list turned round is another list."""
    return json.dumps(sorted(fields, key=itemgetter(0)))


def _is_volatile(name: str, volatile: Collection[str]) -> bool:
    """Whether a field does not count; ``order[_token]``, as forms of nested records write it, goes by its last part."""
    lowered = name.lower()
    return lowered in volatile or lowered.rpartition("[")[2].removesuffix("]") in volatile


def _without(value: object, volatile: Collection[str]) -> object:
    if isinstance(value, dict):
        return {key: _without(held, volatile) for key, held in value.items() if not _is_volatile(key, volatile)}
    if isinstance(value, list):
        return [_without(held, volatile) for held in value]
    return value


def _multipart(content_type: str, body: bytes, volatile: Collection[str]) -> str | None:
    """Parts by name and hash. The boundary does not count, since the browser makes a new one for each try."""
    found = re.search(r'\bboundary=(?:"([^"]+)"|([^";\s]+))', content_type, re.IGNORECASE)
    if found is None:
        return None
    edge = b"\r\n--" + (found[1] or found[2]).encode()
    _, *parts = (b"\r\n" + body).split(edge)
    if not parts or not parts.pop().startswith(b"--"):
        return None
    named = [(_part_name(part), xxh3_128_hexdigest(part)) for part in parts]
    fields = [(name, digest) for name, digest in named if name is not None and not _is_volatile(name, volatile)]
    return None if any(name is None for name, _ in named) else "multipart" + _sorted_by_name(fields)


def _part_name(part: bytes) -> str | None:
    head, _, _ = part.partition(b"\r\n\r\n")
    name = re.search(rb'\bname="([^"]*)"', head)
    return None if name is None else name[1].decode("utf-8", "replace")
