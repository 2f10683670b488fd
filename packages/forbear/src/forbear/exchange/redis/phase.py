"""Find out in which phase of a command an error arose, by the functions of the client library in its traceback.

The libraries raise the same errors while they connect and while they wait for a response. Only while they connect is it
certain that no command was sent. If a newer version has renamed a function, the phase is unknown, which proves nothing.

The libraries also clean up after a failure, and that may fail, too: a second error then hides the first. `decisive`
returns the error that belongs to the command.
"""

from collections.abc import Iterable
from enum import Enum
from types import FrameType

from forbear.exchange.interrupt import find_hidden, frames_of
from forbear.run.runtime import AttemptTimeout

_CONNECTING = ("connect", "connect_check_health", "check_health")
_READING = ("parse_response", "read_response")
READS_QUEUED = "read_queued"
"""The name of our functions that read the responses to queued commands, before that of EXEC."""
READS_MULTI = "read_multi"
"""The name of our functions that read the response to MULTI."""

_CLEANUP = ("connect", "initialize", "release", "reset")


class Phase(Enum):
    """The phase of a command in which an error arose: before or after it was sent, in the cleanup, or unknown."""

    BEFORE = "before the command was sent"
    AFTER = "after the command was sent, at least in part"
    CLEANUP = "while the client cleaned up afterwards"
    UNKNOWN = "unknown"


def phase_of(error: BaseException) -> Phase:
    """Return the phase in which an error arose; the first function in its traceback that decides counts.

    UNKNOWN if none decides. For an attempt timeout, the traceback of the cancellation behind it counts.

    A client connects when it takes a connection from a pool, or when a command finds its own closed. It also checks the
    connection's health then. It asks a cluster for its nodes before it sends a command, and again after a failure. It
    renews some connections after the response has arrived, or to lift a WATCH.
    """
    return _phase(frames_of(_innermost(error)))


def decisive(error: BaseException) -> BaseException:
    """Return the error that shows what happened to the command: `error`, or one that it hides.

    An error of connecting or cleaning up hides the failure of a command that was sent before.
    """
    first = latest = _innermost(error)
    path = list(frames_of(first))
    while (phase := _phase(path)) in (Phase.BEFORE, Phase.CLEANUP):
        hidden = find_hidden(first, path)
        if hidden is None or hidden.__traceback__ is None:
            break
        # A traceback begins where its error was caught; the frames above are those of the later error.
        path = [*path[: path.index(hidden.__traceback__.tb_frame)], *frames_of(hidden)]
        if phase is Phase.BEFORE and _phase(path) is Phase.BEFORE:
            break
        first = hidden
    return error if first is latest else first


def find_context(error: BaseException) -> BaseException | None:
    """Return the error that was being handled when this one was raised, None if they passed through different calls."""
    return find_hidden(error, list(frames_of(error)))


def is_unreadable(error: BaseException) -> bool:
    """Return whether an error is one of Python's own, raised while the client read a response with absurd contents.

    A number, size or nesting beyond reason makes the parsers raise ValueError or RecursionError. OSError does not
    count, nor does text that is not in the caller's encoding: another attempt returns the same text. An error that
    other code than the library's and asyncio's raised meanwhile does not count either.
    """
    if isinstance(error, UnicodeError | OSError) or type(error).__module__ != "builtins":
        return False
    frames = list(frames_of(error))
    readers = {_package(frame) for frame in frames if frame.f_code.co_name == "read_response"}
    return bool(readers) and _package(frames[-1]) in (*readers, "asyncio")


def _package(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__", "")).partition(".")[0]


def is_read_before_exec(error: BaseException) -> bool:
    """Return whether an error is the response to a queued command, and read by our pipeline: nothing was executed.

    An error response among those of EXEC, which a script may have caused, is read with the response to EXEC.
    """
    return any(frame.f_code.co_name == READS_QUEUED for frame in frames_of(error))


def is_of_multi(error: BaseException) -> bool:
    """Return whether an error is the response to MULTI: what follows was then executed at once, or refused."""
    return any(frame.f_code.co_name == READS_MULTI for frame in frames_of(error))


def _phase(path: Iterable[FrameType]) -> Phase:
    names = [frame.f_code.co_name for frame in path]
    for name, then in zip(names, [*names[1:], ""], strict=False):  # an error that was never raised has no names
        if name == "get_connection" or (name in ("execute", "execute_command") and then == "initialize"):
            return Phase.BEFORE
        if name == "send_packed_command" and then != name:  # our own calls the library's
            return Phase.BEFORE if then in _CONNECTING else Phase.AFTER
        if name in _READING:
            return Phase.AFTER
        if name in _CLEANUP:
            return Phase.CLEANUP
    return Phase.UNKNOWN


def _innermost(error: BaseException) -> BaseException:
    """Return the cancellation behind an attempt timeout, which passed through the library; any other error as it is."""
    if isinstance(error, AttemptTimeout):
        while error.__cause__ is not None:
            error = error.__cause__
    return error
