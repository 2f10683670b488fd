"""Small servers of the wire protocols of Kafka and of AMQP 0-9-1: each knows only what its client needs to send."""

import socket
import struct
import threading
from typing import Any, BinaryIO

PRODUCE, METADATA, VERSIONS, INIT_PRODUCER = 0, 3, 18, 22
# The lowest versions by which a client takes the broker for one that knows idempotent producers.
_SUPPORTED = {PRODUCE: (3, 3), METADATA: (4, 4), VERSIONS: (0, 0), INIT_PRODUCER: (0, 0)}
_UNSUPPORTED_VERSION = 35


class Kafka:
    """A broker of Kafka with one topic, "orders", of one partition; `executed` counts the batches that it took.

    The first `faults` of them end without a response, or with the error `code`.
    """

    def __init__(self, faults: int = 1, code: int | None = None) -> None:
        self.faults = faults
        self.code = code
        self.executed = 0
        self.port = 0

    def talk(self, connection: socket.socket) -> None:
        """Answer each request of a connection, by the numbers of the APIs."""
        self.port = connection.getsockname()[1]
        with connection.makefile("rb") as stream:
            while head := stream.read(4):
                request = stream.read(*struct.unpack(">i", head))
                api, version, number = struct.unpack(">hhi", request[:8])
                body = self._answer(api, version)
                if body is None:
                    connection.shutdown(socket.SHUT_RDWR)
                    return
                connection.sendall(struct.pack(">ii", 4 + len(body), number) + body)

    def _answer(self, api: int, version: int) -> bytes | None:
        if api == VERSIONS:
            code = _UNSUPPORTED_VERSION if version else 0
            apis = b"".join(struct.pack(">hhh", key, *versions) for key, versions in _SUPPORTED.items())
            return struct.pack(">hi", code, len(_SUPPORTED)) + apis
        if api == METADATA:
            broker = struct.pack(">i", 1) + _text("127.0.0.1") + struct.pack(">ih", self.port, -1)
            partition = struct.pack(">ihiiiiii", 1, 0, 0, 1, 1, 1, 1, 1)
            topic = struct.pack(">h", 0) + _text("orders") + b"\0" + partition
            return struct.pack(">ii", 0, 1) + broker + struct.pack(">hii", -1, 1, 1) + topic
        if api == INIT_PRODUCER:
            return struct.pack(">ihqh", 0, 0, 7, 0)
        self.executed += 1
        code = 0
        if self.executed <= self.faults:
            if self.code is None:
                return None
            code = self.code
        return struct.pack(">i", 1) + _text("orders") + struct.pack(">iihqqi", 1, 0, code, self.executed, -1, 0)


def _text(text: str) -> bytes:
    return struct.pack(">h", len(text)) + text.encode()


METHODS: dict[tuple[int, int], str] = {
    (10, 11): "start-ok", (10, 31): "tune-ok", (10, 40): "open", (10, 50): "close", (10, 51): "close-ok",
    (20, 10): "channel.open", (20, 40): "channel.close", (40, 10): "exchange.declare", (50, 10): "queue.declare",
    (50, 20): "queue.bind", (50, 40): "queue.delete", (60, 40): "basic.publish", (60, 70): "basic.get",
    (85, 10): "confirm.select",
}  # fmt: skip
"""The methods of AMQP that a client sends here, by class and number; the answer to most has the next number."""

_OWN = ("start-ok", "tune-ok", "open", "close", "close-ok", "channel.open", "channel.close", "confirm.select")
_CONFIRMS = b"".join((b"\x12publisher_confirms", b"t\1", b"\x0abasic.nack", b"t\1"))
_CAPABILITIES = struct.pack(">B12sBi", 12, b"capabilities", ord("F"), len(_CONFIRMS)) + _CONFIRMS
_START = b"".join((
    struct.pack(">HHBBi", 10, 10, 0, 9, len(_CAPABILITIES)), _CAPABILITIES,
    struct.pack(">i5si5s", 5, b"PLAIN", 5, b"en_US"),
))  # fmt: skip
_ANSWERS: dict[str, bytes] = {
    "start-ok": struct.pack(">HHHIH", 10, 30, 0, 131_072, 0),  # tune
    "open": struct.pack(">HHB", 10, 41, 0),
    "channel.open": struct.pack(">HHi", 20, 11, 0),
    "queue.declare": struct.pack(">HHB", 50, 11, 6) + b"orders" + struct.pack(">ii", 0, 0),
    "queue.delete": struct.pack(">HHi", 50, 41, 0),
    "basic.get": struct.pack(">HHB", 60, 72, 0),  # empty
    "basic.publish": struct.pack(">HHQB", 60, 80, 1, 0),  # ack
}


class Amqp:
    """A broker of AMQP; `executed` has the methods that it took, without those that set up and end a connection.

    The connection of the first one ends without an answer, also if a client waits for none.
    """

    def __init__(self) -> None:
        self.executed = list[str]()
        self.confirms = False
        self._lock = threading.Lock()

    def talk(self, connection: socket.socket) -> None:
        """Answer each method of a connection."""
        with connection.makefile("rb") as stream:
            stream.read(8)
            connection.sendall(_frame(0, _START))
            while (frame := _next_frame(stream)) is not None:
                kind, channel, body = frame
                if kind != 1:  # header and body of a message
                    if kind == 3 and not self._answer(connection, channel, "basic.publish", b""):
                        return
                    continue
                group, number = struct.unpack(">HH", body[:4])
                name = METHODS[group, number]
                if name != "basic.publish" and not self._answer(connection, channel, name, body):
                    return

    def _answer(self, connection: socket.socket, channel: int, name: str, body: bytes) -> bool:
        """Answer a method, and return whether the connection goes on."""
        if name not in _OWN:
            with self._lock:
                self.executed.append(name)
            if len(self.executed) == 1:
                connection.shutdown(socket.SHUT_RDWR)
                return False
        group, number = next(key for key, value in METHODS.items() if value == name)
        if name == "confirm.select":
            self.confirms = True
        answer: Any = _ANSWERS.get(name, struct.pack(">HH", group, number + 1))
        if name not in ("tune-ok", "close-ok") and (name != "basic.publish" or self.confirms):
            connection.sendall(_frame(channel, answer))
        return name != "close"


def _frame(channel: int, body: bytes) -> bytes:
    return struct.pack(">BHI", 1, channel, len(body)) + body + b"\xce"


def _next_frame(stream: BinaryIO) -> tuple[int, int, bytes] | None:
    head = stream.read(7)
    if len(head) < 7:
        return None
    kind, channel, length = struct.unpack(">BHI", head)
    return kind, channel, stream.read(length + 1)[:-1]
