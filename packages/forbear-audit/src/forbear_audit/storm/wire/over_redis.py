"""Faults in the connections of redis-py and valkey-py, sync and asyncio, below the retries of clients and clusters."""

from collections.abc import Callable, Generator, Iterable
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from forbear.adapters import describe_command
from forbear_audit.storm.counting import watch_redis
from forbear_audit.storm.faults import REDIS_FAULTS
from forbear_audit.storm.patching import replace
from forbear_audit.storm.run_record import RunRecord, SentCall, current_record, replace_ids

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
        replace(undo, sync, "send_packed_command", _send(sync.send_packed_command))
        replace(undo, sync, "read_response", _read(errors, sync.read_response))
        replace(undo, asynchronous, "send_packed_command", _asend(asynchronous.send_packed_command))
        replace(undo, asynchronous, "read_response", _aread(errors, asynchronous.read_response))


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


def _send(original: Callable[..., Any]) -> Callable[..., Any]:
    def send_packed_command(self: Any, command: Any, check_health: bool = True) -> Any:
        record, packed = current_record(), _pack(command)
        commands = _unpack(packed)
        if record is None or not commands or all(command[0].upper() in _OWN for command in commands):
            return original(self, packed, check_health)
        call = _begin(record, self, commands)
        if call.fault == "refused":
            self.disconnect()
            self._connect = _refusing(record)
            try:
                return original(self, packed, check_health)
            finally:
                del self._connect
        with record.time.sending():
            original(self, packed, check_health)
        setattr(self, _ATTRIBUTE, _Pending(call, len(commands)))
        return None

    return send_packed_command


def _asend(original: Callable[..., Any]) -> Callable[..., Any]:
    async def send_packed_command(self: Any, command: Any, check_health: bool = True) -> Any:
        record, packed = current_record(), _pack(command)
        commands = _unpack(packed)
        if record is None or not commands or all(command[0].upper() in _OWN for command in commands):
            return await original(self, packed, check_health)
        call = _begin(record, self, commands)
        if call.fault == "refused":
            await self.disconnect(nowait=True)
            refuse = _refusing(record)

            async def _connect() -> None:
                refuse()

            self._connect = _connect
            try:
                return await original(self, packed, check_health)
            finally:
                del self._connect
        with record.time.sending():
            await original(self, packed, check_health)
        setattr(self, _ATTRIBUTE, _Pending(call, len(commands)))
        return None

    return send_packed_command


def _refusing(record: RunRecord) -> Callable[[], None]:
    def _connect() -> None:
        raise record.inject(ConnectionRefusedError(111, "Connection refused"))

    return _connect


def _read(errors: Any, original: Callable[..., Any]) -> Callable[..., Any]:
    def read_response(self: Any, *args: Any, **kwargs: Any) -> Any:
        record, pending = current_record(), self.__dict__.get(_ATTRIBUTE)
        if record is None or pending is None:
            return original(self, *args, **kwargs)
        with record.time.sending():
            if pending.call.fault is None:
                _count_down(self, pending)
                with _noting_response(errors, pending.call):
                    return original(self, *args, **kwargs)
            for _ in range(pending.left):
                with suppress(errors.ResponseError):
                    original(self, *args, **kwargs)
        delattr(self, _ATTRIBUTE)
        self.disconnect()
        raise _error(errors, record, pending.call)

    return read_response


def _aread(errors: Any, original: Callable[..., Any]) -> Callable[..., Any]:
    async def read_response(self: Any, *args: Any, **kwargs: Any) -> Any:
        record, pending = current_record(), self.__dict__.get(_ATTRIBUTE)
        if record is None or pending is None:
            return await original(self, *args, **kwargs)
        with record.time.sending():
            if pending.call.fault is None:
                _count_down(self, pending)
                with _noting_response(errors, pending.call):
                    return await original(self, *args, **kwargs)
            for _ in range(pending.left):
                with suppress(errors.ResponseError):
                    await original(self, *args, **kwargs)
        delattr(self, _ATTRIBUTE)
        await self.disconnect(nowait=True)
        raise _error(errors, record, pending.call)

    return read_response


@contextmanager
def _noting_response(errors: Any, call: SentCall) -> Generator[None]:
    try:
        yield
    except errors.ResponseError:
        call.responded = True
        raise
    call.responded = True


def _count_down(connection: Any, pending: _Pending) -> None:
    pending.left -= 1
    if pending.left == 0:
        delattr(connection, _ATTRIBUTE)


def _error(errors: Any, record: RunRecord, call: SentCall) -> BaseException:
    error: BaseException = errors.ConnectionError("Connection closed by server.")
    if call.fault == "slow":
        record.time.advance(call.timeout or 0)
        error = errors.TimeoutError("Timeout reading from socket")
    return record.inject(error)


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
