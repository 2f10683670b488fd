"""The iterator forms, `for attempt in policy` and `async for`; one object is both the iterator and the attempt."""

import sys

from forbear.run.harm import HarmLog, is_used
from forbear.run.judges import RAISE
from forbear.run.ledger import gives_up_late
from forbear.run.open_runs import blocks
from forbear.run.runtime import AttemptTimeout, current_runtime
from forbear.run.scope import find_opener
from forbear.run.spending import begin
from forbear.run.state import Run

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractAsyncContextManager
    from types import FrameType, TracebackType
    from typing import NoReturn, Self

    from forbear.run.grant import Grant
    from forbear.run.plan import RetryPlan


_READY, _STARTED, _ENTERED, _DONE = "ready", "started", "entered", "done"


class _Block:
    """The base of both forms: it reports the block's outcome to the run and records whether an attempt follows.

    An error after which another attempt follows does not leave the block. Raises TypeError for a plan with `on_result`.
    """

    __slots__ = ("_frame", "_grant", "_run", "_state")

    _awaits = False
    """True if the head of the loop asks the grant: `with attempt` cannot await the answer."""

    def __init__(self, plan: "RetryPlan", operation: str) -> None:
        if plan.key is not None:
            raise TypeError("`key` is called with the arguments of a function, and a block has none; use run_key in it")
        if plan.on_result is not None or plan.on_give_up is not RAISE:
            name, what = ("on_give_up", "replaces") if plan.on_result is None else ("on_result", "needs")
            raise TypeError(f"`{name}` {what} a returned value, and a block has none; use policy.call or the decorator")
        is_used[0] = True
        runtime = current_runtime()
        self._run = Run(plan, operation, runtime, runtime.monotonic(), awaits=self._awaits)
        if plan.budget is not None:
            begin(self._run)
        self._frame: FrameType | None = None  # the one that has entered the block, for `run_key` in it
        self._grant: Grant | None = None
        self._state = _READY

    @property
    def number(self) -> int:
        """The number of this attempt, 1 for the first."""
        return self._run.attempt

    def __repr__(self) -> str:
        """Return the number of this attempt, the most that there may be, and the wait before it if that is to come."""
        most = self._run.plan.limits.attempts
        of = "" if most is None else f" of {most}"
        grant = self._grant if self._state is _READY else None
        wait = "" if grant is None else f", next wait {grant.delay:.3g} s"
        return f"<attempt {self.number}{of}{wait}>"

    def __enter__(self) -> "Self":
        return self._enter(sys._getframe(1))

    def _enter(self, frame: "FrameType") -> "Self":
        if self._state is not _STARTED:
            raise RuntimeError("an attempt is entered once, in its own loop: `for attempt in policy: with attempt:`")
        self._state = _ENTERED
        self._frame = find_opener(frame) or frame
        blocks.setdefault(self._frame, self._run)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: "TracebackType | None"
    ) -> bool:
        try:
            return self._leave(error)
        finally:
            if self._frame is not None and blocks.get(self._frame) is self._run:
                del blocks[self._frame]
            self._frame = None

    def _leave(self, error: BaseException | None) -> bool:
        self._state = _DONE
        if error is None:
            self._run.succeeded()
            return False
        try:
            grant = self._run.failed(error, (None, (), {})) if isinstance(error, Exception) else None
            self._grant = grant
            goes_on = grant is not None and (self._awaits or not grant.is_open or grant.ask())
        except BaseException:  # of a judge or a listener
            self._run.end()
            raise
        if not goes_on:
            self._run.end()
            return False
        self._state = _READY
        return True

    def _goes_on(self) -> bool:
        """Return whether another attempt follows; the caller waits, then starts it.

        Raises RuntimeError if the last attempt was started, but its block was not entered.
        """
        if self._state is _STARTED:
            self._state = _DONE
            raise RuntimeError(
                "the attempt was not entered, so its outcome is unknown; put `with attempt:` around the work"
            )
        return self._state is _READY


class Attempts(_Block):
    """`for attempt in policy`: yields itself for each attempt until a block ends without an error or the run gives up.

    It sleeps before each retry. When the run gives up, the block's error is raised.

    >>> for attempt in forbear.retry(OSError):
    ...     with attempt:
    ...         if attempt.number < 3:
    ...             raise TimeoutError("slow")
    ...         print(attempt.number)
    3
    """

    __slots__ = ()

    def __iter__(self) -> "Iterator[Self]":
        try:
            while self._goes_on():
                if self._grant is not None:
                    self._grant.sleep()
                self._state = _STARTED
                yield self
        finally:  # the loop may be left before a retry that was granted
            self._run.end()


class AsyncAttempts(_Block):
    """`async for attempt in policy`: yields itself for each attempt, as the sync form `Attempts` does.

    `async with attempt` also enforces the attempt timeout. A budget that is awaited refuses a retry at the head of the
    loop: there the error of the block is raised again. Example: see `Attempts`.
    """

    __slots__ = ("_error", "_log", "_within")

    _awaits = True
    _error: Exception | None
    _log: HarmLog | None
    _within: "AbstractAsyncContextManager[None] | None"

    def __init__(self, plan: "RetryPlan", operation: str) -> None:
        super().__init__(plan, operation)
        self._error = None
        self._log = None

    def __aiter__(self) -> "Self":
        return self

    async def __anext__(self) -> "Self":
        if not self._goes_on():
            raise StopAsyncIteration
        try:
            if self._grant is not None:
                if not await self._grant.aask():  # the budget refuses
                    self._give_up()
                await self._grant.asleep()
                self._refuse_late()
        except BaseException:  # a cancellation, too
            self._run.end()
            if self._log is not None:
                self._log.end()
            raise
        self._state = _STARTED
        return self

    def _refuse_late(self) -> None:
        """Raise the error of the block again if a task of it has sent what must not be sent twice since it failed."""
        error = self._error
        if error is not None:
            try:
                if gives_up_late(self._run, error, (None, (), {}), self._log):
                    self._give_up()
            finally:
                del error
        self._error = None

    def _give_up(self) -> "NoReturn":
        self._state = _DONE
        try:
            raise self._error or AssertionError
        finally:
            self._error = None  # its traceback now leads to this frame

    def __enter__(self) -> "Self":
        if self._run.plan.attempt_timeout is not None:
            self._state = _DONE
            raise TypeError("`attempt_timeout` needs `async with attempt:`; plain `with` cannot interrupt a block")
        return self._enter(sys._getframe(1))

    def _enter(self, frame: "FrameType") -> "Self":
        super()._enter(frame)
        if self._log is None:
            self._log = HarmLog(self._run.started, self._run)
        else:
            self._log.reopen()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: "TracebackType | None"
    ) -> bool:
        try:
            goes_on = super().__exit__(kind, error, traceback)
            if goes_on and isinstance(error, Exception):
                self._error = error
            return goes_on
        finally:
            self._leave_log()

    def _leave_log(self) -> None:
        """Leave the log between two attempts, and close it after the last one."""
        if self._log is not None and self._state is _READY:
            self._log.leave()
        elif self._log is not None:
            self._log.close()

    async def __aenter__(self) -> "Self":
        self._enter(sys._getframe(1))
        limit = self._run.attempt_limit()
        self._within = None if limit is None else self._run.runtime.within(limit)
        if self._within is not None:
            await self._within.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: "TracebackType | None"
    ) -> bool:
        try:
            if self._within is None:
                return self.__exit__(kind, error, traceback)
            try:
                await self._within.__aexit__(kind, error, traceback)
            except AttemptTimeout as expired:
                if self.__exit__(AttemptTimeout, expired, expired.__traceback__):
                    return True
                raise
            return self.__exit__(kind, error, traceback)
        finally:
            self._leave_log()
