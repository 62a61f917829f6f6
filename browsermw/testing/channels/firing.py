"""How a channel is fired: the stage that it gets, and the few ways to set it off.

The table names one of these functions for each channel; the runner calls it once. A firing only sets the effect off.
What became of it is the server's to say.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from playwright.sync_api import FilePayload

if TYPE_CHECKING:
    from collections.abc import Callable

    from playwright.sync_api import APIRequestContext, Page

    Fire = Callable[["Stage"], object]

FILE = FilePayload(name="note.txt", mimeType="text/plain", buffer=b"x")


@dataclass(frozen=True)
class Stage:
    """One channel's place in one guarded context.

    Attributes:
        page: The channel's page in a guarded context, loaded and ready.
        sink_url: Where the effect is to arrive.
    """

    page: Page
    sink_url: str


def click(stage: Stage) -> None:
    """Click the page's ``#go``."""
    stage.page.click("#go")


def press_enter(stage: Stage) -> None:
    """Press Enter in the page's ``#go``."""
    stage.page.press("#go", "Enter")


def choose_file(stage: Stage) -> None:
    """Answer the file chooser that ``#go`` opens."""
    with stage.page.expect_file_chooser() as chooser:
        stage.page.click("#go")
    chooser.value.set_files(FILE)


def click_in_popup(stage: Stage) -> None:
    """Open a popup, and click in it what opens the next."""
    with stage.page.expect_popup() as popup:
        stage.page.click("#go")
    popup.value.wait_for_selector("body[data-ready]", state="attached")
    popup.value.click("#go")


def click_and_close(stage: Stage) -> None:
    """Give the service worker its order, and close the page once it has it."""
    stage.page.click("#go")
    stage.page.wait_for_selector("body[data-told]", state="attached")
    stage.page.close()


def by_context(verb: str) -> Fire:
    """Call ``context.request``."""
    return lambda stage: _call(stage.page.context.request, verb, stage.sink_url)


def by_page(verb: str) -> Fire:
    """Call ``page.request``."""
    return lambda stage: _call(stage.page.request, verb, stage.sink_url)


def _call(api: APIRequestContext, verb: str, url: str) -> None:
    if verb == "fetch":
        api.fetch(url, method="POST", data="x")
    else:
        getattr(api, verb)(url, data="x")


def by_route(stage: Stage) -> None:
    """Click what fetches, with a route of the user's that sends it from Playwright's driver."""
    stage.page.route(stage.sink_url, lambda route: route.fulfill(response=route.fetch()))
    stage.page.click("#go")
