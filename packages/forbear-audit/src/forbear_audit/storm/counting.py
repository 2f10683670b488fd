"""Count what the servers of a test have executed: the embedded cloud, Valkey, and any server that users register."""

import socket
import sys
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import contextmanager, suppress
from threading import Lock
from typing import Any, cast

from forbear.adapters import is_mapping
from forbear_audit.storm.run_record import RunRecord, SentCall, stop_recording

Effects = Callable[[], int | Mapping[str, int] | Iterable[str]]
"""A function that returns what a server has executed so far: a number, numbers by name, or a list of names."""

CHANGES = "changes"
"""The name under which a Redis counts how often its data changed since it was saved."""

_registered: list[Effects] = []
_SECONDS = 1.0


@contextmanager
def effects(source: Effects) -> Generator[None]:
    """Count the effects of a server by `source` in all storms within the block; outside of a storm it does nothing.

    `source` returns what the server has executed so far: a number, a mapping of names to numbers, or a list with a name
    for each effect. TypeError if it is not callable. Example: see `storm`.
    """
    if not callable(source):
        raise TypeError(f"`source` must be a function that returns how many effects there are, got {source!r}")
    _registered.append(source)
    try:
        yield
    finally:
        _registered.remove(source)


class EffectCount:
    """The effects of one run: made before it, `after` returns what was added.

    In a clean run `sample` marks the calls during which a count rises.
    """

    def __init__(self, record: RunRecord, extra: Iterable[Effects] = ()) -> None:
        self._record = record
        self._sources: list[Effects] = [*_clouds(), *_registered, *extra]
        self._before = [_read_count(source) for source in self._sources]
        self._open: list[tuple[SentCall, list[Counter[str]]]] = []
        self._lock = Lock()

    def sample(self, call: SentCall | None) -> None:
        """Mark the unsafe calls that have had a response since a count rose; `call` is about to be sent, if any."""
        begins = call is not None and call.unsafe and "503" in call.faults  # a Redis counts by itself
        if not self._sources or not (self._open or begins):
            return
        try:
            with stop_recording():
                now = [_read_count(source) for source in self._sources]
        except Exception:  # such as of a database that other threads may not read
            now = []
        with self._lock:
            still: list[tuple[SentCall, list[Counter[str]]]] = []
            for sent, before in self._open:
                if call is not None and not sent.responded:
                    still.append((sent, before))
                    continue
                sent.counted = not (now and before) or any((b - a).total() for a, b in zip(before, now, strict=True))
            self._open = [*still, (call, now)] if call is not None and begins else still

    def after(self) -> dict[str, Counter[str]]:
        """Return how often each effect of each source occurred since this object was made.

        "Redis" has the unsafe commands of this run at all its servers, and under CHANGES how often they changed data.
        """
        added: dict[str, Counter[str]] = {}
        for source, before in zip(self._sources, self._before, strict=True):
            added.setdefault(_name(source), Counter()).update(_read_count(source) - before)
        labels = {part for call in self._record.calls if call.unsafe for part in call.label.split("+")}
        unsafe = {label.partition(" ")[0] for label in labels} - {"MULTI", "EXEC"}
        for address, begun in self._record.servers.items():
            now = _command_counts(address)
            names = now.keys() & {*unsafe, CHANGES}
            added.setdefault("Redis", Counter()).update({name: now[name] - begun.get(name, 0) for name in names})
        return added


def _name(source: Effects) -> str:
    """Return the name of a source: that of its function, "effects" if it has none."""
    name = str(getattr(source, "__name__", "effects"))
    return name if name.isidentifier() else "effects"


def _read_count(source: Effects) -> Counter[str]:
    """Return what a source has counted; TypeError if it returns none of the forms that are allowed."""
    value: Any = source()
    if isinstance(value, int):
        return Counter({_name(source): int(value)})
    if is_mapping(value) and all(isinstance(number, int) for number in value.values()):
        return Counter({str(name): number for name, number in value.items()})
    if isinstance(value, Iterable) and not isinstance(value, str | bytes | Mapping):
        names = cast("Iterable[object]", value)
        return Counter(str(name) for name in names)
    rule = "must return how many effects there are so far: a number, numbers by name, or a list of names"
    raise TypeError(f"`{_name(source)}`, a source of effects, {rule}; it returned {value!r}")


def _clouds() -> list[Effects]:
    """Return a source for each embedded cloud that runs in this process."""
    server: Any = sys.modules.get("forbear_cloud.server")
    if server is None:
        return []

    def source_of(server: Any) -> Effects:
        def cloud() -> list[str]:
            return [f"{effect.operation} {effect.resource}" for effect in server.effects]

        return cloud

    return [source_of(running) for running in list(server.RUNNING)]


def watch_redis(record: RunRecord, address: str | tuple[str, int]) -> None:
    """Note how often each command ran on this server so far, unless that is known already."""
    if address not in record.servers:
        record.servers[address] = _command_counts(address)


def _command_counts(address: object) -> dict[str, int]:
    """Return how often a Redis server executed each command, and changed its data.

    Nothing if it does not say so without a password.
    """
    family = socket.AF_UNIX if isinstance(address, str) else socket.AF_INET
    counts: dict[str, int] = {}
    with suppress(OSError, ValueError), socket.socket(family) as connection:
        connection.settimeout(_SECONDS)
        connection.connect(address)  # type: ignore[arg-type]
        connection.sendall(b"INFO all\r\n")
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
            elif line.startswith("rdb_changes_since_last_save:"):
                counts[CHANGES] = int(line.partition(":")[2])
    return counts
