"""Killed in the life of a click, in the sync flavour; what is asked is in ``tests.crash_cases``."""

from __future__ import annotations

import pytest

from tests.crash_cases import KilledAfterRelease as TestKilledAfterRelease
from tests.crash_cases import KilledBeforeTheClick as TestKilledBeforeTheClick
from tests.crash_cases import KilledBesideASocket as TestKilledBesideASocket
from tests.crash_cases import KilledHolding as TestKilledHolding
from tests.crash_cases import KilledInACheckpoint as TestKilledInACheckpoint
from tests.crash_cases import KilledInAStreamlitApplication as TestKilledInAStreamlitApplication
from tests.crash_cases import KilledOnRoutes as TestKilledOnRoutes
from tests.crash_cases import KilledWithTheAnswer as TestKilledWithTheAnswer

__all__ = [
    "TestKilledAfterRelease",
    "TestKilledBeforeTheClick",
    "TestKilledBesideASocket",
    "TestKilledHolding",
    "TestKilledInACheckpoint",
    "TestKilledInAStreamlitApplication",
    "TestKilledOnRoutes",
    "TestKilledWithTheAnswer",
]


@pytest.fixture
def flavour() -> str:
    return "sync"
