"""A server in a thread that counts orders, for storms to disturb."""

from collections.abc import Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

_BODY = b'{"id": 1}'


class OrdersHandler(BaseHTTPRequestHandler):
    """GET answers with an order, POST makes one; both send the same JSON."""

    protocol_version = "HTTP/1.1"
    wbufsize = -1  # a response in one packet: two would wait for each other

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(_BODY)))
        self.end_headers()
        self.wfile.write(_BODY)

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        assert isinstance(self.server, OrdersServer)
        self.server.orders.append(self.path)
        self.do_GET()

    def log_message(self, format: str, *args: object) -> None:
        """Write no log."""


class OrdersServer(ThreadingHTTPServer):
    """The server; `orders` has the path of each POST."""

    daemon_threads = True
    block_on_close = False

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), OrdersHandler)
        self.orders: list[str] = []

    @property
    def url(self) -> str:
        """Return the URL, without a slash at the end."""
        return f"http://127.0.0.1:{self.server_port}"

    def count(self) -> int:
        """Return how many orders were made."""
        return len(self.orders)


@contextmanager
def orders_server() -> Generator[OrdersServer]:
    """Run a server within the block."""
    with OrdersServer() as server:
        thread = Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()
