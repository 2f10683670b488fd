"""A real HTTP server that ends requests as a script says, and counts what it executed."""

import json
from collections import deque
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread
from typing import Any, Literal


@dataclass(frozen=True)
class Fate:
    """The end of a request: a status, a connection or a body that breaks, or no response at all.

    `executed` says whether it was executed before.
    """

    status: int = 200
    executed: bool = False
    breaks: Literal["no", "reset", "body", "silence"] = "no"
    error: str = ""
    details: tuple[dict[str, str], ...] = ()
    headers: tuple[tuple[str, str], ...] = ()

    @property
    def body(self) -> bytes:
        """The body of the response, if that is an error."""
        error = {"code": self.status, "message": "as told", "status": self.error, "details": list(self.details)}
        return json.dumps({"error": error}).encode()


OK = Fate(executed=True)


@dataclass
class Server:
    """The next requests end with `fates` in turn; then all succeed, with `content`."""

    fates: deque[Fate] = field(default_factory=deque[Fate])
    requests: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    executed: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    host: str = ""
    content: bytes = b"{}"
    closing: Event = field(default_factory=Event)

    def fail(self, *fates: Fate) -> None:
        """Let the next requests end so."""
        self.fates.extend(fates)

    def answer(self, handler: BaseHTTPRequestHandler) -> None:
        """Answer one request."""
        handler.rfile.read(int(handler.headers.get("content-length") or 0))
        request = handler.command, handler.path
        fate = self.fates.popleft() if self.fates else OK
        self.requests.append(request)
        if fate.executed:
            self.executed.append(request)
        handler.close_connection = True
        if fate.breaks == "silence":
            self.closing.wait(30)
        if fate.breaks in ("reset", "silence"):
            return
        body = fate.body if fate.status >= 400 else self.content
        handler.send_response(fate.status)
        for name, value in (*fate.headers, ("Connection", "close"), ("Content-Type", "application/json")):
            handler.send_header(name, value)
        handler.send_header("Content-Length", str(len(body) + (fate.breaks == "body")))
        handler.end_headers()
        handler.wfile.write(body)


@contextmanager
def running() -> Generator[Server]:
    """Run a server on loopback."""
    state = Server()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, format: str, *args: Any) -> None:
            """Keep quiet."""

        def respond(self) -> None:
            """Answer as told, whatever the method is."""
            state.answer(self)

        do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = respond  # noqa: N815

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        state.host = f"127.0.0.1:{server.server_port}"
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield state
        finally:
            state.closing.set()
            server.shutdown()
            thread.join()
