"""A server on loopback that executes every request, and spoils the response to the first one of the main operation."""

import socket
import struct
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import NamedTuple, Self, cast

_RESET = struct.pack("ii", 1, 0)


class Request(NamedTuple):
    """One request as it arrived: `line` is method and target, and `headers` has lower-case names."""

    line: str
    headers: dict[str, str]
    body: bytes


class Response(NamedTuple):
    """A response that succeeds; the server adds its length."""

    status: int = 200
    body: bytes = b""
    headers: tuple[tuple[str, str], ...] = ()


class Origin:
    """`with Origin(is_main, respond, spoil) as origin:`; the requests for which `is_main` are in `executed`.

    The first of them gets the response `spoil`, none if that is None. All other requests get what `respond` returns.
    """

    def __init__(
        self, is_main: Callable[[Request], bool], respond: Callable[[Request], Response], spoil: Response | None
    ) -> None:
        self.executed: list[Request] = []
        self._is_main, self._respond, self._spoil = is_main, respond, spoil
        self._lock = threading.Lock()
        self._server = _Server(self)
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05})

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    @property
    def url(self) -> str:
        """The URL of the server, without a path."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def answer(self, request: Request) -> Response | None:
        """Execute a request, and return its response, None to lose it."""
        if self._is_main(request):
            with self._lock:
                self.executed.append(request)
                if len(self.executed) == 1:
                    return self._spoil
        return self._respond(request)


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, origin: Origin) -> None:
        self.origin = origin
        super().__init__(("127.0.0.1", 0), _Handler)

    def handle_error(self, request: object, client_address: object) -> None:
        """Ignore clients that went away."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def handle_one_request(self) -> None:
        """Read one request, execute it, and answer it or break the connection."""
        self.raw_requestline = self.rfile.readline(65537)
        if not self.raw_requestline or not self.parse_request():
            self.close_connection = True
            return
        headers = {name.lower(): value for name, value in self.headers.items()}
        request = Request(f"{self.command} {self.path}", headers, self._read_body(headers))
        response = cast("_Server", self.server).origin.answer(request)
        if response is None:
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
            self.close_connection = True
            return
        self.send_response(response.status)
        for name, value in response.headers:
            self.send_header(name, value)
        if response.status != 204:
            self.send_header("Content-Length", str(len(response.body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(response.body)

    def log_message(self, format: str, *args: object) -> None:
        """Print nothing."""

    def _read_body(self, headers: dict[str, str]) -> bytes:
        if "chunked" not in headers.get("transfer-encoding", ""):
            return self.rfile.read(int(headers.get("content-length", "0")))
        body = b""
        while size := int(self.rfile.readline().partition(b";")[0], 16):
            body += self.rfile.read(size)
            self.rfile.readline()
        while self.rfile.readline().strip():
            pass
        return body
