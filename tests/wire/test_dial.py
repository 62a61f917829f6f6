from __future__ import annotations

import asyncio
import socket
import threading
from concurrent.futures import ThreadPoolExecutor

from browsermw.wire.dial import dial


async def test_an_address_is_dialled_while_names_hang_in_the_resolver() -> None:
    loop, answers = asyncio.get_running_loop(), threading.Event()
    with ThreadPoolExecutor(1) as only:
        loop.set_default_executor(only)
        hanging = loop.run_in_executor(None, answers.wait)
        with socket.create_server(("127.0.0.1", 0)) as server:
            try:
                async with asyncio.timeout(5):
                    connected = await dial("127.0.0.1", server.getsockname()[1], None, 5.0)
                connected.close()
            finally:
                answers.set()
        await hanging
