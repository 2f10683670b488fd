"""A small API on loopback for the examples: it executes requests, counts what it did, and fails as a script says."""

import json
import socket
from collections.abc import Callable

from forbear_testkit.clients.wire import Answer, Seen, Wire, _body, _Buffered, reply

LOST = "lost"
"""A fault: the request is executed, and the connection ends before its response."""

Execute = Callable[[Seen], object]


class Service(Wire):
    """`with Service(execute) as service:` calls `execute` for each request; what it returns is the JSON response.

    `fail` scripts the next requests: a status refuses one before it is executed, LOST executes one whose response is
    lost, and an Answer replaces the response. `execute` may return an Answer of its own.
    """

    def __init__(self, execute: Execute) -> None:
        super().__init__(reply(200))
        self._execute = execute
        self._faults: list[int | str | Answer] = []
        self.done: list[str] = []
        """The lines of the requests that were executed."""

    def fail(self, *faults: int | str | Answer) -> None:
        """Fail the next requests in turn; later ones succeed."""
        self._faults += faults

    def count(self, start: str) -> int:
        """Return how many requests were executed whose line begins with `start`, such as "POST /orders"."""
        return sum(line.startswith(start) for line in self.done)

    def _serve(self, sock: socket.socket) -> None:
        with sock.makefile("rb", buffering=0) as raw:
            stream = _Buffered(raw)
            while head := stream.until(b"\r\n\r\n"):
                body, whole = _body(head, stream, None)
                request = Seen(head.decode("latin-1"), body, whole, 0)
                with self._lock:
                    self.seen.append(request)
                    answer = self._response(request)
                if not self._answer(sock, stream, answer):
                    return

    def _response(self, request: Seen) -> Answer:
        fault = self._faults.pop(0) if self._faults else None
        if isinstance(fault, int):
            return as_json({"error": {"message": "come back later", "type": "server_error"}}, fault, "Retry-After: 7")
        if isinstance(fault, Answer):
            return fault
        self.done.append(request.line)
        result = self._execute(request)
        if fault == LOST:
            return Answer(end="reset")
        return result if isinstance(result, Answer) else as_json(result)


def as_json(value: object, status: int = 200, *headers: str) -> Answer:
    """Return a response with a JSON body."""
    return reply(status, json.dumps(value).encode(), "Content-Type: application/json", *headers)
