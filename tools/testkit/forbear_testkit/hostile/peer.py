"""A hostile HTTP server: it sends whatever a case makes up, without end if need be, and counts what is taken."""

import socket
from collections.abc import Callable, Iterable
from contextlib import suppress
from types import TracebackType
from typing import Self

from forbear_testkit.clients.listen import listening
from forbear_testkit.hostile.bounds import MIB

Pieces = Callable[[], Iterable[bytes]]
"""Makes the bytes to send after a request; an empty piece is to wait until the client has gone."""

MOST = 16 * MIB
"""Bytes in one response after which the peer gives up: buffers of the system hold a few MiB that nobody has read."""


class Peer:
    """`with Peer(pieces) as peer:`; every request gets the same response, and then the connection is closed."""

    def __init__(self, pieces: Pieces) -> None:
        self._pieces = pieces
        self._listening = listening(self._talk)
        self.url = ""
        self.requests = 0
        self.sent = 0
        """The most bytes that were taken of one response."""

    def __enter__(self) -> Self:
        self.url = f"http://127.0.0.1:{self._listening.__enter__()}"
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._listening.__exit__(None, None, None)

    def _talk(self, connection: socket.socket) -> None:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 64 * 1024)
        head = b""
        while b"\r\n\r\n" not in head:
            more = connection.recv(65536)
            if not more:
                return
            head += more
        self.requests += 1
        sent = 0
        with suppress(OSError):
            for piece in self._pieces():
                if not piece:
                    while connection.recv(65536):
                        pass
                    break
                connection.sendall(piece)
                sent += len(piece)
                self.sent = max(self.sent, sent)
                if sent > MOST:
                    break
            connection.shutdown(socket.SHUT_RDWR)
        connection.close()
