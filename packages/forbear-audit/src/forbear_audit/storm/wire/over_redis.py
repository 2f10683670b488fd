"""Faults in the connections of redis-py and valkey-py, sync and asyncio, below the retries of clients and clusters."""

from collections.abc import Callable, Iterable
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from inspect import iscoroutinefunction
from typing import Any

from forbear.adapters import describe_command
from forbear_audit.storm.counting import watch_redis
from forbear_audit.storm.faults import REDIS_FAULTS
from forbear_audit.storm.patching import Handle, finish, lead, run_now
from forbear_audit.storm.run_record import RunRecord, SentCall, replace_ids

_ATTRIBUTE = "_forbear_storm"
_OWN = frozenset({b"HELLO", b"AUTH", b"SELECT", b"CLIENT", b"READONLY", b"COMMAND", b"CLUSTER", b"INFO"})
_BRACKETS = frozenset({b"MULTI", b"EXEC"})
_LONGEST = 40


def install(undo: ExitStack) -> None:
    """Stand in the way of both libraries, where they are installed."""
    for library in ("redis", "valkey"):
        try:
            errors = import_module(f"{library}.exceptions")
            sync = import_module(f"{library}.connection").AbstractConnection
            asynchronous = import_module(f"{library}.asyncio.connection").AbstractConnection
        except ImportError:
            continue
        handles: dict[str, Handle] = {"send_packed_command": _send, "read_response": partial(_read, errors)}
        for name, handle in handles.items():
            lead(undo, sync, name, run_now(handle))
            lead(undo, asynchronous, name, handle)


@dataclass(slots=True)
class _Pending:
    """A call whose responses have not been read yet; `left` counts them."""

    call: SentCall
    left: int


def _begin(record: RunRecord, connection: Any, commands: list[tuple[bytes, ...]]) -> SentCall:
    if getattr(connection, "path", None):
        watch_redis(record, connection.path)
    elif hasattr(connection, "host"):
        watch_redis(record, (connection.host, connection.port))
    unsafe = any(
        not describe_command(command).repeatable for command in commands if command[0].upper() not in _BRACKETS
    )
    label = "+".join(_name(command) for command in commands)
    timeout = getattr(connection, "socket_timeout", None)
    limit = float(timeout) if isinstance(timeout, int | float) else None
    return record.begin(label, unsafe=unsafe, timeout=limit, faults=REDIS_FAULTS)


def _name(command: tuple[bytes, ...]) -> str:
    """Return the name of a command and its key, such as "INCR visits"; without the key if that is long."""
    words = [part.decode("utf-8", "replace") for part in command[:2]]
    key = replace_ids(words[1], ":/.{}") if len(words) > 1 else ""
    return f"{words[0].upper()} {key}" if 0 < len(key) <= _LONGEST and key.isprintable() else words[0].upper()


async def _send(
    record: RunRecord, original: Callable[..., Any], self: Any, command: Any, check_health: bool = True
) -> Any:
    packed = _pack(command)
    commands = _unpack(packed)
    if not commands or all(words[0].upper() in _OWN for words in commands):
        return await finish(original(self, packed, check_health))
    call = _begin(record, self, commands)
    if call.fault == "refused":
        await _disconnect(self)
        self._connect = partial(_refuse, record)
        try:
            return await finish(original(self, packed, check_health))
        finally:
            del self._connect
    with record.time.sending():
        await finish(original(self, packed, check_health))
    setattr(self, _ATTRIBUTE, _Pending(call, len(commands)))
    return None


def _refuse(record: RunRecord) -> None:
    raise record.inject(ConnectionRefusedError(111, "Connection refused"))


async def _disconnect(connection: Any) -> None:
    options = {"nowait": True} if iscoroutinefunction(connection.disconnect) else {}
    await finish(connection.disconnect(**options))


async def _read(
    errors: Any, record: RunRecord, original: Callable[..., Any], self: Any, *args: Any, **kwargs: Any
) -> Any:
    pending = self.__dict__.get(_ATTRIBUTE)
    if pending is None:
        return await finish(original(self, *args, **kwargs))
    with record.time.sending():
        if pending.call.fault is None:
            pending.left -= 1
            if pending.left == 0:
                delattr(self, _ATTRIBUTE)
            try:
                response = await finish(original(self, *args, **kwargs))
            except errors.ResponseError:
                pending.call.responded = True
                raise
            pending.call.responded = True
            return response
        for _ in range(pending.left):
            with suppress(errors.ResponseError):
                await finish(original(self, *args, **kwargs))
    delattr(self, _ATTRIBUTE)
    await _disconnect(self)
    late = errors.TimeoutError("Timeout reading from socket")
    raise record.lose(pending.call, errors.ConnectionError("Connection closed by server."), late)


def _pack(command: str | bytes | Iterable[bytes]) -> list[bytes]:
    """Return packed commands as a list of bytes, from any form that the libraries take."""
    if isinstance(command, str):
        return [command.encode()]
    return [bytes(command)] if isinstance(command, bytes | bytearray) else [bytes(part) for part in command]


def _unpack(packed: list[bytes]) -> list[tuple[bytes, ...]]:
    """Return the commands in RESP arrays, an empty list if it is anything else."""
    data, at = b"".join(packed), 0
    commands: list[tuple[bytes, ...]] = []
    try:
        while at < len(data):
            words: list[bytes] = []
            end = data.index(b"\r\n", at)
            count, at = int(data[at + 1 : end]), end + 2
            for _ in range(count):
                end = data.index(b"\r\n", at)
                size, at = int(data[at + 1 : end]), end + 2
                words.append(data[at : at + size])
                at += size + 2
            commands.append(tuple(words))
    except ValueError:
        return []
    return commands
