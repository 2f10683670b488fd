"""The iterator forms, sync and async: `for attempt in policy: with attempt:`. One object is iterator and attempt."""

from forbear.run.runtime import AttemptTimeout, current_runtime
from forbear.run.state import Run

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractAsyncContextManager
    from types import TracebackType
    from typing import Self

    from forbear.run.state import Plan


_READY, _STARTED, _ENTERED, _DONE = "ready", "started", "entered", "done"


class _Block:
    """What both forms share: the block's outcome goes to the run, and the run says what comes next."""

    __slots__ = ("_run", "_delay", "_state")

    def __init__(self, plan: "Plan", operation: str) -> None:
        if plan.judges_values:
            raise TypeError(
                "`on_result` needs a returned value, and a block has none; use policy.call or the decorator"
            )
        runtime = current_runtime()
        self._run = Run(plan, operation, runtime, runtime.monotonic())
        self._delay: float | None = None
        self._state = _READY

    @property
    def number(self) -> int:
        """The number of this attempt, 1 for the first."""
        return self._run.attempt

    def __enter__(self) -> "Self":
        if self._state is not _STARTED:
            raise RuntimeError("an attempt is entered once, in its own loop: `for attempt in policy: with attempt:`")
        self._state = _ENTERED
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: "TracebackType | None"
    ) -> bool:
        self._state = _DONE
        if error is None:
            self._run.succeeded()
            return False
        if not isinstance(error, Exception):
            return False
        self._delay = self._run.failed(error)
        if self._delay is None:
            return False
        self._state = _READY
        return True

    def _goes_on(self) -> bool:
        """Whether there is another attempt, which the caller starts after the wait."""
        if self._state is _STARTED:
            self._state = _DONE
            raise RuntimeError(
                "the attempt was not entered, so nobody knows how it went; put `with attempt:` around the work"
            )
        return self._state is _READY


class Attempts(_Block):
    """`for attempt in policy`: yields itself for every attempt until a block ends without an error."""

    __slots__ = ()

    def __iter__(self) -> "Iterator[Self]":
        while self._goes_on():
            if self._delay is not None:
                self._run.runtime.sleep(self._delay)
            self._state = _STARTED
            yield self


class AsyncAttempts(_Block):
    """`async for attempt in policy`: as the sync form; `async with attempt` also enforces the attempt timeout."""

    __slots__ = ("_within",)

    _within: "AbstractAsyncContextManager[None] | None"

    def __aiter__(self) -> "Self":
        return self

    async def __anext__(self) -> "Self":
        if not self._goes_on():
            raise StopAsyncIteration
        if self._delay is not None:
            await self._run.runtime.asleep(self._delay)
        self._state = _STARTED
        return self

    def __enter__(self) -> "Self":
        if self._run.plan.attempt_timeout is not None:
            self._state = _DONE
            raise TypeError("`attempt_timeout` needs `async with attempt:`; plain `with` cannot cut a block short")
        return super().__enter__()

    async def __aenter__(self) -> "Self":
        super().__enter__()
        limit = self._run.attempt_limit()
        self._within = None if limit is None else self._run.runtime.within(limit)
        if self._within is not None:
            await self._within.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: "TracebackType | None"
    ) -> bool:
        if self._within is None:
            return self.__exit__(kind, error, traceback)
        try:
            await self._within.__aexit__(kind, error, traceback)
        except AttemptTimeout as expired:
            if self.__exit__(AttemptTimeout, expired, expired.__traceback__):
                return True
            raise
        return self.__exit__(kind, error, traceback)
