"""A server that speaks TLS in the name of Google's hosts, and passes the plain bytes on to a server on this machine."""

import socket
import ssl
import threading
from collections.abc import Generator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

from forbear_testkit.clients.listen import listening
from forbear_testkit.clients.secure import self_signed

HOSTS = ("storage.googleapis.com", "iam.googleapis.com", "cloudresourcemanager.googleapis.com")


@contextmanager
def tls_front(url: str, path: Path) -> Generator[tuple[str, ...]]:
    """The options of curl by which requests for `HOSTS` reach the server at `url`; `path` gets the certificate."""
    self_signed(path, *HOSTS)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(path)
    with listening(partial(_pass_on, context, int(url.rpartition(":")[2]))) as port:
        yield "--cacert", str(path), "--connect-to", f"::127.0.0.1:{port}"


@contextmanager
def tunnel(port: int) -> Generator[tuple[str, list[str]]]:
    """The URL of a proxy whose tunnels all lead to `port` of this machine, and the first lines of its requests."""
    lines: list[str] = []

    def serve(connection: socket.socket) -> None:
        lines.append(connection.recv(65536).decode().partition("\r\n")[0])
        connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
        with socket.create_connection(("127.0.0.1", port)) as back:
            _both_ways(connection, back)

    with listening(serve) as own:
        yield f"http://127.0.0.1:{own}", lines


def _pass_on(context: ssl.SSLContext, port: int, connection: socket.socket) -> None:
    with (
        context.wrap_socket(connection, server_side=True) as front,
        socket.create_connection(("127.0.0.1", port)) as back,
    ):
        _both_ways(front, back)


def _both_ways(front: socket.socket, back: socket.socket) -> None:
    returning = threading.Thread(target=_copy, args=(back, front))
    returning.start()
    _copy(front, back)
    returning.join()


def _copy(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(65536):
            target.sendall(data)
    with suppress(OSError):
        socket.socket.shutdown(target, socket.SHUT_WR)
