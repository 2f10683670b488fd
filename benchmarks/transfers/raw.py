"""The floor: the requests that a transfer needs, written to blocking sockets by hand, over one connection."""

import socket
from typing import BinaryIO
from urllib.parse import quote, urlsplit

from benchmarks.transfers import measured
from benchmarks.transfers.task import BUCKET, Outcome, Task

_CHUNK = 64 * 1024 * 1024
_PIECE = 1024 * 1024


def version() -> str:
    return ""


def run(task: Task) -> Outcome:
    ways = {(True, True): _large_up, (True, False): _large_down, (False, True): _small_up, (False, False): _small_down}
    work = ways[task.large, task.up]

    def transfer() -> tuple[()]:
        work(task, _Connection(task.url))
        return ()

    return measured.call(transfer)


class _Connection:
    """One connection and what it has read ahead."""

    def __init__(self, url: str) -> None:
        place = urlsplit(url)
        self._host = f"Host: {place.netloc}\r\n".encode()
        self.socket = socket.create_connection((place.hostname, place.port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def head(self, line: bytes, fields: bytes = b"") -> bytes:
        """A request up to its body."""
        return line + b" HTTP/1.1\r\n" + self._host + fields + b"\r\n"

    def reply(self) -> tuple[int, bytes, bytes, int]:
        """Status, head, the part of the body that came along, and how long the body is."""
        text = b""
        while (end := text.find(b"\r\n\r\n")) < 0:
            text += self._receive()
        head = text[:end]
        return int(head[9:12]), head, text[end + 4 :], int(_field(head, b"content-length") or 0)

    def answer(self) -> tuple[int, bytes, bytes]:
        """Status, head and the whole body of a small reply."""
        status, head, body, length = self.reply()
        while len(body) < length:
            body += self._receive()
        return status, head, body

    def save(self, file: BinaryIO, begun: bytes, length: int) -> None:
        """Write the body of a large reply to a file."""
        buffer = memoryview(bytearray(_PIECE))
        length -= file.write(begun)
        while length:
            count = self.socket.recv_into(buffer, min(length, _PIECE))
            if not count:
                raise ConnectionError("the server closed the connection")
            length -= file.write(buffer[:count])

    def _receive(self) -> bytes:
        received = self.socket.recv(65536)
        if not received:
            raise ConnectionError("the server closed the connection")
        return received


def _field(head: bytes, name: bytes) -> bytes | None:
    for line in head.split(b"\r\n"):
        key, _, value = line.partition(b":")
        if key.lower() == name:
            return value.strip()
    return None


def _done(status: int, head: bytes, *good: int) -> bool:
    """Whether it worked; False to send it again, because it met a fault."""
    if status in good or status == 503:
        return status != 503
    raise RuntimeError(head.decode(errors="replace"))


def _small_up(task: Task, connection: _Connection) -> None:
    path = f"POST /upload/storage/v1/b/{BUCKET}/o?uploadType=media&ifGenerationMatch=0&name="
    for name in task.names:
        with task.file(name).open("rb", buffering=0) as file:
            data = file.read()
        line = (path + quote(task.object(name), safe="")).encode()
        request = connection.head(line, b"Content-Length: %d\r\n" % len(data)) + data
        while True:
            connection.socket.sendall(request)
            status, head, _ = connection.answer()
            if _done(status, head, 200):
                break


def _small_down(task: Task, connection: _Connection) -> None:
    for name in task.names:
        request = connection.head(_media(task, name))
        while True:
            connection.socket.sendall(request)
            status, head, data = connection.answer()
            if _done(status, head, 200):
                break
        with task.file(name).open("wb", buffering=0) as file:
            file.write(data)


def _large_up(task: Task, connection: _Connection) -> None:
    [name] = task.names
    path = f"POST /upload/storage/v1/b/{BUCKET}/o?uploadType=resumable&ifGenerationMatch=0&name="
    start = connection.head((path + quote(task.object(name), safe="")).encode(), b"Content-Length: 0\r\n")
    while True:
        connection.socket.sendall(start)
        status, head, _ = connection.answer()
        if _done(status, head, 200):
            break
    session = urlsplit((_field(head, b"location") or b"").decode())
    line = f"PUT {session.path}?{session.query}".encode()
    size, offset = task.file(name).stat().st_size, 0
    with task.file(name).open("rb") as file:
        while offset < size:
            end = min(offset + _CHUNK, size)
            fields = b"Content-Length: %d\r\nContent-Range: bytes %d-%d/%d\r\n" % (end - offset, offset, end - 1, size)
            connection.socket.sendall(connection.head(line, fields))
            connection.socket.sendfile(file, offset, end - offset)
            status, head, _ = connection.answer()
            if _done(status, head, 308, 200):
                offset = end


def _large_down(task: Task, connection: _Connection) -> None:
    [name] = task.names
    while True:
        connection.socket.sendall(connection.head(_media(task, name)))
        status, head, body, length = connection.reply()
        if status == 200:
            break
        while len(body) < length:
            body += connection.socket.recv(65536)
        _done(status, head, 200)
    with task.file(name).open("wb", buffering=0) as file:
        connection.save(file, body, length)


def _media(task: Task, name: str) -> bytes:
    return f"GET /storage/v1/b/{BUCKET}/o/{quote(task.object(name), safe='')}?alt=media".encode()
