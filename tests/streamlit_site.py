"""Runs the Streamlit application of ``tests/apps`` as a process of its own; the orders that it wrote are the oracle."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Self
from urllib.error import URLError
from urllib.request import ProxyHandler, build_opener

from browsermw.wire.launch import free_port

if TYPE_CHECKING:
    from types import TracebackType

APP = Path(__file__).parent / "apps" / "counter.py"
PATIENCE_S = 60.0
BUTTON = "[data-testid=stButton] button"
THANKED = "() => document.body.innerText.includes('Thank you')"
"""The application has taken the order; a page that leaves before that may take its frame back with its session."""


class StreamlitSite:
    """A running application; use it as a context manager.

    Args:
        folder: Where its orders are written.
    """

    def __init__(self, folder: Path) -> None:
        self._orders = folder / "orders"
        port = free_port()
        self.url = f"http://127.0.0.1:{port}"
        options = {"server.port": port, "server.address": "127.0.0.1", "server.headless": "true"}
        options |= {"browser.gatherUsageStats": "false", "server.fileWatcherType": "none"}
        command = [sys.executable, "-m", "streamlit", "run", str(APP), *(f"--{k}={v}" for k, v in options.items())]
        environment = {**os.environ, "ORDERS": str(self._orders), "HOME": str(folder)}
        self._running = subprocess.Popen(
            command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=folder
        )

    def __enter__(self) -> Self:
        """Wait until it answers."""
        opener = build_opener(ProxyHandler({}))
        deadline_s = time.monotonic() + PATIENCE_S
        while True:
            try:
                with opener.open(f"{self.url}/_stcore/health", timeout=5):
                    return self
            except (URLError, OSError):
                assert time.monotonic() < deadline_s, "Streamlit did not answer in time"
                assert self._running.poll() is None, "Streamlit ended"
            time.sleep(0.1)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._running.terminate()
        self._running.wait(PATIENCE_S)

    def order_count(self) -> int:
        """How many orders the application has taken."""
        return len(self._orders.read_text(encoding="utf-8").splitlines()) if self._orders.exists() else 0
