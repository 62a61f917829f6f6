"""The runtime's thread: one asyncio loop for gate, relay and ledger calls.

It exists because the gate may not live on Playwright's connection: in the sync API nothing runs while the agent
thinks (field note 4). The agent's thread submits coroutines and waits; it never touches the loop's objects.
"""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, TypeVar

from browsermw.errors import BrowsermwError

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

Result = TypeVar("Result")


class LoopThread:
    """A daemon thread with an asyncio loop, and an executor for the ledger's blocking calls.

    Args:
        name: Of the thread.
        worker_count: How many ledger calls may run at once.
    """

    def __init__(self, name: str, worker_count: int) -> None:
        self._loop = asyncio.new_event_loop()
        self._executor = ThreadPoolExecutor(worker_count, thread_name_prefix=f"{name}-ledger")
        self._thread = threading.Thread(target=self._loop.run_forever, name=name, daemon=True)
        self._thread.start()

    def submit(self, work: Coroutine[Any, Any, Result]) -> Future[Result]:
        """Start a coroutine on the loop; the future is for the agent's thread."""
        if self._loop.is_closed():
            work.close()
            raise BrowsermwError("Nothing left the browser: this runtime is closed; open it again.")
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    async def in_executor(self, call: Callable[..., Result], *args: Any) -> Result:
        """Run a blocking ledger call; awaited on the loop."""
        return await self._loop.run_in_executor(self._executor, call, *args)

    def close(self) -> None:
        """Stop the loop, once all that was submitted is done or cancelled, and join the thread."""
        self.submit(_cancel_the_rest()).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._executor.shutdown()
        self._loop.close()


async def _cancel_the_rest() -> None:
    current = asyncio.current_task()
    rest = [task for task in asyncio.all_tasks() if task is not current]
    for task in rest:
        task.cancel()
    await asyncio.gather(*rest, return_exceptions=True)
    await asyncio.get_running_loop().shutdown_default_executor()
