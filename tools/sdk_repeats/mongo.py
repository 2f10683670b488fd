"""A server on loopback that speaks MongoDB's wire protocol, as the primary of a set of one: it only counts."""

import socket
import struct
import threading
from collections.abc import Mapping
from typing import Any, Self

from forbear_testkit.lazily import Library as Lazy

bson: Any = Lazy("bson")
_OP_REPLY, _OP_QUERY, _OP_MSG = 1, 2004, 2013
_QUIET = {"hello", "isMaster", "ismaster", "ping", "endSessions", "buildInfo"}


class MongoServer:
    """`with MongoServer() as server:`; the response to the first command that is no greeting is lost.

    `executed` has a key for each of these commands: a server drops a second one with the same session and number.
    """

    def __init__(self) -> None:
        self.executed: list[str | None] = []
        self._lock = threading.Lock()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with connection, connection.makefile("rb") as stream:
            while head := stream.read(16):
                length, number, _, code = struct.unpack("<iiii", head)
                command = _parse(code, stream.read(length - 16))
                response = self._answer(command)
                if response is None:
                    return
                connection.sendall(_message(code, number, bson.encode(response)))

    def _answer(self, command: Mapping[str, Any]) -> dict[str, Any] | None:
        name = next(iter(command))
        if name in _QUIET:
            return self._greeting()
        key = None if "txnNumber" not in command else f"{command['lsid']['id']} {command['txnNumber']}"
        with self._lock:
            self.executed.append(key)
            if len(self.executed) == 1:
                return None
        return {"ok": 1, "n": 1, "nModified": 1, "value": None, "cursor": {"id": 0, "ns": "d.c", "firstBatch": []}}

    def _greeting(self) -> dict[str, Any]:
        address = f"127.0.0.1:{self.port}"
        return {
            "ok": 1, "isWritablePrimary": True, "ismaster": True, "setName": "rs", "hosts": [address], "me": address,
            "primary": address, "minWireVersion": 0, "maxWireVersion": 25, "logicalSessionTimeoutMinutes": 30,
            "maxBsonObjectSize": 16_777_216, "maxMessageSizeBytes": 48_000_000, "maxWriteBatchSize": 100_000,
        }  # fmt: skip


def _parse(code: int, body: bytes) -> Mapping[str, Any]:
    """Return the command in the body of a message; documents beside it are left out."""
    if code == _OP_QUERY:
        name_end = body.index(b"\0", 4)
        body = body[name_end + 9 :]
    else:
        body = body[5:]
    (length,) = struct.unpack_from("<i", body)
    command: Mapping[str, Any] = bson.decode(body[:length])
    return command


def _message(code: int, number: int, document: bytes) -> bytes:
    if code == _OP_QUERY:
        code, body = _OP_REPLY, struct.pack("<iqii", 8, 0, 0, 1) + document
    else:
        body = struct.pack("<iB", 0, 0) + document
    return struct.pack("<iiii", len(body) + 16, 0, number, code) + body
