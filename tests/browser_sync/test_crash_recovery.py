"""Who may go on after a kill, in the sync flavour; what is asked is in ``tests.crash_recovery``."""

from __future__ import annotations

import pytest

from tests.crash_recovery import DamagedLedger as TestDamagedLedger
from tests.crash_recovery import LiveOwner as TestLiveOwner
from tests.crash_recovery import OnPostgres as TestOnPostgres
from tests.crash_recovery import WithoutTheRelay as TestWithoutTheRelay
from tests.crash_recovery import bare_browser

__all__ = ["TestDamagedLedger", "TestLiveOwner", "TestOnPostgres", "TestWithoutTheRelay", "bare_browser"]


@pytest.fixture
def flavour() -> str:
    return "sync"
