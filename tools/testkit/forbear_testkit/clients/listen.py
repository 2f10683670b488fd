"""Listening on loopback: every connection is talked to in a thread of its own, and all of it ends with the block."""

import socket
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress


@contextmanager
def listening(talk: Callable[[socket.socket], None]) -> Generator[int]:
    """The port; `talk` is given each connection, and may end with an OSError."""
    threads: list[threading.Thread] = []
    connections: list[socket.socket] = []

    def serve(connection: socket.socket) -> None:
        with suppress(OSError):
            talk(connection)

    def accept() -> None:
        while True:
            try:
                connection, _ = server.accept()
            except OSError:
                return
            connections.append(connection)
            threads.append(threading.Thread(target=serve, args=(connection,)))
            threads[-1].start()

    with socket.create_server(("127.0.0.1", 0)) as server:
        accepting = threading.Thread(target=accept)
        accepting.start()
        try:
            yield server.getsockname()[1]
        finally:
            server.shutdown(socket.SHUT_RDWR)
            accepting.join()
            for connection in connections:
                with suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)
            for thread in threads:
                thread.join()
            for connection in connections:
                connection.close()
