"""Where our events go: to structlog as the application configured it, else quietly to standard ``logging``.

A library that nobody asked must not print. structlog's own default prints every event to standard output, so it is
used only once the application has called ``structlog.configure``; until then events go to the ``logging`` logger of
the same name, which shows warnings and errors only. Events carry ids, phases and redacted URLs, nothing secret.
"""

from __future__ import annotations

import logging
from typing import Any

import structlog

_LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}


class Events:
    """Events of one part of browsermw; looks its destination up at each event, so that order of set-up is free.

    Args:
        name: Of the logger, such as ``browsermw.gate``.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._logger = logging.getLogger(name)
        self._quiet = structlog.wrap_logger(
            self._logger,
            processors=[
                structlog.processors.format_exc_info,
                structlog.processors.KeyValueRenderer(key_order=["event"]),
            ],
            wrapper_class=structlog.stdlib.BoundLogger,
        )

    def _write(self, level: str, event: str, facts: dict[str, Any]) -> None:
        if structlog.is_configured():
            getattr(structlog.get_logger(self._name), level)(event, **facts)
        elif self._logger.isEnabledFor(_LEVELS[level]):
            # Asked here, before structlog makes a record of it: a click announces six steps that mostly nobody hears.
            getattr(self._quiet, level)(event, **facts)

    def debug(self, event: str, **facts: Any) -> None:
        """Something that only a developer wants to see."""
        self._write("debug", event, facts)

    def info(self, event: str, **facts: Any) -> None:
        """A step in the life of a run, an action or an effect."""
        self._write("info", event, facts)

    def warning(self, event: str, **facts: Any) -> None:
        """Something was refused or is in doubt."""
        self._write("warning", event, facts)

    def error(self, event: str, **facts: Any) -> None:
        """Something could not be recorded."""
        self._write("error", event, facts)
