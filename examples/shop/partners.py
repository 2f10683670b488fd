"""The partners of the shop: a bank and a warehouse on one real server, which counts what it executes."""

import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

BODY = b'{"receipt": "R-1", "pieces": 3, "euro": 0.92}'


class Requests(BaseHTTPRequestHandler):
    """Executes requests; every response has the same body."""

    def do_GET(self) -> None:
        """Read something."""
        self.send_response(200)
        self.send_header("Content-Length", str(len(BODY)))
        self.end_headers()
        self.wfile.write(BODY)

    def do_POST(self) -> None:
        """Charge an order, once for each Idempotency-Key; or reserve an item, once for each order."""
        assert isinstance(self.server, Partners)
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path == "/reservations":
            self.server.reservations[request["order"]] = request["item"]
        elif self.server.is_new(self.headers["Idempotency-Key"]):
            self.server.charges.append(request["order"])
        self.do_GET()

    def log_message(self, format: str, *args: object) -> None:
        """Write no log."""


class Partners(ThreadingHTTPServer):
    """The server: the orders that the bank has charged, and the items that the warehouse keeps for orders."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Requests)
        self.url = f"http://127.0.0.1:{self.server_port}"
        self.charges: list[str] = []
        self.reservations: dict[str, str] = {}
        self._keys: set[str] = set()

    def is_new(self, key: str | None) -> bool:
        """Return whether a charge with this key is a new one; without a key each is."""
        seen = key in self._keys
        self._keys |= {key} if key is not None else set()
        return not seen

    def executed(self) -> dict[str, int]:
        """Return how many charges and reservations there are."""
        return {"charges": len(self.charges), "reservations": len(self.reservations)}
