"""Fingerprints: are two requests the same submission? (DESIGN section 6.)

Method, URL and canonical body, as xxh3-128. Form fields and JSON keys are sorted; volatile fields (CSRF tokens,
time stamps) are left out by name; multipart goes by the hash of each part; a body that cannot be read or
understood never equals another one, because a false "same" would refuse honest work. Bodies are not kept.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, urlsplit

from xxhash import xxh3_128_hexdigest

if TYPE_CHECKING:
    from collections.abc import Collection

VERSION = "fp1"


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
    parts = urlsplit(url)
    place = [parts.scheme.lower(), parts.netloc.rpartition("@")[2].lower(), parts.path or "/"]
    canonical = [method.upper(), *place, _fields(parts.query, volatile), _body(content_type, body, volatile) or unique]
    text = json.dumps(canonical, ensure_ascii=True, separators=(",", ":"))
    return f"{VERSION}:{xxh3_128_hexdigest(text.encode('ascii'))}"


def _body(content_type: str, body: bytes | None, volatile: Collection[str]) -> str | None:
    if body is None:
        return None
    if not body:
        return "empty"
    kind = content_type.partition(";")[0].strip().lower()
    if kind == "application/x-www-form-urlencoded":
        return "form" + _fields(body.decode("utf-8", "surrogateescape"), volatile)
    if kind == "multipart/form-data":
        return _multipart(content_type, body, volatile)
    canonical = _json(body, volatile)
    if canonical is not None:
        return "json" + canonical
    if kind.startswith("text/") or kind.endswith(("/xml", "+xml")):
        return "text" + xxh3_128_hexdigest(body)
    return None


def _fields(query: str, volatile: Collection[str]) -> str:
    pairs = parse_qsl(query, keep_blank_values=True, errors="surrogateescape", max_num_fields=100_000)
    kept = sorted(pair for pair in pairs if pair[0].lower() not in volatile)
    return json.dumps(kept)


def _json(body: bytes, volatile: Collection[str]) -> str | None:
    try:
        document = json.loads(body)
        return json.dumps(_without(document, volatile), sort_keys=True)
    except (ValueError, RecursionError):
        return None


def _without(value: object, volatile: Collection[str]) -> object:
    if isinstance(value, dict):
        return {key: _without(held, volatile) for key, held in value.items() if key.lower() not in volatile}
    if isinstance(value, list):
        return [_without(held, volatile) for held in value]
    return value


def _multipart(content_type: str, body: bytes, volatile: Collection[str]) -> str | None:
    found = re.search(r'boundary="?([^";,\s]+)"?', content_type, re.IGNORECASE)
    if found is None:
        return None
    edge = b"--" + found.group(1).encode("utf-8", "surrogateescape")
    if edge + b"--" not in body:
        return None
    hashes = []
    for part in body.split(edge)[1:]:
        if part.startswith(b"--"):
            break
        head, _, content = part.strip(b"\r\n").partition(b"\r\n\r\n")
        name = re.search(rb'\bname="([^"]*)"', head)
        if name is None:
            return None
        if name.group(1).decode("utf-8", "replace").lower() not in volatile:
            hashes.append(xxh3_128_hexdigest(head + b"\r\n\r\n" + content))
    return "multipart" + ",".join(sorted(hashes))
