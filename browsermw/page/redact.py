"""Decides how much of a URL may be stored and shown.

Everything that writes a URL where people or files see it calls ``redact_url``. It keeps where a request went
(scheme, host, port, path, names of query parameters) and hides what it said. It never raises: a URL that
cannot be read is hidden whole.
"""

from __future__ import annotations

import functools
import re
from typing import Final
from urllib.parse import unquote, urlsplit

HIDDEN: Final = "…"
_MAX_URL_CHARS: Final = 2_000
_MAX_BARE_KEY_CHARS: Final = 32
_OPAQUE_SCHEMES: Final = frozenset({"data", "blob", "javascript", "mailto", "tel", "filesystem", "view-source"})
_SPECIAL = re.compile(r"(?i)(?:https?|wss?|ftp):")
_NOT_PRINTED = re.compile(r"[\x00-\x20\x7f-\x9f\u2028\u2029\ud800-\udfff]")
_PORT = re.compile(r":\d{1,5}")
_BARE_KEY = re.compile(r"[\w.\-\[\]]+")
_ROUTE = re.compile(r"!?/")

_EMAIL = re.compile(r"[^\s@/]+@[^\s@/]+")
_JWT = re.compile(r"eyJ[\w-]{5,}\.[\w-]+")
_CARD = re.compile(r"(?<!\d)\d(?:[ -]?\d){12,18}(?!\d)")
_BEARER = re.compile(r"(?i)\b(?:bearer|basic|token)[ :=+]\s*\S+")
_SOLID_RUN = re.compile(r"[A-Za-z0-9_+=~]{20,}")
_DASHED_RUN = re.compile(r"[A-Za-z0-9_+=~\-.]{24,}")


@functools.lru_cache(maxsize=512)
def redact_url(url: str, *, keep_values: tuple[str, ...] = ()) -> str:
    """Hide what a URL says and keep where it points.

    Args:
        url: Any text that should be a URL.
        keep_values: Names of query parameters whose values may be shown, unless they look like a secret.

    Returns:
        The URL without user name and password, with every other query value replaced by ``…``, with secrets
        in the path masked, and without its fragment unless that is a route (``#/path``). ``…`` alone when the
        text is no URL. At most 2,000 characters. Redacting twice changes nothing.
    """
    text = _NOT_PRINTED.sub("", url)
    if _SPECIAL.match(text):
        text = text.replace("\\", "/")
    try:
        parts = urlsplit(text)
    except ValueError:
        return HIDDEN
    host = _host(parts.netloc)
    if parts.scheme and not host and parts.scheme not in {"about", "file"}:
        return f"{parts.scheme}:{HIDDEN}" if parts.scheme in _OPAQUE_SCHEMES else HIDDEN
    shown = f"{parts.scheme}:" if parts.scheme else ""
    if host or parts.scheme == "file":
        shown += "//" + host
    shown += _path(parts.path) + _query(parts.query, keep_values)
    if _ROUTE.match(parts.fragment):
        route, _, query = parts.fragment.partition("?")
        shown += "#" + _path(route) + _query(query, keep_values)
    return shown if len(shown) <= _MAX_URL_CHARS else shown[: _MAX_URL_CHARS - 1] + HIDDEN


def _host(netloc: str) -> str:
    host = netloc.rpartition("@")[2].lower()
    name, bracket, rest = host.rpartition("]") if "]" in host else ("", "", host)
    plain, colon, port = rest.partition(":")
    return name + bracket + plain + (colon + port if _PORT.fullmatch(colon + port) else "")


def _path(path: str) -> str:
    return "/".join(_segment(segment) for segment in path.split("/"))


def _segment(segment: str) -> str:
    plain, *parameters = segment.split(";")
    named = [name + ("=" + HIDDEN if equals else "") for name, equals, _ in (p.partition("=") for p in parameters)]
    return ";".join(HIDDEN if looks_secret(part) else part for part in (plain, *named))


def _query(query: str, keep_values: tuple[str, ...]) -> str:
    if not query:
        return ""
    return "?" + "&".join(_parameter(item, keep_values) for item in query.split("&"))


def _parameter(item: str, keep_values: tuple[str, ...]) -> str:
    key, equals, value = item.partition("=")
    if not equals:
        # Without "=" it may be a name or the whole value ("?john%20doe"): only what is plainly a name stays.
        is_name = len(key) <= _MAX_BARE_KEY_CHARS and _BARE_KEY.fullmatch(key) and not looks_secret(key)
        return key if is_name or not key else HIDDEN
    shown_key = HIDDEN if looks_secret(key) else key
    is_kept = unquote(key) in keep_values and not looks_secret(value)
    return f"{shown_key}={value if is_kept or not value else HIDDEN}"


def looks_secret(text: str) -> bool:
    """Whether a piece of a URL holds an e-mail address, a card number, a JWT or a bearer-like token.

    Args:
        text: A path segment, a name or a value, percent-encoded or not.
    """
    for _ in range(3):  # links inside links are encoded more than once
        if _holds_secret(text):
            return True
        decoded = unquote(text)
        if decoded == text:
            return False
        text = decoded
    return _holds_secret(text)


def _holds_secret(text: str) -> bool:
    if _EMAIL.search(text) or _JWT.search(text) or _BEARER.search(text):
        return True
    if any(_passes_luhn(match.group()) for match in _CARD.finditer(text)):
        return True
    # A UUID has neither form, and is kept: it names the thing that the request was about.
    return any(_is_mixed(match.group()) for match in _SOLID_RUN.finditer(text)) or any(
        _is_random(match.group()) for match in _DASHED_RUN.finditer(text)
    )


def _is_mixed(run: str) -> bool:
    return any(char.isdigit() for char in run) and any(char.isalpha() for char in run)


def _is_random(run: str) -> bool:
    return _is_mixed(run) and any(char.isupper() for char in run) and any(char.islower() for char in run)


def _passes_luhn(number: str) -> bool:
    digits = [int(char) for char in reversed(number) if char.isdigit()]
    doubled = (sum(divmod(2 * digit, 10)) for digit in digits[1::2])
    return (sum(digits[::2]) + sum(doubled)) % 10 == 0
