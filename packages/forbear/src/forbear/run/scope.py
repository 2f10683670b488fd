"""`Scope`, the base of `with` blocks in which the user vouches for something; they end for everybody at their exit."""

from contextvars import ContextVar
from sys import _getframe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType, TracebackType
    from typing import Self, TypeVar

    S = TypeVar("S", bound="Scope")

_scopes: "ContextVar[tuple[Scope, ...]]" = ContextVar("forbear_scopes", default=())
_GENERATOR = 0x20 | 0x200
"""The flags of a generator's code, sync and async: `inspect.CO_GENERATOR` and `CO_ASYNC_GENERATOR`."""

_FIXTURES = {
    ("_pytest.fixtures", "call_fixture_func"),
    ("anyio._backends._asyncio", "_run_tests_and_fixtures"),
    ("anyio._backends._trio", "_run_tests_and_fixtures"),
    ("pytest_asyncio.plugin", "setup"),
}
"""The functions, by module and name, that run a generator as a fixture of pytest."""

_of_fixtures: "list[Scope]" = []
"""The open scopes of fixtures. A fixture is for whatever its test does, in any context."""


class Scope:
    """A `with` block that applies to what it calls, and to tasks and threads that it starts with its context.

    At the end of the block it ends for all of them, even if they still run. In a generator it applies to what the
    generator itself calls, not to its consumer, but a fixture of pytest covers all that its tests do. RuntimeError if
    it is entered while it is open.
    """

    __slots__ = ("_frame", "_is_open")

    def __init__(self) -> None:
        self._is_open = False
        self._frame: FrameType | None = None

    def __enter__(self) -> "Self":
        if self._is_open:
            raise RuntimeError(f"a {type(self).__name__} is open already; make one for each block")
        opener = find_opener(_getframe(1))
        self._is_open = True
        if opener is not None and opener.f_code.co_flags & _GENERATOR:
            if _is_fixture(opener):
                _of_fixtures.append(self)
                return self
            self._frame = opener
        _scopes.set((*_scopes.get(), self))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: "TracebackType | None"
    ) -> None:
        self._is_open = False
        self._frame = None
        if self in _of_fixtures:
            _of_fixtures.remove(self)
            return
        # The value from before would lack scopes that were opened since, as around a generator that is closed later.
        _scopes.set(tuple(scope for scope in _scopes.get() if scope is not self))

    @property
    def _applies(self) -> bool:
        return self._is_open and (self._frame is None or _is_running(self._frame))


class OwnWrites(Scope):
    """The block in which `forbear.update` writes: its `mine` decides what is its own, and no adapter's `settle`."""

    __slots__ = ()


def has_open_scopes() -> bool:
    """Return whether any scope may be open here."""
    return bool(_of_fixtures or _scopes.get())


def open_scopes(kind: "type[S]") -> "Iterator[S]":
    """Yield the open scopes of a class that apply to the code that runs now, the outermost first."""
    return (scope for scope in (*_of_fixtures, *_scopes.get()) if isinstance(scope, kind) and scope._applies)


def find_opener(frame: "FrameType | None") -> "FrameType | None":
    """Return the frame whose block a scope covers: the first one that is no part of a context manager.

    Parts are the code of contextlib, a generator that it makes a context manager, and the method by which a context
    manager of the user's own is entered.
    """
    while frame is not None:
        caller = frame.f_back
        if (
            frame.f_code.co_name not in ("__enter__", "__aenter__")
            and frame.f_globals.get("__name__") != "contextlib"
            and (caller is None or caller.f_globals.get("__name__") != "contextlib")
        ):
            return frame
        frame = caller
    return None


def _is_fixture(generator: "FrameType") -> bool:
    """Return whether the frame of a generator is that of a fixture of pytest, which pytest or a plugin runs."""
    caller = generator.f_back
    return caller is not None and (caller.f_globals.get("__name__"), caller.f_code.co_name) in _FIXTURES


def _is_running(frame: "FrameType") -> bool:
    """Return whether a frame is running: the caller is called by it."""
    caller: FrameType | None = _getframe(1)
    while caller is not None and caller is not frame:
        caller = caller.f_back
    return caller is not None
