"""A server, the proxy before it and the TLS between, all in one: it executes, counts, and fails as a fault says.

It tells by the first byte what it is spoken to: TLS, HTTP/2 or HTTP/1.1. As a proxy it is asked for CONNECT, or for a
whole URL. Requests come one after the other; nothing here waits, but for the client.
"""

import socket
import ssl
import struct
from collections.abc import Generator, Iterable
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

import h2.config
import h2.connection
import h2.events
from h2.errors import ErrorCodes

from forbear_testkit.clients.listen import listening
from forbear_testkit.through_everything.faults import Fault

BODY = b"0123456789" * 10
LONG = b"0123456789" * 10_000
"""The body of a long response, more than an adapter waits for before it hands a response out."""

_FRAME = 10_000  # bytes; HTTP/2 allows for 16 384
_RESET = struct.pack("ii", 1, 0)
_NONSENSE = b"Tunnel connection failed: 503 Sorry\r\n\r\n"
_ALERT = b"\x15\x03\x03\x00\x02\x02\x28"  # fatal: handshake_failure


class Origin:
    """The counts of the server, and its steps for the next requests; each test begins with `play`."""

    def __init__(self, certificate: Path) -> None:
        self._tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._tls.load_cert_chain(certificate)
        self._tls.set_alpn_protocols(["h2", "http/1.1"])
        self._secured = set[ssl.SSLSocket]()
        self.port = 0
        self.play(None, 0, conditional=False)

    def play(self, fault: Fault | None, times: int, *, conditional: bool) -> None:
        """Forget what was counted; the fault happens so many times. A `conditional` request takes effect once."""
        self.executed = 0
        self.changed = 0
        self._fault = fault
        self._left = times
        self._conditional = conditional
        steps = () if fault is None else fault.steps
        self.chunked = "200 chunked" in steps
        self.body = LONG if "200 long" in steps else BODY

    def steps(self, at: str) -> tuple[str, ...]:
        """Return what goes wrong now, nothing if all goes well."""
        if self._fault is None or self._fault.at != at or not self._left:
            return ()
        self._left -= 1
        return self._fault.steps

    def execute(self) -> int:
        """Execute the request, and return the status of its response."""
        self.executed += 1
        if self._conditional and self.changed:
            return 412
        self.changed += 1
        return 200

    def talk(self, sock: socket.socket) -> None:
        """Speak to a client in its own protocol, until either ends the connection."""
        with sock:
            first = sock.recv(1, socket.MSG_PEEK)
            if first == b"\x16":
                self._shake_hands(sock)
            elif first == b"P" and sock.recv(3, socket.MSG_PEEK | socket.MSG_WAITALL) == b"PRI":
                _Http2(self, sock).serve()
            elif first:
                self._serve(sock)

    def _shake_hands(self, sock: socket.socket) -> None:
        steps = self.steps("tls")
        if steps:
            sock.recv(65536)
            sock.sendall({"garbage": b"220 hello\r\n", "alert": _ALERT}.get(steps[0], b""))
            hang_up(sock, steps[0])
            return
        with self._tls.wrap_socket(sock, server_side=True) as secured:
            self._secured.add(secured)
            try:
                if secured.selected_alpn_protocol() == "h2":
                    _Http2(self, secured).serve()
                else:
                    self._serve(secured)
            finally:
                self._secured.discard(secured)

    def end(self) -> None:
        """End the connections with TLS, whose sockets nobody else knows."""
        for secured in list(self._secured):
            with suppress(OSError):
                socket.socket.shutdown(secured, socket.SHUT_RDWR)

    def _serve(self, sock: socket.socket) -> None:
        with sock.makefile("rb") as stream:
            while request := _read(stream):
                method, target = request
                if method == "CONNECT":
                    break
                if not self._answer(sock, target):
                    return
            else:
                return
        steps = self.steps("tunnel")
        if not steps:
            sock.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
            self._shake_hands(sock)
            return
        if steps[0].isdecimal():
            sock.sendall(f"HTTP/1.1 {steps[0]} Sorry\r\nContent-Length: 0\r\n\r\n".encode())
        hang_up(sock, steps[0])

    def _answer(self, sock: socket.socket, target: str) -> bool:
        """Answer a request of HTTP/1.1, and return whether the connection stays open."""
        if target.endswith("/warm"):
            sock.sendall(_response(200))
            return True
        steps = self.steps("request")
        if not steps:
            sock.sendall(_response(self.execute(), self.body, chunked=self.chunked))
        for step in steps:
            if step == "execute":
                self.execute()
            elif step == "100":
                sock.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
            elif step == "503":
                sock.sendall(_response(503))
            elif step.startswith("200"):
                whole = _response(200, self.body, chunked=self.chunked)
                sock.sendall(whole[: -len(self.body) // 2])
            else:
                sock.sendall(_NONSENSE if step == "nonsense" else b"")
                hang_up(sock, step)
                return False
        return True


class _Http2:
    """A connection of HTTP/2."""

    def __init__(self, origin: Origin, sock: socket.socket) -> None:
        self._origin = origin
        self._sock = sock
        self._connection = h2.connection.H2Connection(h2.config.H2Configuration(client_side=False))
        self._targets: dict[int, str] = {}

    def serve(self) -> None:
        """Answer streams until either side ends the connection."""
        self._connection.initiate_connection()
        self._flush()
        while data := self._sock.recv(65536):
            for event in self._connection.receive_data(data):
                if isinstance(event, h2.events.RequestReceived):
                    headers = dict(event.headers or ())
                    self._targets[event.stream_id or 0] = headers[b":path"].decode()
                elif isinstance(event, h2.events.StreamEnded):
                    self._answer(event.stream_id or 0)
            self._flush()
            if self._connection.state_machine.state is h2.connection.ConnectionState.CLOSED:
                while self._sock.recv(65536):
                    pass

    def _answer(self, stream: int) -> None:
        connection = self._connection
        if self._targets[stream] == "/warm":
            self._respond(stream, 200)
            return
        steps = self._origin.steps("request")
        if not steps:
            self._respond(stream, self._origin.execute())
        for step in steps:
            if step == "execute":
                self._origin.execute()
            elif step == "100":
                connection.send_headers(stream, [(":status", "100")])
            elif step == "503":
                self._respond(stream, 503)
            elif step.startswith("200"):
                self._head(stream, 200)
                connection.send_data(stream, self._origin.body[: len(self._origin.body) // 20])
            elif step.startswith("go away"):
                last = stream - 2 if step == "go away late" else 0
                connection.close_connection(ErrorCodes.NO_ERROR, last_stream_id=last)
            elif step in ("refuse", "fail"):
                connection.reset_stream(
                    stream, ErrorCodes.REFUSED_STREAM if step == "refuse" else ErrorCodes.INTERNAL_ERROR
                )
            else:
                self._flush()
                hang_up(self._sock, step)
                raise ConnectionError
            self._flush()

    def _respond(self, stream: int, status: int) -> None:
        self._head(stream, status)
        body = self._origin.body
        for start in range(0, len(body), _FRAME):
            self._connection.send_data(stream, body[start : start + _FRAME])
        self._connection.end_stream(stream)

    def _head(self, stream: int, status: int) -> None:
        length = [] if self._origin.chunked else [("content-length", str(len(self._origin.body)))]
        self._connection.send_headers(stream, [(":status", str(status)), *length])

    def _flush(self) -> None:
        self._sock.sendall(self._connection.data_to_send())


def _response(status: int, body: bytes = BODY, *, chunked: bool = False) -> bytes:
    if chunked:
        head, body = "Transfer-Encoding: chunked", b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body)
    else:
        head = f"Content-Length: {len(body)}"
    return f"HTTP/1.1 {status} Whatever\r\n{head}\r\n\r\n".encode() + body


def _read(stream: BinaryIO) -> tuple[str, str] | None:
    """Read a request to its end, and return its method and target."""
    line = stream.readline().decode("latin-1")
    if not line:
        return None
    length = 0
    for header in _lines(stream):
        name, _, value = header.partition(b":")
        if name.lower() == b"content-length":
            length = int(value)
    stream.read(length)
    method, target, _ = line.split(" ")
    return method, target


def _lines(stream: BinaryIO) -> Iterable[bytes]:
    while (line := stream.readline()) not in (b"\r\n", b""):
        yield line


def hang_up(sock: socket.socket, how: str) -> None:
    """End a connection: "reset" by RST, "stall" once the client has gone, anything else by FIN.

    What the client still sends is read, below TLS: left unread, it would turn a FIN into a RST.
    """
    if how == "reset":
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
    else:
        if how != "stall":
            socket.socket.shutdown(sock, socket.SHUT_WR)
        while socket.socket.recv(sock, 65536):
            pass
    sock.close()


@contextmanager
def origin(certificate: Path) -> Generator[Origin]:
    """The server, listening."""
    served = Origin(certificate)
    with listening(served.talk) as port:
        served.port = port
        yield served
        served.end()
