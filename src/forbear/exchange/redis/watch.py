"""Commands under WATCH in a loop of the caller's, sync and asyncio. It knows no library.

Nothing is sent again here: a WATCH dies with its connection, and what was read under it may be out of date. Where
nothing was executed, the caller's loop may begin again with WATCH, as after a conflict, so it gets the library's
WatchError; before that it is held back by the policy, and once the policy's limits are reached it gets the error
itself. Where EXEC may have been executed, it gets the error at once.
"""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import TypeVar

from forbear.core.report import reports_made
from forbear.core.verdict import CONFLICT, Kind
from forbear.exchange.redis.call import Call
from forbear.exchange.redis.settings import Settings
from forbear.exchange.redis.verdicts import failure_of, is_watch_error, verdict_of
from forbear.exchange.redis.work import Work
from forbear.policy import Policy
from forbear.run.runtime import current_runtime
from forbear.run.switch import is_off
from forbear.services.redis.errors import BEGIN_AGAIN

T = TypeVar("T")


class Loop:
    """A caller's loop under WATCH: `call` is the run of the cycles in a row that failed before anything was executed.

    `conflict` is the library's WatchError.
    """

    __slots__ = ("call", "conflict")

    def __init__(self, conflict: type[Exception]) -> None:
        self.conflict = conflict
        self.call: Call | None = None


def run(
    settings: Settings,
    loop: Loop | None,
    describe: Callable[[], Work],
    attempt: Callable[[], T],
    *,
    ends: bool = False,
) -> T:
    """Make the attempt once; `describe` returns the work, and `ends` says that the cycle ends with it.

    `loop` is None where forbear runs the cycles itself: it wants the failure of the command, never a WatchError.
    """
    step = _Step(settings, loop, describe, ends=ends)
    raised = delay = None
    try:
        try:
            value = attempt()
        except Exception as error:
            raised, delay = step.failed(error)
            if delay is None and raised is error:
                raise
        else:
            step.succeeded(value)
            return value
        if delay is None or loop is None:
            raise raised
        step.runtime.sleep(delay)
        raise loop.conflict(BEGIN_AGAIN) from raised
    finally:
        del raised  # or this frame and the error would keep each other alive


async def arun(
    settings: Settings,
    loop: Loop | None,
    describe: Callable[[], Work],
    attempt: Callable[[], Awaitable[T]],
    *,
    ends: bool = False,
) -> T:
    """Do the same for asyncio, within the attempt timeout."""
    step = _Step(settings, loop, describe, ends=ends)
    raised = delay = None
    try:
        try:
            if step.policy is None or settings.limit is None:
                value = await attempt()
            else:
                async with step.runtime.within(settings.limit):
                    value = await attempt()
        except Exception as error:
            raised, delay = step.failed(error)
            if delay is None and raised is error:
                raise
        else:
            step.succeeded(value)
            return value
        if delay is None or loop is None:
            raise raised
        await step.runtime.asleep(delay)
        raise loop.conflict(BEGIN_AGAIN) from raised
    finally:
        del raised


class _Step:
    """One step of a cycle: a command that is sent at once, or MULTI to EXEC."""

    def __init__(self, settings: Settings, loop: Loop | None, describe: Callable[[], Work], *, ends: bool) -> None:
        self.policy: Policy | None = None if is_off() else settings.policy
        self.runtime = current_runtime()
        self._settings = settings
        self._loop = loop
        self._describe = describe
        self._ends = ends
        self._started = self.runtime.monotonic()
        self._reports = reports_made[0]

    def succeeded(self, value: object) -> None:
        """Tell the budget and the listener of a success; a cycle that reached its end was not broken off."""
        call = self._take() if self._ends else None
        if self.policy is None:
            return
        if self.policy.judges_values:
            work = replace(self._describe(), repeatable=False)
            (call or self._call(self.policy, work)).returned(value)
        elif call is not None:
            call.succeeded()
        elif self.policy.budget is not None:
            self.policy.budget.put(retried=False)

    def failed(self, error: Exception) -> tuple[Exception, float | None]:
        """Return what to raise, and the seconds to wait if the caller's loop is to begin again because of it."""
        if str(error) == BEGIN_AGAIN:
            return error, None  # of a step within this one, as where scripts are loaded first
        failure = failure_of(error)
        work = replace(self._describe(), watched=False)
        earlier = self._take()
        if is_watch_error(failure):  # a conflict: somebody else was quicker
            if self.policy is not None:
                self._call(self.policy, work).after(CONFLICT, failure)
            return error, None
        verdict = verdict_of(failure, work)
        harmless = verdict.kind is Kind.NOT_EXECUTED or (verdict.kind is Kind.TRANSIENT and work.repeatable)
        as_in_library = harmless and self._loop is not None and is_watch_error(error)
        if self.policy is None:
            return (error if as_in_library else failure), None
        call = earlier or self._call(self.policy, work)
        verdict = call.judged(failure, verdict)
        if verdict.kind is Kind.PERMANENT and as_in_library:
            return error, None  # a policy for some errors only: no reason to end the loop
        if not harmless or verdict.kind is Kind.PERMANENT:
            call.after(verdict, failure, work)
            return failure, None
        delay = call.after(verdict.replace(kind=Kind.NOT_EXECUTED), failure, work)
        if delay is not None and self._loop is not None:
            self._loop.call = call
        return failure, delay

    def _call(self, policy: Policy, work: Work) -> Call:
        return Call(self._settings, policy, work, self.runtime, self._started, self._reports)

    def _take(self) -> Call | None:
        """Return the run of the cycles that broke off before this one, and forget it."""
        if self._loop is None:
            return None
        call, self._loop.call = self._loop.call, None
        return call
