"""What the user decides: which requests are effects, which do not matter, how strongly to guard, how long to wait.

A ``Policy`` is given to ``browsermw.open``, or read from ``browsermw.toml`` in the working folder and from
``BROWSERMW_…`` variables (those win over the file; arguments win over both). It is frozen, and bad values are
rejected when it is made, by the key's path; so are keys that it does not have. Other ``BROWSERMW_…`` variables
(``BROWSERMW_LEDGER``) are none of its business.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator
from pydantic_settings import (
    BaseSettings,
    EnvSettingsSource,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    TomlConfigSettingsSource,
)

TOML_FILE = Path("browsermw.toml")
"""Read from the working folder, where it exists; its keys are the names of ``Policy``'s fields."""

METHODS = frozenset({"GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE", "TRACE", "CONNECT"})

TELEMETRY = (
    "POST https://*.google-analytics.com/**",
    "POST https://*.analytics.google.com/**",
    "POST https://*.doubleclick.net/**",
    "POST https://*.ingest.sentry.io/**",
    "POST https://*.hotjar.com/**",
    "POST https://api.segment.io/v1/**",
    "POST https://*.mixpanel.com/track/**",
)
"""Well-known telemetry that ``ignore`` holds by default: losing or doubling it harms nobody."""

_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_MAX_SELECTOR_CHARS = 2_000
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_TAKEN_HEADERS = frozenset(
    {
        "accept",
        "authorization",
        "connection",
        "content-encoding",
        "content-length",
        "content-type",
        "cookie",
        "expect",
        "host",
        "keep-alive",
        "origin",
        "referer",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
        "user-agent",
    }
)


@lru_cache(maxsize=1024)
def compiled_pattern(pattern: str) -> tuple[str | None, re.Pattern[str]]:
    """Read a URL pattern, ``[METHOD ]glob``, in Playwright's glob words.

    ``*`` is any run without a slash, ``**`` any run, ``{a,b}`` either; the rest stands for itself. The query
    belongs to the URL.

    Returns:
        The method (``None``: any) and a regular expression that the whole URL has to match.

    Raises:
        ValueError: The pattern is empty, or has control characters, an unknown method or braces without a partner.
    """
    method, _, glob = pattern.rpartition(" ")
    if method and method not in METHODS:
        raise ValueError(f"{pattern!r}: {method!r} is no HTTP method; write 'POST https://host/**' or the glob alone")
    if not glob or _CONTROL.search(pattern):
        raise ValueError(f"{pattern!r}: a URL pattern may not be empty or hold control characters")
    try:
        return method or None, re.compile(_glob_to_regex(glob), re.DOTALL)
    except ValueError as error:
        raise ValueError(f"{pattern!r}: {error}") from None


def _glob_to_regex(glob: str) -> str:
    words = {"**": ".*", "*": "[^/]*", "{": "(?:", "}": ")", ",": "|"}
    pieces, depth = [], 0
    for token in re.findall(r"\*\*|\*|\{|\}|,|[^*{},]+", glob):
        depth += {"{": 1, "}": -1}.get(token, 0)
        if depth < 0:
            raise ValueError("a brace is closed that was not opened")
        pieces.append(re.escape(token) if token not in words or (token == "," and not depth) else words[token])
    if depth:
        raise ValueError("unclosed brace")
    return "".join(pieces)


def matches(pattern: str, method: str, url: str) -> bool:
    """Whether a request fits a URL pattern (see ``compiled_pattern``)."""
    wanted, regex = compiled_pattern(pattern)
    return wanted in (None, method) and regex.fullmatch(url) is not None


def _checked_pattern(pattern: str) -> str:
    compiled_pattern(pattern)
    return pattern


def checked_selector(selector: str) -> str:
    """Refuse a selector that no browser could take; CSS itself is checked by the browser.

    Returns:
        The selector without white space around it.

    Raises:
        ValueError: It is empty, longer than 2,000 characters, or holds control characters.
    """
    stripped = selector.strip()
    if not stripped:
        raise ValueError("a selector in the policy is empty; remove it or name the elements it stands for")
    if len(stripped) > _MAX_SELECTOR_CHARS:
        raise ValueError(
            f"a selector in the policy has {len(stripped)} characters (at most {_MAX_SELECTOR_CHARS}); "
            "split it into several"
        )
    if _CONTROL.search(stripped):
        raise ValueError(f"the selector {stripped!r} holds control characters; write it on one line, in CSS")
    return stripped


def _checked_header(name: str) -> str:
    if not _TOKEN.fullmatch(name):
        raise ValueError(f"{name!r}: a header's name is made of letters, digits and !#$%&'*+-.^_`|~ (RFC 9110)")
    if name.lower() in _TAKEN_HEADERS or name.lower().startswith(("proxy-", "sec-")):
        raise ValueError(f"{name!r}: this header has a meaning of its own in each request; name another one")
    return name


def _checked_socket_pattern(pattern: str) -> str:
    if compiled_pattern(pattern)[0] is not None:
        raise ValueError(f"{pattern!r}: a WebSocket has no method; write the glob alone, such as 'wss://host/**'")
    return pattern


UrlPattern = Annotated[str, AfterValidator(_checked_pattern)]
SocketPattern = Annotated[str, AfterValidator(_checked_socket_pattern)]
Selector = Annotated[str, AfterValidator(checked_selector)]
FieldName = Annotated[str, Field(min_length=1), AfterValidator(str.lower)]
Status = Annotated[int, Field(ge=200, le=599)]
HeaderName = Annotated[str, AfterValidator(_checked_header)]


class Identity(BaseModel):
    """How to tell who is signed in: exactly one of the two.

    Attributes:
        cookie: Name of the cookie whose value stands for the user.
        selector: CSS selector of the element whose text names the user.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    cookie: str | None = None
    selector: Selector | None = None

    @model_validator(mode="after")
    def _exactly_one(self) -> Identity:
        if (self.cookie is None) == (self.selector is None):
            raise ValueError("identity: give exactly one of cookie and selector")
        return self


class Policy(BaseSettings):
    """The rules of one runtime.

    Attributes:
        effects: URL patterns of requests that are effects although their method is safe.
        ignore: URL patterns of requests that are let go unrecorded although their method is not safe.
        idempotency_headers: URL patterns with the name of the header in which the application takes an idempotency
            key there, such as ``{"POST https://api.example/**": "Idempotency-Key"}``; the first that fits counts. An
            effect is sent with a key of its own, or with the one that the page gave it, and the key is on record
            (``Effect.idempotency_key``), so that what came of the effect can be looked up after a restart.
        accepted_statuses: URL patterns with HTTP statuses that say there that an effect took place, such as
            ``{"POST https://api.example/**": [409]}`` for an application that answers a repeated order so.
        rejected_statuses: The same for statuses that say that it did not take place.
        ambiguous_statuses: The same for statuses that say neither. Where nothing fits, 2xx and 3xx are accepted, 4xx
            rejected, 5xx and 408, 409, 425, 429 ambiguous. A status that two of these keys name is ambiguous.
        max_body_bytes: The largest request body that is read, for fingerprints and for GraphQL. A larger one is never
            taken for the same as another, so a repetition of it is not noticed. The gate reads one body at a time:
            16 MiB of a file take it about 0.02 s, 16 MiB of JSON a second.
        ignore_websockets: URL patterns, without a method, of WebSockets whose frames are no effects, such as
            ``wss://chat.example/**``.
        unowned: What happens to an effect of a context that nobody wrapped: ``refuse`` or ``allow``.
        minimum_wire: The weakest wire that ``wrap`` accepts.
        service_workers: What ``wrap`` does on the wire ``routed`` with a context whose service workers are not
            blocked, since they can send past the route: ``refuse`` it, or ``allow`` it knowingly.
        identity: How to tell who is signed in; ``None``: not declared.
        ignore_selectors: Elements that are left out of the DOM hash (clocks, advertisements).
        volatile_fields: Names of form, JSON and query fields that are left out of fingerprints, because they
            change with each load. Upper and lower case do not differ.
        settle_s: How long leaving a run, or closing a context, waits for answers that are still out; seconds.
        probe_timeout_s: How long a checkpoint waits for the page; seconds. Later it says "not available".
        upload_timeout_s: How long a request with a large body may take to the gate before it is refused; seconds. A
            route handler of your own that keeps an upload longer than that must be given more.
        attach_timeout_s: How long ``wrap`` waits for the browser's debugging port; seconds.
        lease_s: How long a PostgreSQL lease runs without renewal; seconds.
    """

    model_config = SettingsConfigDict(
        frozen=True, extra="forbid", env_prefix="BROWSERMW_", env_nested_delimiter="__", toml_file=TOML_FILE
    )

    effects: tuple[UrlPattern, ...] = ()
    ignore: tuple[UrlPattern, ...] = TELEMETRY
    idempotency_headers: Mapping[UrlPattern, HeaderName] = {}
    accepted_statuses: Mapping[UrlPattern, frozenset[Status]] = {}
    rejected_statuses: Mapping[UrlPattern, frozenset[Status]] = {}
    ambiguous_statuses: Mapping[UrlPattern, frozenset[Status]] = {}
    max_body_bytes: int = Field(16 * 1024 * 1024, ge=0)
    ignore_websockets: tuple[SocketPattern, ...] = ()
    unowned: Literal["refuse", "allow"] = "refuse"
    minimum_wire: Literal["sealed", "attached", "routed"] = "sealed"
    service_workers: Literal["refuse", "allow"] = "refuse"
    identity: Identity | None = None
    ignore_selectors: tuple[Selector, ...] = ()
    volatile_fields: frozenset[FieldName] = frozenset(
        {
            "csrf",
            "csrf_token",
            "csrftoken",
            "csrfmiddlewaretoken",
            "_csrf",
            "_token",
            "xsrf",
            "_xsrf",
            "authenticity_token",
            "__requestverificationtoken",
            "__viewstate",
            "__eventvalidation",
            "nonce",
            "_wpnonce",
            "timestamp",
            "_ts",
        }
    )
    settle_s: float = Field(5.0, ge=0, le=600)
    probe_timeout_s: float = Field(1.0, gt=0, le=60)
    upload_timeout_s: float = Field(60.0, gt=0, le=3600)
    attach_timeout_s: float = Field(15.0, gt=0, le=600)
    lease_s: float = Field(15.0, ge=2, le=3600)

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Arguments first, then the environment, then ``browsermw.toml``."""
        del env_settings, dotenv_settings, file_secret_settings
        return init_settings, _Environment(settings_cls), _toml_file(settings_cls)


class _Environment(EnvSettingsSource):
    """A key that an argument gives is taken from there as a whole: half an identity of each makes none."""

    def __call__(self) -> dict[str, Any]:
        return {key: value for key, value in super().__call__().items() if key not in self.current_state}


class _TomlFile(TomlConfigSettingsSource):
    """The same for the file, behind arguments and environment."""

    def __call__(self) -> dict[str, Any]:
        return {key: value for key, value in super().__call__().items() if key not in self.current_state}


def _toml_file(settings_cls: type[BaseSettings]) -> _TomlFile:
    try:
        return _TomlFile(settings_cls, TOML_FILE)
    except ValueError as error:
        raise ValueError(f"{TOML_FILE.absolute()} cannot be read as TOML: {error}") from error
