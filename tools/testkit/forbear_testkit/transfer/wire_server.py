"""A server of a few lines for tests of the wire: it sends bytes as they are, HTTP or not."""

import socket
import threading
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from itertools import takewhile

from forbear_testkit.clients.listen import listening
from forbear_transfer.wire.pool import Pool

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
Answer = Callable[[int, bytes, socket.socket], Iterable[bytes]]


class Server:
    """A server that answers the nth request by `answer`, and keeps the heads and the bodies of all requests."""

    def __init__(self, answer: Answer) -> None:
        self.heads: list[bytes] = []
        self.bodies: list[bytes] = []
        self.connections = 0
        self.url = ""
        self._answer = answer
        self._lock = threading.Lock()

    def talk(self, connection: socket.socket) -> None:
        """Serve one connection until the answer asks to close it by an empty piece, or the client leaves."""
        with self._lock:
            self.connections += 1
        file = connection.makefile("rb")
        while head := b"".join(takewhile(lambda line: bytes(line).strip(), iter(file.readline, b""))):
            with self._lock:
                self.heads.append(head)
                number = len(self.heads)
            length = next(
                (int(line[15:]) for line in head.splitlines() if line.lower().startswith(b"content-length:")), 0
            )
            if b"expect-nothing" not in head:
                self.bodies.append(file.read(length))
            for piece in self._answer(number, head, connection):
                if not piece:
                    file.close()
                    connection.shutdown(socket.SHUT_RDWR)
                    return
                connection.sendall(piece)


@contextmanager
def serving(answer: Answer) -> Generator[Server]:
    """Serve on loopback."""
    server = Server(answer)
    with listening(server.talk) as port:
        server.url = f"http://127.0.0.1:{port}"
        yield server


async def fetched(pool: Pool, url: str, method: str = "GET", body: "bytes | Lump | None" = None) -> tuple[int, bytes]:
    """Make a request and read all of its response."""
    async with await pool.request(method, url, {}, body) as response:
        return response.status, await response.read()


class Lump:
    """A body of many pieces, which counts those that were taken; `length` is what it says of itself."""

    def __init__(self, pieces: int, size: int = 65536, length: int | None = None) -> None:
        self.count = pieces
        self.size = size
        self.length = pieces * size if length is None else length
        self.taken = 0

    def __len__(self) -> int:
        return self.length

    def pieces(self) -> Iterator[bytes]:
        for _ in range(self.count):
            yield b"x" * self.size
            self.taken += 1
