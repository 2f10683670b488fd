"""A proxy on loopback that knows the protocol of Redis, so that a test decides what happens to each command."""

import socket
import threading
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from io import BufferedReader
from random import Random

from forbear_testkit.clients.listen import listening

Command = tuple[bytes, ...]
Fate = bytes | str
"""The fate of a command: one of the words below, or an error response sent without asking the server."""

FORWARD, LOSE, CUT, HANG = "forward", "lose", "cut", "hang"
"""Executed and answered. Executed, and the connection cut before the answer. Cut before it is executed. No answer."""

_USED = b"""
    ASKING BLPOP DBSIZE DECR DEL DISCARD EVAL EVALSHA EXEC EXISTS EXPIRE FCALL FLUSHALL FUNCTION GET GETDEL GETSET HGET
    HSET INCR INCRBY KEYS LLEN LPOP LPUSH LRANGE MGET MSET MULTI PING PUBLISH READONLY RPUSH SADD SCAN SCRIPT SET
    SMEMBERS SPUBLISH STRLEN TTL TYPE UNLINK UNWATCH WAIT WATCH XADD XREAD ZADD
"""
_COMMAND = (b"COMMAND", b"INFO", *_USED.split())
"""The request in place of COMMAND: a client of a cluster takes 25 ms to read of all, and fails at one it misses."""

Script = Callable[[Command], Fate]


class Seen:
    """The names of the commands that arrived (`asked`) and were `executed`, and the number of connections."""

    def __init__(self) -> None:
        self.connections = 0
        self.asked: list[str] = []
        self.executed: list[str] = []
        self.port = 0


ABORTED = b"-EXECABORT Transaction discarded because of previous errors.\r\n"


def once(**fates: Fate) -> Script:
    """Return a script that applies a fate to each of these commands once, and then forwards them."""
    return in_turn(**{name: [fate] for name, fate in fates.items()})


def in_turn(**fates: Sequence[Fate]) -> Script:
    """Return a script that applies the fates of each of these commands in turn, and then forwards them."""
    left = {name.encode(): list(some) for name, some in fates.items()}

    def script(command: Command) -> Fate:
        some = left.get(command[0].upper())
        return some.pop(0) if some else FORWARD

    return script


def discarding(name: str, response: bytes) -> Script:
    """Return a script of a server that refuses the first command `name`, and therefore discards its transaction.

    A client may leave after the refusal, before its EXEC is read; the next transaction is not discarded then.
    """
    state = {"refused": False, "discards": False}

    def script(command: Command) -> Fate:
        if command[0].upper() == name.encode():
            state["discards"], state["refused"] = not state["refused"], True
            return response if state["discards"] else FORWARD
        return ABORTED if command[0].upper() == b"EXEC" and state["discards"] else FORWARD

    return script


def at_random(rate: float, seed: int, *names: bytes) -> Script:
    """Return a script that loses the responses to these commands at this rate."""
    dice, lock = Random(seed), threading.Lock()

    def script(command: Command) -> Fate:
        with lock:
            return LOSE if command[0] in names and dice.random() < rate else FORWARD

    return script


@contextmanager
def proxy(target: str | int, script: Script) -> Generator[Seen]:
    """Run a proxy to a Unix socket or a port, which forwards one command after the other."""
    seen = Seen()

    def talk(client: socket.socket) -> None:
        seen.connections += 1
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # or small responses wait for each other
        queueing = False
        with _connected(target) as server, client.makefile("rb") as requests, server.makefile("rb") as responses:
            while command := _command(requests):
                seen.asked.append(command[0].decode().upper())
                fate = script(command)
                if fate == HANG:
                    client.recv(1)  # until the client gives up
                if fate in (CUT, HANG):
                    break
                if isinstance(fate, bytes):
                    if queueing:  # what is refused after MULTI makes EXEC fail
                        server.sendall(_packed(b"REFUSED"))
                        _response(responses)
                    client.sendall(fate)
                    continue
                seen.executed.append(seen.asked[-1])
                queueing = seen.asked[-1] == "MULTI" or (queueing and seen.asked[-1] not in ("EXEC", "DISCARD"))
                server.sendall(_packed(*(_COMMAND if command == (b"COMMAND",) else command)))
                response = _response(responses)
                if fate == LOSE:
                    break
                client.sendall(response)
        client.shutdown(socket.SHUT_RDWR)

    with listening(talk) as port:
        seen.port = port
        yield seen


def _connected(target: str | int) -> socket.socket:
    if isinstance(target, int):
        return socket.create_connection(("127.0.0.1", target))
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(target)
    return connection


def _packed(*command: bytes) -> bytes:
    return b"*%d\r\n" % len(command) + b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in command)


def _command(stream: BufferedReader) -> Command:
    """Return the next command of a client, an empty one at the end."""
    line = stream.readline()
    if not line:
        return ()
    words: list[bytes] = []
    for _ in range(int(line[1:])):
        size = int(stream.readline()[1:])
        words.append(stream.read(size + 2)[:-2])
    return tuple(words)


def _response(stream: BufferedReader) -> bytes:
    """Return the next response of a server, byte by byte as it arrived."""
    line = stream.readline()
    size = int(line[1:]) if line[:1] in b"$*%~>" else 0
    if line[:1] == b"$":
        return line + (stream.read(size + 2) if size >= 0 else b"")
    parts = 2 * size if line[:1] == b"%" else max(size, 0)
    return line + b"".join(_response(stream) for _ in range(parts))
