"""A server of raw bytes, for what no decent server does: each request on a connection gets the next scripted answer."""

import socket
import struct
import threading
from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from forbear_testkit.clients.listen import listening

_RESET = struct.pack("ii", 1, 0)


@dataclass(frozen=True)
class Seen:
    """One request as it arrived; `whole` says whether its body came to its end."""

    head: str
    body: bytes
    whole: bool
    connection: int

    @property
    def line(self) -> str:
        return self.head.partition("\r\n")[0]

    @property
    def method(self) -> str:
        return self.head.partition(" ")[0]

    @property
    def target(self) -> str:
        return self.line.split(" ")[1]

    def header(self, name: str) -> str | None:
        for line in self.head.split("\r\n")[1:]:
            key, _, value = line.partition(":")
            if key.lower() == name:
                return value.strip()
        return None


@dataclass(frozen=True)
class Answer:
    """The bytes to send, how much of the request's body to read before (None: all), and how to end.

    `end` is "keep", "close" (FIN), "reset" (RST) or "stall" (nothing until the client has gone). `first` is called
    before the data is sent, `then` after.
    """

    data: bytes = b""
    end: str = "keep"
    read: int | None = None
    first: Callable[[], object] = lambda: None
    then: Callable[[], object] = lambda: None


def reply(status: int, body: bytes = b"", *headers: str, end: str = "keep", length: int | None = None) -> Answer:
    """Return a response with a Content-Length, of a body that may be shorter (`length` is what it claims)."""
    lines = [f"HTTP/1.1 {status} Whatever", *headers]
    if status not in (204, 304):
        lines.append(f"Content-Length: {len(body) if length is None else length}")
    return Answer(("\r\n".join(lines) + "\r\n\r\n").encode() + body, end)


class Wire:
    """`with Wire(answer, answer, ...) as wire:`; requests beyond the script are answered with the last one."""

    def __init__(self, *answers: Answer) -> None:
        self.answers = list(answers)
        self.seen: list[Seen] = []
        self.connections = 0
        self.url = ""
        self._lock = threading.Lock()
        self._listening = listening(self._serve)

    def __enter__(self) -> Self:
        self.url = f"http://127.0.0.1:{self._listening.__enter__()}"
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._listening.__exit__(None, None, None)

    def _serve(self, sock: socket.socket) -> None:
        with self._lock:
            self.connections += 1
            number = self.connections
        with sock.makefile("rb", buffering=0) as raw:
            stream = _Buffered(raw)
            while head := stream.until(b"\r\n\r\n"):
                with self._lock:
                    answer = self._next(head)
                body, whole = _body(head, stream, answer.read)
                with self._lock:
                    self.seen.append(Seen(head.decode("latin-1"), body, whole, number))
                if not self._answer(sock, stream, answer):
                    return

    def _next(self, head: bytes) -> Answer:
        """The answer to a request, of which this is the head."""
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]

    def _answer(self, sock: socket.socket, stream: "_Buffered", answer: Answer) -> bool:
        answer.first()
        sock.sendall(answer.data)
        answer.then()
        if answer.end == "stall":
            while stream.more():
                pass
        if answer.end == "reset":
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
        if answer.end == "close":
            sock.shutdown(socket.SHUT_WR)
            while stream.more():
                pass
        if answer.end != "keep":
            sock.close()
        return answer.end == "keep"


class _Buffered:
    """The bytes that were read of a connection and not yet used."""

    def __init__(self, raw: socket.SocketIO) -> None:
        self._raw = raw
        self._data = b""

    def more(self) -> bool:
        piece = self._raw.read(65536) or b""
        self._data += piece
        return bool(piece)

    def until(self, mark: bytes) -> bytes:
        while mark not in self._data:
            if not self.more():
                return b""
        found, _, self._data = self._data.partition(mark)
        return found

    def take(self, count: int) -> bytes:
        while len(self._data) < count:
            if not self.more():
                break
        taken, self._data = self._data[:count], self._data[count:]
        return taken


def _body(head: bytes, stream: _Buffered, most: int | None) -> tuple[bytes, bool]:
    """The body of a request, or its first so many bytes, and whether that is all of it."""
    headers = dict(line.lower().split(b":", 1) for line in head.split(b"\r\n")[1:])
    if b"transfer-encoding" not in headers:
        length = int(headers.get(b"content-length", b"0"))
        body = stream.take(length if most is None else min(most, length))
        return body, len(body) == length
    if most is not None:
        return stream.take(most), False
    body = b""
    while size := stream.until(b"\r\n"):
        length = int(size, 16)
        chunk = stream.take(length)
        ended = stream.take(2) == b"\r\n"
        body += chunk
        if length == 0:
            return body, ended
        if len(chunk) < length:
            break
    return body, False
