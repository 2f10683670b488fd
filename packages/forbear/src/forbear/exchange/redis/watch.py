"""Commands under WATCH in a loop of the caller's own, sync and asyncio.

Nothing is sent again here: a WATCH dies with its connection, and what was read under it may be out of date. Where
nothing was executed, or executing it twice is harmless, the caller's loop may begin again with WATCH, as after a
conflict. It then gets the library's WatchError, after a wait by the policy; once the policy's limits are reached, it
gets the error itself. A conflict, and any failure of EXEC that may have been executed, is raised at once.
"""

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import replace
from typing import TypeVar

from forbear.core.report import reports_made
from forbear.core.verdict import CONFLICT, Kind
from forbear.exchange.redis.command_run import CommandRun
from forbear.exchange.redis.settings import RedisSettings
from forbear.exchange.redis.verdicts import failure_of, is_watch_error, verdict_of
from forbear.exchange.redis.work import Work
from forbear.policy import Policy
from forbear.run.grant import Grant
from forbear.run.runtime import current_runtime
from forbear.run.spending import admit, succeeded
from forbear.run.switch import is_off
from forbear.services.redis.errors import BEGIN_AGAIN
from forbear.services.redis.vouch import Safe

T = TypeVar("T")


class WatchLoop:
    """A caller's loop under WATCH; `conflict` is the library's WatchError class.

    `run` is the run of the last cycles in a row that failed and may begin again without harm, None after any other.
    """

    __slots__ = ("conflict", "run")

    def __init__(self, conflict: type[Exception]) -> None:
        self.conflict = conflict
        self.run: CommandRun | None = None

    def begin_again(self, run: CommandRun | None) -> Exception:
        """Return the library's WatchError, which makes the caller's loop begin again; keep `run` for the next cycle."""
        self.run = run
        return self.conflict(BEGIN_AGAIN)


class WatchStep:
    """One step of a cycle: a command that is sent at once, or MULTI to EXEC, which `ends` the cycle.

    `describe` returns the description of what is sent. `loop` is the caller's own loop, which begins again after a
    WatchError. It is None where forbear runs the cycles itself; a step then raises the failure of the command, never a
    WatchError in its place.
    """

    def __init__(
        self, settings: RedisSettings, loop: WatchLoop | None, describe: Callable[[Safe], Work], *, ends: bool = False
    ) -> None:
        self.runtime = current_runtime()
        self._settings = settings
        self._policy: Policy | None = None if is_off() else settings.policy
        self._loop = loop
        self._describe = describe
        self._ends = ends
        self._started = self.runtime.monotonic()
        self._reports = reports_made[0]
        self._run: CommandRun | None = None
        self._awaits = False
        self._spending = None if self._policy is None else settings.spending()

    def send(self, attempt: Callable[[], T]) -> T:
        """Make the step's only attempt and return its value.

        After a failure, raise it, or wait and raise the library's WatchError if the caller's loop may begin again. In
        the retry budget each step counts as a first attempt; Throttled if the budget refuses it.
        """
        self._begin()
        raised = None
        try:
            try:
                value = attempt()
            except Exception as error:
                raised, grant = self._failed(error)
                goes_on = grant is not None and grant.ask()
                if not goes_on and raised is error:
                    raise
            except BaseException as interrupt:
                self._cut_off(interrupt)
                raise
            else:
                self._succeeded(value)
                return value
            if grant is None or not goes_on or self._loop is None:
                raise raised
            grant.sleep()
            raise self._loop.begin_again(self._run) from raised
        finally:
            self._end()
            del raised  # otherwise this frame and the error would keep each other alive

    async def asend(self, attempt: Callable[[], Awaitable[T]]) -> T:
        """The asyncio form of `send`, limited by the attempt timeout."""
        self._awaits, raised = True, None
        self._begin()
        try:
            try:
                async with self._time_limit():
                    value = await attempt()
            except Exception as error:
                raised, grant = self._failed(error)
                goes_on = grant is not None and await grant.aask()
                if not goes_on and raised is error:
                    raise
            except BaseException as interrupt:  # a cancellation, too
                self._cut_off(interrupt)
                raise
            else:
                self._succeeded(value)
                return value
            if grant is None or not goes_on or self._loop is None:
                raise raised
            await grant.asleep()
            raise self._loop.begin_again(self._run) from raised
        finally:
            self._end()
            del raised

    def _begin(self) -> None:
        policy, spending = self._policy, self._spending
        if policy is not None and spending is not None:
            admit(spending, self.runtime, lambda: self._new_run(policy, self._describe(self._settings.safe)))

    def _end(self) -> None:
        """Count the end of the step, and of the wait before the next cycle: its first step counts again."""
        if self._spending is not None:
            self._spending.end()
        if self._run is not None:
            self._run.end()

    def _time_limit(self) -> AbstractAsyncContextManager[object]:
        limit = None if self._policy is None else self._settings.limit
        return nullcontext() if limit is None else self.runtime.within(limit)

    def _succeeded(self, value: object) -> None:
        """Notify the budget and the listener of a success, after EXEC also of the cycles that failed before it.

        Without a policy do nothing. A policy with `on_result` judges `value` first, but the value is returned in any
        case.
        """
        run = self._take_run() if self._ends else None
        if self._policy is None:
            return
        if self._policy.checks_values:
            work = replace(self._describe(self._settings.safe), repeatable=False)
            (run or self._new_run(self._policy, work)).returned(value)
        else:
            succeeded(run, self._policy, self._spending)

    def _failed(self, error: Exception) -> tuple[Exception, Grant | None]:
        """Return the exception to raise, and the grant to wait for if the caller's loop may begin again, else None.

        If it is granted, the library's WatchError is raised in place of the returned failure.
        """
        if str(error) == BEGIN_AGAIN:
            return error, None  # the error of a step within this one, such as loading scripts first
        failure = failure_of(error)
        work = replace(self._describe(self._settings.safe), watched=False)
        earlier = self._take_run()
        if is_watch_error(failure):  # a conflict: another client was quicker
            if self._policy is not None:
                self._new_run(self._policy, work).failed_as(CONFLICT, failure)
            return error, None
        verdict = verdict_of(failure, work)
        harmless = verdict.kind is Kind.NOT_EXECUTED or (verdict.kind is Kind.TRANSIENT and work.repeatable)
        as_in_library = harmless and self._loop is not None and is_watch_error(error)
        if self._policy is None:
            return (error if as_in_library else failure), None
        self._run = run = earlier or self._new_run(self._policy, work)
        verdict = run.policy_verdict(failure, verdict)
        if verdict.kind is Kind.PERMANENT and as_in_library:
            return error, None  # a policy for some errors only: no reason to end the caller's loop
        if not harmless or verdict.kind is Kind.PERMANENT:
            run.failed_as(verdict, failure, work)
            return failure, None
        return failure, run.failed_as(verdict.replace(kind=Kind.NOT_EXECUTED), failure, work)

    def _cut_off(self, error: BaseException) -> None:
        """Attach a report to `error`, a cancellation or interrupt under way, unless repeating the step is harmless."""
        if self._policy is not None:
            work = replace(self._describe(self._settings.safe), watched=False)
            self._new_run(self._policy, work).cut_off(error)

    def _take_run(self) -> CommandRun | None:
        """Return the run of the failed cycles before this one, None if there is none, and make the loop forget it."""
        if self._loop is None:
            return None
        run, self._loop.run = self._loop.run, None
        return run

    def _new_run(self, policy: Policy, work: Work) -> CommandRun:
        return CommandRun(
            self._settings,
            policy,
            work,
            self.runtime,
            self._started,
            self._reports,
            awaits=self._awaits,
            spending=self._spending,
        )
