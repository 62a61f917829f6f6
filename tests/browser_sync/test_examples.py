"""The examples do what they say, as programs of their own, and the shop counts one order."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.shop_site import Shop

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("name", ["order_sync.py", "order_async.py"])
def test_an_order_is_placed_once_however_often_the_example_is_run(name: str, tmp_path: Path) -> None:
    with Shop.start() as shop:
        first = run_example(name, shop.url, tmp_path)
        assert (first.returncode, first.stderr) == (0, "")
        assert "Placed: ORD-0001" in first.stdout
        again = run_example(name, shop.url, tmp_path)
        assert (again.returncode, again.stderr) == (0, "")
        assert "placed already" in again.stdout
        assert shop.count("/order") == 1


def run_example(name: str, shop: str, folder: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(ROOT / "examples" / name), shop, f"sqlite:///{folder}/ledger.db", "order-1"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=90, check=False)
