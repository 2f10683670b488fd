"""`safe_to_repeat`, the scope in which the user vouches for requests."""

from contextlib import suppress
from contextvars import ContextVar
from sys import _getframe

from forbear.http.patterns import covers, patterns

TYPE_CHECKING = False
if TYPE_CHECKING:
    from contextvars import Token
    from types import FrameType, TracebackType
    from typing import Self

    from forbear.http.request import Request

_scopes: "ContextVar[tuple[safe_to_repeat, ...]]" = ContextVar("forbear_safe_to_repeat", default=())
_GENERATOR = 0x20 | 0x200
"""The flags of a generator's code, sync and async: `inspect.CO_GENERATOR` and `CO_ASYNC_GENERATOR`."""


class safe_to_repeat:  # noqa: N801 - used like a function
    """`with safe_to_repeat("POST https://api.example.com/v1/search*"):` vouches for requests until the block ends.

    Requests that match one of the patterns may be executed twice; see `forbear.http.patterns.Pattern`. The scope
    applies to the clients of this block, to the functions it calls, and to tasks and threads that it starts with its
    context. At the end of the block it ends for all of them, even if they still run. Every request is matched on its
    own: redirects and requests for tokens, too. In a generator it applies to what the generator itself calls, not to
    its consumer.

    TypeError or ValueError for a wrong pattern, and without one.
    """

    __slots__ = ("_frame", "_is_open", "_patterns", "_token")

    _token: "Token[tuple[safe_to_repeat, ...]]"

    def __init__(self, *safe: str) -> None:
        if not safe:
            raise TypeError(
                '`safe_to_repeat` needs at least one pattern, such as "POST https://api.example.com/search"'
            )
        self._patterns = patterns(safe, "safe_to_repeat")
        self._is_open = False
        self._frame: FrameType | None = None

    def __enter__(self) -> "Self":
        if self._is_open:
            raise RuntimeError("a safe_to_repeat is open already; make one for each block")
        opener = _opener(_getframe(1))
        if opener is not None and opener.f_code.co_flags & _GENERATOR:
            self._frame = opener
        self._token = _scopes.set((*_scopes.get(), self))
        self._is_open = True
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: "TracebackType | None"
    ) -> None:
        self._is_open = False
        self._frame = None
        with suppress(ValueError):  # a generator that is closed in another context
            _scopes.reset(self._token)

    def _covers(self, request: "Request") -> bool:
        return self._is_open and (self._frame is None or _is_running(self._frame)) and covers(self._patterns, request)


def is_vouched(request: "Request") -> bool:
    """Return whether an open scope vouches for a request that is sent now."""
    return any(scope._covers(request) for scope in _scopes.get())


def _opener(frame: "FrameType | None") -> "FrameType | None":
    """Return the frame whose block a scope covers.

    That is the first one which is neither part of contextlib, nor a generator that contextlib makes a context manager.
    """
    while frame is not None and (_is_contextlib(frame) or (frame.f_back is not None and _is_contextlib(frame.f_back))):
        frame = frame.f_back
    return frame


def _is_contextlib(frame: "FrameType") -> bool:
    return frame.f_globals.get("__name__") == "contextlib"


def _is_running(frame: "FrameType") -> bool:
    """Return whether a frame is running: the caller is called by it."""
    caller: FrameType | None = _getframe(1)
    while caller is not None and caller is not frame:
        caller = caller.f_back
    return caller is not None
