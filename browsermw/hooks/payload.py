"""What a call of Playwright's driver will send, by the arguments that it was given.

``journal`` asks it for the fingerprint; nothing here is sent or stored. What the driver will read by itself (a file)
is not known.
"""

from __future__ import annotations

import json
from pathlib import PurePath
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from browsermw.hooks.guards import form_fields

if TYPE_CHECKING:
    from collections.abc import Mapping

_EDGE = "browsermw-3c8f1a"
"""Between the parts of a multipart body that is only ever hashed; the driver makes edges of its own."""


def payload(kwargs: Mapping[str, Any]) -> tuple[str, bytes | None]:
    """Content type and body of a call by its ``data``, ``form`` or ``multipart``.

    The body is ``b""`` for none of them, ``None`` where it cannot be known.
    """
    headers: Mapping[str, str] = kwargs.get("headers") or {}
    named = next((value for key, value in headers.items() if key.lower() == "content-type"), "")
    data, form, multipart = kwargs.get("data"), kwargs.get("form"), kwargs.get("multipart")
    if isinstance(data, bytes):
        return named or "application/octet-stream", data
    if isinstance(data, str):
        sent = json.dumps(data) if "json" in named.lower() and not _is_json(data) else data  # as the driver does
        return named or "text/plain", sent.encode("utf-8", "surrogatepass")
    if data is not None:
        return named or "application/json", json.dumps(data, default=str).encode()
    fields = form_fields(form if form is not None else multipart)
    if form is not None:
        pairs = None if fields is None else urlencode([(name, str(value)) for name, value in fields]).encode()
        return "application/x-www-form-urlencoded", pairs
    if multipart is not None:
        return f"multipart/form-data; boundary={_EDGE}", None if fields is None else _parts(fields)
    return named, b""


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


def _parts(fields: list[tuple[str, Any]]) -> bytes | None:
    """Multipart fields as a body that stands for what the driver will send; ``None`` where it will read a file."""
    body = b""
    for name, value in fields:
        content = _content(value)
        if not isinstance(content, bytes):
            return None
        words = [name, value.get("name"), value.get("mimeType")] if isinstance(value, dict) else [name]
        head = "; filename=".join(json.dumps(word, default=str) for word in words)
        body += f"--{_EDGE}\r\nname={head}\r\n\r\n".encode() + content + b"\r\n"
    return body + f"--{_EDGE}--\r\n".encode()


def _content(value: Any) -> Any:
    if isinstance(value, dict):
        return value.get("buffer")
    return value if isinstance(value, bytes | PurePath) else str(value).encode("utf-8", "surrogatepass")
