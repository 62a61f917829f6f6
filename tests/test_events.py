from __future__ import annotations

import logging

import pytest
import structlog

from browsermw.events import Events


@pytest.fixture
def events() -> Events:
    return Events("browsermw.test")


def test_an_application_that_asked_for_nothing_hears_warnings_only(
    events: Events, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    events.info("effect_dispatched", effect="e-1")
    events.warning("effect_refused", effect="e-2")
    assert [(it.levelname, it.getMessage()) for it in caplog.records] == [
        ("WARNING", "event='effect_refused' effect='e-2'")
    ]
    assert capsys.readouterr() == ("", "")


def test_the_logging_level_opens_the_rest(events: Events, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, "browsermw.test"):
        events.debug("gate_request_gone", url="/")
    assert [it.levelname for it in caplog.records] == ["DEBUG"]


def test_a_plain_bound_logger_gets_the_event_and_not_its_level(events: Events) -> None:
    """A logger without levels of its own has no way to tell a level that is handed over from the event."""
    written = structlog.testing.CapturingLoggerFactory()
    structlog.configure(processors=[], wrapper_class=structlog.BoundLogger, logger_factory=written)
    try:
        events.warning("effect_refused", effect="e-1")
    finally:
        structlog.reset_defaults()
    [call] = written.logger.calls
    assert (call.method_name, call.kwargs) == ("warning", {"event": "effect_refused", "effect": "e-1"})


def test_a_configured_structlog_gets_every_event(events: Events, caplog: pytest.LogCaptureFixture) -> None:
    heard: list[structlog.typing.EventDict] = []

    def keep(_logger: object, name: str, event: structlog.typing.EventDict) -> structlog.typing.EventDict:
        heard.append({"level": name, **event})
        raise structlog.DropEvent

    structlog.configure(processors=[keep])
    try:
        events.info("effect_dispatched", effect="e-1")
        events.error("answer_not_recorded")
    finally:
        structlog.reset_defaults()
    assert heard == [
        {"level": "info", "event": "effect_dispatched", "effect": "e-1"},
        {"level": "error", "event": "answer_not_recorded"},
    ]
    assert caplog.records == []
