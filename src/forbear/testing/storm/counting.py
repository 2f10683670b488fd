"""Count what the servers of a test have executed: the embedded cloud, Valkey, and any server that users register."""

import socket
import sys
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import contextmanager, suppress
from typing import Any

from forbear.testing.storm.tape import Tape

Effects = Callable[[], int | Mapping[str, int] | Iterable[str]]
"""A function that returns what a server has executed so far: a number, numbers by name, or a list of names."""

_registered: list[Effects] = []
_SECONDS = 1.0


@contextmanager
def effects(source: Effects) -> Generator[None]:
    """Count the effects of a server by `source` in all storms within the block; outside of a storm it does nothing.

    `source` returns what the server has executed so far: a number, a mapping of names to numbers, or a list with a name
    for each effect. TypeError if it is not callable.
    """
    if not callable(source):
        raise TypeError(f"`source` must be a function that returns how many effects there are, got {source!r}")
    _registered.append(source)
    try:
        yield
    finally:
        _registered.remove(source)


class EffectCount:
    """The effects of one run: made before it, `after` returns what was added."""

    def __init__(self, tape: Tape, extra: Iterable[Effects] = ()) -> None:
        self._tape = tape
        self._sources: list[Effects] = [*_clouds(), *_registered, *extra]
        self._before = [_counted(source) for source in self._sources]

    @property
    def http(self) -> bool:
        """Return whether a server counts its effects for us."""
        return bool(self._sources)

    @property
    def redis(self) -> bool:
        """Return whether all Redis servers of the run say what they executed."""
        return all(self._tape.servers.values())

    def after(self) -> Counter[str]:
        """Return how often each effect occurred since this object was made.

        Of Redis servers only the unsafe commands of this run count.
        """
        added: Counter[str] = Counter()
        for source, before in zip(self._sources, self._before, strict=True):
            added += _counted(source) - before
        labels = {part for call in self._tape.calls if call.unsafe for part in call.label.split("+")}
        unsafe = {label.partition(" ")[0] for label in labels} - {"MULTI", "EXEC"}
        for address, begun in self._tape.servers.items():
            now = _command_counts(address)
            added += Counter({name: now[name] - begun.get(name, 0) for name in now.keys() & unsafe})
        return added


def _counted(source: Effects) -> Counter[str]:
    value = source()
    return Counter({"effects": value}) if isinstance(value, int) else Counter(value)


def _clouds() -> list[Effects]:
    """Return a source for each embedded cloud that runs in this process."""
    server: Any = sys.modules.get("forbear.testing.cloud.server")
    if server is None:
        return []

    def source_of(cloud: Any) -> Effects:
        return lambda: [f"{effect.operation} {effect.resource}" for effect in cloud.effects]

    return [source_of(cloud) for cloud in list(server.RUNNING)]


def watch_redis(tape: Tape, address: str | tuple[str, int]) -> None:
    """Note how often each command ran on this server so far, unless that is known already."""
    if address not in tape.servers:
        tape.servers[address] = _command_counts(address)


def _command_counts(address: object) -> dict[str, int]:
    """Return how often a Redis server executed each command; nothing if it does not say so without a password."""
    family = socket.AF_UNIX if isinstance(address, str) else socket.AF_INET
    counts: dict[str, int] = {}
    with suppress(OSError, ValueError), socket.socket(family) as connection:
        connection.settimeout(_SECONDS)
        connection.connect(address)  # type: ignore[arg-type]
        connection.sendall(b"INFO commandstats\r\n")
        data = b""
        while b"\r\n" not in data or len(data) < int(data[1 : data.index(b"\r\n")]) + data.index(b"\r\n") + 4:
            chunk = connection.recv(65536)
            if not chunk or data.startswith(b"-"):
                return {}
            data += chunk
        for line in data.decode().splitlines():
            if line.startswith("cmdstat_"):
                name, _, rest = line.removeprefix("cmdstat_").partition(":calls=")
                counts[name.upper()] = int(rest.partition(",")[0])
    return counts
