"""Scripted callables: each call plays the next of a list of outcomes."""

from inspect import isawaitable
from typing import NamedTuple, TypeGuard

from forbear.core import check
from forbear.run.runtime import current
from forbear.testing.virtual_clock import clock


class ScriptEnded(BaseException):
    """Raised when a script has no outcome left. It is no Exception, so nothing retries it. Example: see `Script`."""


class Call(NamedTuple):
    """One call of a script: the seconds on the run's clock, and its arguments. Example: see `Script`."""

    at: float
    args: tuple[object, ...]
    kwargs: dict[str, object]


class Script:
    """A function that plays `outcomes` in order, one per call: `Script(OSError("lost"), OSError, "done")`.

    An outcome that is an exception or exception class is raised. A callable is called with the call's arguments, and
    its value returned. Any other outcome is returned. Each call takes `takes` virtual seconds (default 0), which needs
    `virtual_time()`. `calls` lists the calls so far, and `left` the outcomes not yet played. A call without an outcome
    left raises ScriptEnded.

    >>> work = Script(OSError("lost"), "done", takes=2)
    >>> with virtual_time():
    ...     forbear.retry(OSError, backoff=forbear.Constant(1)).call(work)
    'done'
    >>> [call.at for call in work.calls]
    [0.0, 3.0]
    """

    def __init__(self, *outcomes: object, takes: float = 0) -> None:
        check.seconds("takes", takes)
        self.calls: list[Call] = []
        self.takes = takes
        self.left = list(outcomes)

    def __call__(self, *args: object, **kwargs: object) -> object:
        """Record the call, and play the next outcome; raise ScriptEnded if none is left."""
        outcome = self._next(args, kwargs)
        if self.takes:
            clock().sleep(self.takes)
        return _play(outcome, args, kwargs)

    def _next(self, args: tuple[object, ...], kwargs: dict[str, object]) -> object:
        self.calls.append(Call(current.get().monotonic(), args, kwargs))
        if not self.left:
            raise ScriptEnded(f"the script has no outcome left for call number {len(self.calls)}; give it more")
        return self.left.pop(0)


class AsyncScript(Script):
    """A script as a coroutine function; an outcome that is awaitable is awaited. Example: see `Script`."""

    async def __call__(self, *args: object, **kwargs: object) -> object:
        """Record the call, and play the next outcome; raise ScriptEnded if none is left."""
        outcome = self._next(args, kwargs)
        if self.takes:
            await clock().asleep(self.takes)
        value = _play(outcome, args, kwargs)
        return await value if isawaitable(value) else value


def _play(outcome: object, args: tuple[object, ...], kwargs: dict[str, object]) -> object:
    if _is_error(outcome):
        raise outcome
    value: object = outcome(*args, **kwargs) if callable(outcome) else outcome
    return value


def _is_error(outcome: object) -> TypeGuard[BaseException | type[BaseException]]:
    return isinstance(outcome, BaseException) or (isinstance(outcome, type) and issubclass(outcome, BaseException))
