"""Every channel by which a page or an agent can send, and how each is fired.

One row a channel; the page of the same name is the fixture's (``fixtures/shop/channel_pages.py``). What is expected
of each on which engine stands in ``expected``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from browsermw.testing.channels.firing import (
    by_context,
    by_page,
    by_route,
    choose_file,
    click,
    click_and_close,
    click_in_popup,
    press_enter,
)

if TYPE_CHECKING:
    from browsermw.testing.channels.firing import Fire

VERBS = ("post", "put", "patch", "delete", "fetch")


@dataclass(frozen=True)
class Channel:
    """One way to send.

    Attributes:
        name: Name of its page and last part of its sink.
        group: Under which it is shown.
        fire: What sets it off.
        arrivals: How many requests, frames or datagrams tell that it is over, GETs and preflights counted too.
        limit_s: How long to wait for them; seconds.
        alone: It needs a context of its own, because it leaves something behind there.
    """

    name: str
    group: str
    fire: Fire = click
    arrivals: int = 1
    limit_s: float = 8.0
    alone: bool = False


def _all(group: str, *names: str, arrivals: int = 1, alone: bool = False) -> tuple[Channel, ...]:
    return tuple(Channel(name, group, arrivals=arrivals, alone=alone) for name in names)


SCRIPTS = "page scripts"
LEAVING = "leaving the page"
FORMS = "forms"
WINDOWS = "windows and frames"
WORKERS = "workers"
REDIRECTS = "redirects"
UPLOADS = "bodies"
SOCKETS = "sockets and datagrams"
READS = "reads"
CALLS = "API calls"

CHANNELS: tuple[Channel, ...] = (
    *_all(SCRIPTS, "fetch", "xhr", "sync-xhr", "beacon", "keepalive", "put", "patch", "delete", "ping", "csp-report"),
    *_all(SCRIPTS, "preflighted", arrivals=2),
    *_all(LEAVING, "beacon-and-leave", "keepalive-and-leave", "beacon-at-pagehide", "keepalive-at-pagehide"),
    *_all(FORMS, "form", "form-new-tab", "form-iframe", "form-formaction", "form-request-submit", "form-by-script"),
    Channel("form-enter-key", FORMS, press_enter),
    *_all(FORMS, "form-dialog", "download"),
    *_all(WINDOWS, "window-open", "window-open-noopener"),
    Channel("popup-of-popup", WINDOWS, click_in_popup),
    *_all(WINDOWS, "iframe-same-origin", "iframe-cross-origin", "iframe-srcdoc", "iframe-sandboxed"),
    *_all(WORKERS, "dedicated-worker", "blob-worker", "nested-worker", "shared-worker"),
    *_all(WORKERS, "service-worker-relays", "service-worker-sends", "service-worker-sync", alone=True),
    Channel("service-worker-alone", WORKERS, click_and_close, alone=True),
    *_all(REDIRECTS, "redirect-307", "redirect-308", "redirect-307-other-host", "redirect-308-other-host", arrivals=2),
    # The browser hands a held body to the gate as text, three times its size.
    Channel("upload-50-mb", UPLOADS, limit_s=45.0, alone=True),
    *_all(UPLOADS, "multipart-blob"),
    Channel("file-chooser", UPLOADS, choose_file),
    *_all(UPLOADS, "streaming-body"),
    *_all(SOCKETS, "websocket-before", "websocket-after", "websocket-worker", arrivals=2),
    *_all(SOCKETS, "webtransport", "webrtc", alone=True),
    *_all(READS, "event-source", arrivals=2),
    *_all(READS, "prefetch", "prerender"),
    *(Channel(f"context-request-{verb}", CALLS, by_context(verb)) for verb in VERBS),
    *(Channel(f"page-request-{verb}", CALLS, by_page(verb)) for verb in VERBS),
    Channel("route-fetch", CALLS, by_route, alone=True),
)

BY_NAME = {channel.name: channel for channel in CHANNELS}
