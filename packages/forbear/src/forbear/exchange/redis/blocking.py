"""Blocking commands (BLPOP, XREAD BLOCK, WAIT ...): read their timeout and let a connection wait that much longer."""

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import Any

from forbear.services.redis.command_words import Argument, keyword, octets

# The index of the timeout among the arguments, and how many of its units are a second. A timeout of 0 is no limit.
_TIMEOUTS: dict[bytes, tuple[int, float]] = {
    b"BLMOVE": (-1, 1),
    b"BLMOVEM": (5, 1),
    b"BLMPOP": (1, 1),
    b"BLPOP": (-1, 1),
    b"BRPOP": (-1, 1),
    b"BRPOPLPUSH": (-1, 1),
    b"BZMPOP": (1, 1),
    b"BZPOPMAX": (-1, 1),
    b"BZPOPMIN": (-1, 1),
    b"WAIT": (-1, 1000),
    b"WAITAOF": (-1, 1000),
}
_LONGEST = 1e9  # seconds; more than sockets accept, so it counts as no limit
_STREAMS = (b"TS.READ", b"XREAD", b"XREADGROUP")  # their timeout follows the option BLOCK, in milliseconds

NAMES = frozenset(name.decode() for name in (*_TIMEOUTS, *_STREAMS))
"""The commands that may block, as the clients name them."""


def blocking_time(command: Sequence[Argument]) -> float | None:
    """Return the seconds that the server may block a command: 0.0 if it does not block, None without a limit.

    A timeout that cannot be read is 0.0, because the server refuses it at once. One over 1e9 seconds is no limit.
    """
    if command[0] not in NAMES:
        return 0.0
    try:
        index, unit = _timeout(command)
        seconds = float(octets(command[index])) / unit if index else 0.0
    except (LookupError, TypeError, ValueError):
        return 0.0  # the server refuses it at once
    return seconds if index == 0 or 0 < seconds <= _LONGEST else None


def _timeout(command: Sequence[Argument]) -> tuple[int, float]:
    name = keyword(command[0])
    if name in _TIMEOUTS:
        return _TIMEOUTS[name]
    words = [keyword(word) if isinstance(word, str | bytes) else b"" for word in command]
    first, end = (3, len(words)) if name == b"TS.READ" else (1, words.index(b"STREAMS"))  # after which come names
    return (words.index(b"BLOCK", first, end) + 1, 1000) if b"BLOCK" in words[first:end] else (0, 1)


@contextmanager
def longer_timeout(connection: Any, command: Sequence[Argument]) -> Generator[None]:
    """Let an open connection wait longer for a response, by the seconds that the server may block the command."""
    seconds = blocking_time(command)
    connection = getattr(connection, "_conn", connection)  # the one behind client-side caching
    socket = getattr(connection, "_sock", None)
    if seconds == 0 or socket is None:
        yield
        return
    own: float | None = socket.gettimeout()
    socket.settimeout(None if seconds is None or own is None else own + seconds)
    try:
        yield
    finally:
        if connection._sock is socket:
            socket.settimeout(own)


@contextmanager
def async_longer_timeout(connection: Any, command: Sequence[Argument]) -> Generator[None]:
    """The asyncio form of `longer_timeout`: it changes `connection.socket_timeout` within the block, open or not."""
    seconds = blocking_time(command)
    own = connection.socket_timeout
    connection.socket_timeout = None if seconds is None or own is None else own + seconds
    try:
        yield
    finally:
        connection.socket_timeout = own
