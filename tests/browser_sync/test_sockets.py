"""Clicks beside an open WebSocket: on record before a frame can leave, and no trouble where none does."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import TimeoutError as PlaywrightTimeoutError
from playwright.sync_api import expect

from browsermw import OutcomeUnknown, Policy, Quarantined
from tests.browser_kit import Journal, until
from tests.socket_server import SocketServer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

    from playwright.sync_api import Browser, BrowserContext, Page

    from browsermw import Run, Runtime
    from browsermw.models import Effect


@pytest.fixture
def server() -> Iterator[SocketServer]:
    with SocketServer() as started:
        yield started


def opened(page: Page, server: SocketServer, query: str) -> None:
    page.goto(f"{server.url}/?{query}")
    expect(page.locator("#state")).to_have_text("open")


def frames_on_record(journal: Journal) -> list[Effect]:
    return [effect for effect in journal.effects() if effect.channel == "WebSocket"]


@pytest.mark.parametrize(("query", "button"), [("at-once", "#send"), ("worker", "#worker")])
def test_a_frame_is_on_record_before_it_arrives(
    page: Page, server: SocketServer, journal: Journal, query: str, button: str
) -> None:
    opened(page, server, query)
    page.click(button)
    assert server.wait_for(1) == ["order"]
    [effect] = frames_on_record(journal)
    assert effect.dispatched_at.isoformat() < server.came[0][1]
    assert (effect.method, effect.url) == ("SEND", f"{server.url.replace('http', 'ws')}/socket/echo")
    assert str(effect.phase) == "OBSERVED"
    assert str(journal.action_of(effect).phase) == "OBSERVED"


def test_a_click_that_sends_nothing_settles_to_no_effect(
    page: Page, server: SocketServer, journal: Journal, run: Run
) -> None:
    opened(page, server, "at-once")
    page.click("#quiet")
    page.click("#quiet")
    assert [(str(it.phase), it.reason) for it in frames_on_record(journal)] == [("ABANDONED", "no frame followed")] * 2
    assert [str(it.phase) for it in journal.actions()] == ["OBSERVED"] * 3
    assert run.quarantined == []


def test_a_click_that_opens_the_socket_is_armed_for_it(page: Page, server: SocketServer, journal: Journal) -> None:
    page.goto(server.url)
    page.click("#open")
    server.wait_for(1)
    until(lambda: [it.kind for it in journal.actions()] == ["navigate", "click"])
    expect(page.locator("#state")).to_have_text("got order")
    assert len(frames_on_record(journal)) == 1


def test_a_socket_that_breaks_after_the_frame_is_in_doubt(
    page: Page, server: SocketServer, journal: Journal, run: Run
) -> None:
    opened(page, server, "at-once&way=dying")
    page.click("#send")
    server.wait_for(1)
    expect(page.locator("#state")).to_have_text("closed")
    if not run.quarantined:  # the click was over before the connection broke, and the socket open until then
        assert [str(it.phase) for it in frames_on_record(journal)] == ["OBSERVED"]
        return
    with pytest.raises(Quarantined):
        page.click("#send")


def test_an_application_that_says_goodbye_itself_after_the_answer_is_in_no_doubt(
    page: Page, server: SocketServer, run: Run
) -> None:
    opened(page, server, "at-once")
    page.click("#send")
    expect(page.locator("#state")).to_have_text("got order")
    page.evaluate("socket.close()")
    assert run.quarantined == []


def test_a_failed_call_whose_frame_left_is_in_doubt(page: Page, server: SocketServer, run: Run) -> None:
    opened(page, server, "at-once&way=silent")
    page.evaluate("document.querySelector('#quiet').onmouseover = () => socket.send('order')")
    page.evaluate("document.querySelector('#quiet').disabled = true")
    page.add_style_tag(content="#quiet { pointer-events: auto }")
    page.evaluate("socket.send('order')")
    with pytest.raises(PlaywrightTimeoutError) as caught:
        page.click("#quiet", timeout=500)
    assert not isinstance(caught.value, OutcomeUnknown)  # nothing left during the click itself
    page.evaluate("setTimeout(() => socket.send('order'), 150)")
    with pytest.raises(PlaywrightTimeoutError) as caught:
        page.click("#quiet", timeout=800)
    assert isinstance(caught.value, OutcomeUnknown)
    assert "do not repeat" in str(caught.value).lower()
    assert [it.effect and it.effect.channel for it in run.quarantined] == ["WebSocket"]


def test_a_socket_of_another_page_does_not_arm_this_one(
    context: BrowserContext, server: SocketServer, journal: Journal
) -> None:
    opened(context.new_page(), server, "at-once")
    other = context.new_page()
    other.goto(server.url)
    other.click("#quiet")
    assert frames_on_record(journal) == []


def test_a_socket_that_the_policy_ignores_does_not_arm(
    opening: Callable[..., AbstractContextManager[tuple[Runtime, Browser]]], server: SocketServer
) -> None:
    policy = Policy(ignore_websockets=("ws://127.0.0.1:*/socket/*",), settle_s=1)
    with opening(policy) as (mw, browser), mw.run("r") as run:
        page = run.wrap(browser.new_context()).new_page()
        opened(page, server, "at-once")
        page.click("#send")
        server.wait_for(1)
        assert frames_on_record(Journal(mw, "r")) == []
