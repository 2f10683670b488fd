"""Tell where an error arose by the functions of the client library that it passed through. It judges nothing.

The libraries raise the same errors while they connect and while they wait for a response, and only in the first case is
it certain that no command was sent. Their traceback tells. Names that a newer version changes tell nothing, and what
is not known counts as sent.

The libraries also clean up after a failure, and that may fail, too: a second error then hides the first. `decisive`
returns the one that belongs to the command.
"""

from collections.abc import Iterable, Iterator, Sequence
from enum import Enum
from types import FrameType

from forbear.run.runtime import AttemptTimeout

_CONNECTING = ("connect", "connect_check_health", "check_health")
_READING = ("parse_response", "read_response")
_CLEANUP = ("connect", "initialize", "release", "reset")


class Origin(Enum):
    """When an error arose: before the command was sent, after that, while cleaning up afterwards, or unknown."""

    BEFORE = "before"
    AFTER = "after"
    CLEANUP = "cleanup"
    UNKNOWN = "unknown"


def origin(error: BaseException) -> Origin:
    """Return when an error arose, by the first function on its way that decides it.

    Connections are made when they are taken from a pool, or when a command finds its own closed, and then their health
    is checked, too. The client asks a cluster for its nodes before it sends a command, and again after a failure; it
    makes some connections anew once the response is there, or to lift a WATCH.
    """
    return _origin(_frames(_innermost(error)))


def decisive(error: BaseException) -> BaseException:
    """Return the error that tells what happened to the command: `error`, or one that it hides.

    An error of connecting or cleaning up hides the failure of a command that was sent before.
    """
    first = latest = _innermost(error)
    path = list(_frames(first))
    while (came := _origin(path)) in (Origin.BEFORE, Origin.CLEANUP):
        hidden = _behind(first, path)
        if hidden is None or hidden.__traceback__ is None:
            break
        # A traceback begins where its error was caught; the way there is that of the later one.
        path = [*path[: path.index(hidden.__traceback__.tb_frame)], *_frames(hidden)]
        if came is Origin.BEFORE and _origin(path) is Origin.BEFORE:
            break
        first = hidden
    return error if first is latest else first


def _origin(path: Iterable[FrameType]) -> Origin:
    names = [frame.f_code.co_name for frame in path]
    for name, then in zip(names, [*names[1:], ""], strict=False):  # an error that was never raised has none
        if name == "get_connection" or (name in ("execute", "execute_command") and then == "initialize"):
            return Origin.BEFORE
        if name == "send_packed_command":
            return Origin.BEFORE if then in _CONNECTING else Origin.AFTER
        if name in _READING:
            return Origin.AFTER
        if name in _CLEANUP:
            return Origin.CLEANUP
    return Origin.UNKNOWN


def behind(error: BaseException) -> BaseException | None:
    """Return the error that was being handled when this one was raised, if both passed through the same call.

    Python also notes errors that the caller was handling at the time, which have nothing to do with it.
    """
    return _behind(error, list(_frames(error)))


def _behind(error: BaseException, path: Sequence[FrameType]) -> BaseException | None:
    context = error.__context__
    if context is None or context.__traceback__ is None:
        return None
    return context if context.__traceback__.tb_frame in path else None


def is_unreadable(error: BaseException) -> bool:
    """Return whether the client could not read a response: its number, size or nesting is absurd.

    The parsers raise errors of Python's then, such as ValueError and RecursionError. Text that is not in the encoding
    asked for is another matter, and will not be the next time either.
    """
    if isinstance(error, UnicodeError | OSError) or type(error).__module__ != "builtins":
        return False
    return any(frame.f_code.co_name == "read_response" for frame in _frames(error))


def _innermost(error: BaseException) -> BaseException:
    """Return the cancellation that cut an attempt short: it has passed through the library, the timeout has not."""
    if isinstance(error, AttemptTimeout):
        while error.__cause__ is not None:
            error = error.__cause__
    return error


def _frames(error: BaseException) -> Iterator[FrameType]:
    traceback = error.__traceback__
    while traceback is not None:
        yield traceback.tb_frame
        traceback = traceback.tb_next
