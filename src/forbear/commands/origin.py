"""Where an error comes from, told by the functions of the client library that it passed through. It judges nothing.

The libraries raise the same errors while they connect and while they wait for a reply, and only in the first case is
it certain that no command was sent. Their traceback tells. Names that a newer version changes tell nothing, and what
is not known counts as sent.
"""

from collections.abc import Iterator
from enum import Enum
from types import FrameType

from forbear.run.errors import AttemptTimeout

_CONNECTING = ("connect", "connect_check_health", "check_health")
_LATER = ("connect", "initialize", "parse_response", "read_response")


class Origin(Enum):
    """When an error arose: before the command was sent, after that, or nobody knows."""

    BEFORE = "before"
    AFTER = "after"
    UNKNOWN = "unknown"


def origin(error: BaseException) -> Origin:
    """When an error arose, by the first function on its way that decides it.

    Connections are made when they are taken from a pool, or when a command finds its own closed, whose health is then
    looked at, too. A cluster is asked for its nodes before a command is sent, and again after it has failed; some
    connections are made anew once the reply is there.
    """
    names = [frame.f_code.co_name for frame in _frames(_innermost(error))]
    for name, then in zip(names, [*names[1:], ""], strict=False):  # one that was never raised has none
        if name == "get_connection" or (name in ("execute", "execute_command") and then == "initialize"):
            return Origin.BEFORE
        if name == "send_packed_command":
            return Origin.BEFORE if then in _CONNECTING else Origin.AFTER
        if name in _LATER:
            return Origin.AFTER
    return Origin.UNKNOWN


def behind(error: BaseException) -> BaseException | None:
    """The error that was being handled when this one was raised, if that began in a function this one passed through.

    Python also notes errors that the caller was handling at the time, which have nothing to do with it.
    """
    context = error.__context__
    if context is None or context.__traceback__ is None:
        return None
    return context if context.__traceback__.tb_frame in _frames(error) else None


def _innermost(error: BaseException) -> BaseException:
    """What an attempt that was cut short was doing: the cancellation has passed through it, not the timeout."""
    if isinstance(error, AttemptTimeout):
        while error.__cause__ is not None:
            error = error.__cause__
    return error


def _frames(error: BaseException) -> Iterator[FrameType]:
    traceback = error.__traceback__
    while traceback is not None:
        yield traceback.tb_frame
        traceback = traceback.tb_next
