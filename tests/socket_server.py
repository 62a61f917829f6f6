"""A WebSocket server that counts frames, with a page that opens a socket and sends on it in the ways that pages do."""

from __future__ import annotations

import contextlib
import threading
from datetime import UTC, datetime
from http import HTTPStatus
from typing import TYPE_CHECKING, Self

from websockets.datastructures import Headers
from websockets.exceptions import ConnectionClosed
from websockets.http11 import Response
from websockets.sync.server import serve

if TYPE_CHECKING:
    from types import TracebackType

    from websockets.http11 import Request
    from websockets.sync.server import ServerConnection

PAGE = b"""<!doctype html><link rel=icon href="data:,"><title>Socket</title>
<button id=send>send</button><button id=quiet>quiet</button><button id=open>open</button><button id=bye>bye</button>
<button id=worker>worker</button><p id=state>closed</p>
<script>
const say = text => document.querySelector("#state").textContent = text;
const path = new URLSearchParams(location.search);
let socket, worker;
const connect = (first) => {
  socket = new WebSocket(`ws://${location.host}/socket/${path.get("way") ?? "echo"}`);
  socket.onopen = () => { say("open"); if (first) socket.send(first); };
  socket.onmessage = event => say(event.data);
  socket.onclose = () => say("closed");
};
const order = () => socket.readyState === 1 ? socket.send("order") : socket.addEventListener("open", order);
document.querySelector("#send").onclick = order;
document.querySelector("#bye").onclick = () => { socket.send("order"); socket.close(); };
document.querySelector("#open").onclick = () => connect("order");
document.querySelector("#worker").onclick = () => worker.postMessage("order");
if (path.has("worker")) {
  worker = new Worker(`/worker.js?${location.host}`);
  worker.onmessage = event => say(event.data);
} else if (path.has("at-once")) connect();
</script>"""
WORKER = b"""
const socket = new WebSocket(`ws://${location.search.slice(1)}/socket/echo`);
socket.onopen = () => postMessage("open");
socket.onmessage = event => postMessage(event.data);
onmessage = event => socket.send(event.data);
"""


class SocketServer:
    """Listens on 127.0.0.1 in a thread; use it as a context manager.

    ``/socket/echo`` answers each frame, ``/feed`` in capitals, ``/socket/silent`` never does, ``/socket/dying`` breaks
    off instead.

    Attributes:
        url: Of its page.
        feed_url: Of a socket for pages of others.
        came: Text and moment, as the shop writes it, of each frame that came, in order.
    """

    def __init__(self) -> None:
        self.came: list[tuple[str, str]] = []
        self._came = threading.Condition()
        self._server = serve(self._talk, "127.0.0.1", 0, process_request=self._page)
        self.url = f"http://127.0.0.1:{self._server.socket.getsockname()[1]}"
        self.feed_url = f"ws{self.url[4:]}/feed"
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._thread.join()

    def wait_for(self, count: int, timeout_s: float = 10) -> list[str]:
        """Wait until that many frames have come; their texts."""
        with self._came:
            assert self._came.wait_for(lambda: len(self.came) >= count, timeout_s), f"{len(self.came)} came"
            return [text for text, _ in self.came]

    def _page(self, connection: ServerConnection, request: Request) -> Response | None:
        path = request.path.partition("?")[0]
        if path == "/feed" or path.startswith("/socket/"):
            return None
        kind, body = ("text/javascript", WORKER) if path == "/worker.js" else ("text/html", PAGE)
        headers = Headers([("Content-Type", kind), ("Content-Length", str(len(body))), ("Connection", "close")])
        return Response(HTTPStatus.OK, "OK", headers, body)

    def _talk(self, connection: ServerConnection) -> None:
        assert connection.request is not None
        way = connection.request.path.rpartition("/")[2]
        with contextlib.suppress(ConnectionClosed):
            for sent in connection:
                text = str(sent, "utf-8") if isinstance(sent, bytes) else sent
                with self._came:
                    self.came.append((text, datetime.now(UTC).isoformat()))
                    self._came.notify_all()
                if way == "echo":
                    connection.send(f"got {text}")
                elif way == "feed":
                    connection.send(text.upper())
                elif way == "dying":
                    connection.socket.close()
                    return
