"""How long the server was asked to block a command, which a client has to wait for. It knows no other timeout."""

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import Any

from forbear.services.redis.words import Argument, keyword, octets

# Where each of them says it: the place of the word, and how many of these units are a second. 0 means for ever.
_PLACES: dict[bytes, tuple[int, float]] = {
    b"BLMOVE": (-1, 1),
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
_LONGEST = 1e9  # longer than that is for ever, and more than sockets take
_STREAMS = (b"XREAD", b"XREADGROUP")  # BLOCK stands among their options, in milliseconds

NAMES = frozenset(name.decode() for name in (*_PLACES, *_STREAMS))
"""The commands that may block, as the clients name them."""


def patience(command: Sequence[Argument]) -> float | None:
    """Return the seconds that the server may block a command for: 0.0 if it does not, None for ever."""
    if command[0] not in NAMES:
        return 0.0
    try:
        place, unit = _place(command)
        seconds = float(octets(command[place])) / unit if place else 0.0
    except (LookupError, TypeError, ValueError):
        return 0.0  # the server refuses it at once
    return seconds if place == 0 or 0 < seconds <= _LONGEST else None


def _place(command: Sequence[Argument]) -> tuple[int, float]:
    name = keyword(command[0])
    if name in _PLACES:
        return _PLACES[name]
    words = [keyword(word) if isinstance(word, str | bytes) else b"" for word in command]
    options = words[: words.index(b"STREAMS")]  # after which come names
    return (options.index(b"BLOCK") + 1, 1000) if b"BLOCK" in options else (0, 1)


@contextmanager
def waiting(connection: Any, command: Sequence[Argument]) -> Generator[None]:
    """Let a connection that is open wait for a reply as much longer as the server may block the command.

    A client that gave up earlier would lose what the server takes from a list for it.
    """
    seconds = patience(command)
    if seconds == 0 or getattr(connection, "_sock", None) is None:
        yield
        return
    socket = connection._sock
    own: float | None = socket.gettimeout()
    socket.settimeout(None if seconds is None or own is None else own + seconds)
    try:
        yield
    finally:
        if connection._sock is socket:
            socket.settimeout(own)


@contextmanager
def awaiting(connection: Any, command: Sequence[Argument]) -> Generator[None]:
    """The same for a connection of asyncio, which has its timeout by itself."""
    seconds = patience(command)
    own = connection.socket_timeout
    connection.socket_timeout = None if seconds is None or own is None else own + seconds
    try:
        yield
    finally:
        connection.socket_timeout = own
