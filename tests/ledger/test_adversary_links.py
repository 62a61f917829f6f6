"""One ledger under two names: a live owner is seen through a symbolic link too."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from browsermw.errors import RunOwned, RuntimeOwned
from browsermw.ledger import open_ledger
from browsermw.ledger.contract import Boot

if TYPE_CHECKING:
    from pathlib import Path


def test_a_live_owner_is_not_robbed_by_way_of_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    link = tmp_path / "link.db"
    link.symlink_to(tmp_path / "real" / "agent.db")
    one = open_ledger(f"sqlite:///{tmp_path}/real/agent.db")
    one.open_boot(Boot("b-1", "agent-7", "host", 1))
    one.claim_run("invoice-8472", "b-1", {})
    other = open_ledger(f"sqlite:///{link}")
    with pytest.raises(RuntimeOwned):
        other.open_boot(Boot("b-2", "agent-7", "host", 2))
    other.open_boot(Boot("b-3", "agent-8", "host", 2))
    with pytest.raises(RunOwned):
        other.claim_run("invoice-8472", "b-3", {})
    assert other.key_path == one.key_path
    for ledger in (one, other):
        ledger.close()
