"""A connection to a Valkey server that shows what each command leaves."""

from collections.abc import Iterable, Sequence
from typing import Any

import redis
from redis.exceptions import ResponseError

State = dict[bytes, tuple[object, int]]


class Live:
    """One connection to a server; an error response is a response as any other."""

    def __init__(self, path: str) -> None:
        self._client = redis.Redis(unix_socket_path=path, protocol=2)
        self._connection: Any = self._client.connection_pool.get_connection()

    def close(self) -> None:
        self._connection.disconnect()
        self._client.close()

    def run(self, commands: Iterable[Sequence[Any]]) -> list[Any]:
        """Return the responses to commands that are sent together."""
        sent = list(commands)
        self._connection.send_packed_command(self._connection.pack_commands(sent))
        return self.receive(len(sent))

    def send(self, *command: Any) -> None:
        """Send a command whose response is received later."""
        self._connection.send_command(*command)

    def receive(self, count: int) -> list[Any]:
        """The next messages of the server."""
        return [self._reply() for _ in range(count)]

    def __call__(self, *command: Any) -> Any:
        return self.run([command])[0]

    def _reply(self) -> Any:
        try:
            return self._connection.read_response()
        except ResponseError as error:
            return error

    def commands(self) -> dict[str, tuple[int, set[str]]]:
        """The commands that the server offers, subcommands included: their arity and flags."""
        found: dict[str, tuple[int, set[str]]] = {}
        described = self("COMMAND")
        while described:
            name, arity, flags, *rest = described.pop()
            found[_name(name)] = (arity, {flag.decode() for flag in flags})
            described.extend(rest[6])
        return found

    def tick(self) -> None:
        """Wait until the server's clock has moved on by a millisecond."""
        before = self._milliseconds()
        while self._milliseconds() == before:
            pass

    def _milliseconds(self) -> int:
        seconds, microseconds = self("TIME")
        return int(seconds) * 1000 + int(microseconds) // 1000

    def state(self) -> State:
        """All that is in the database, each key with its value and the time at which it expires."""
        keys = sorted(self("KEYS", "*"))
        types = self.run(["TYPE", key] for key in keys)
        values = self.run((_READS[kind][0], key, *_READS[kind][1]) for key, kind in zip(keys, types, strict=True))
        expiries = self.run(["PEXPIRETIME", key] for key in keys)
        return {
            key: (self._content(key, kind, value), expiry)
            for key, kind, value, expiry in zip(keys, types, values, expiries, strict=True)
        }

    def _content(self, key: bytes, kind: bytes, value: Any) -> object:
        """Return the content of a key, by its value: in a fixed order and with the times of its parts."""
        if kind == b"set":
            return sorted(value)
        if kind == b"hash":
            return value, self("HPEXPIRETIME", key, "FIELDS", len(value) // 2, *value[::2])
        return self._stream(key, value) if kind == b"stream" else value

    def _stream(self, key: bytes, entries: object) -> object:
        """A stream without its clocks: ids, entries, groups, consumers and what is pending how often."""
        info, groups = self.run([["XINFO", "STREAM", key], ["XINFO", "GROUPS", key]])
        names = [group[1] for group in groups]
        consumers = self.run(["XINFO", "CONSUMERS", key, name] for name in names)
        pending = self.run(["XPENDING", key, name, "-", "+", 100] for name in names)
        return (
            dict(zip(info[::2], info[1::2], strict=True))[b"last-generated-id"],
            entries,
            groups,
            [[consumer[1] for consumer in some] for some in consumers],
            [[(entry[0], entry[1], entry[3]) for entry in some] for some in pending],
        )


def _name(name: bytes) -> str:
    return name.decode().upper().replace("|", " ")


_READS: dict[bytes, tuple[str, tuple[object, ...]]] = {
    b"string": ("GET", ()),
    b"list": ("LRANGE", (0, -1)),
    b"set": ("SMEMBERS", ()),
    b"zset": ("ZRANGE", (0, -1, "WITHSCORES")),
    b"hash": ("HGETALL", ()),
    b"stream": ("XRANGE", ("-", "+")),
}
"""The command that reads a key of each type, and its arguments after the key."""


def same_but_for_time(one: object, other: object) -> bool:
    """Return whether two states are equal, but for times to live that started a little later."""
    if isinstance(one, int) and isinstance(other, int):
        return one == other or (min(one, other) > 10**12 and abs(one - other) < 10_000)
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same_but_for_time(one[key], other[key]) for key in one)
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(map(same_but_for_time, one, other))
    return one == other
