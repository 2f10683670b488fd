"""The state of a command under WATCH in a loop of the caller's own.

Nothing is sent again here: a WATCH dies with its connection, and what was read under it may be out of date. Where
nothing was executed, or executing it twice is harmless, the caller's loop may begin again with WATCH, as after a
conflict. It then gets the library's WatchError, after a wait by the policy; once the policy's limits are reached, it
gets the error itself. A conflict, and any failure of EXEC that may have been executed, is raised at once.
"""

from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import replace

from forbear.core.report import reports_made
from forbear.core.verdict import CONFLICT, Kind
from forbear.exchange.redis.command_run import CommandRun
from forbear.exchange.redis.descriptions import SentCommands, enter_commands
from forbear.exchange.redis.pipelines import PipelineRequest
from forbear.exchange.redis.verdicts import failure_of, is_watch_error, verdict_of
from forbear.policy import Policy
from forbear.run.grant import Grant
from forbear.run.runtime import current_runtime
from forbear.run.spending import admit, succeeded
from forbear.run.switch import is_off
from forbear.services.redis.errors import BEGIN_AGAIN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from forbear.run.ledger import Entry


class WatchStep:
    """One step of a cycle: a command that is sent at once, or MULTI to EXEC, which ends the cycle.

    `loop` is the caller's own loop, which begins again after a WatchError. It is None where forbear runs the cycles
    itself; a step then raises the failure of the command, never a WatchError in its place. `run` is the run of the
    cycles that failed.
    """

    def __init__(self, request: PipelineRequest, *, awaits: bool = False) -> None:
        state = request.state
        self.loop = state.loop if state.cycle is None else None
        self.run: CommandRun | None = None
        self._request = request
        self._runtime = current_runtime()
        self._settings = state.settings
        self._policy: Policy | None = None if is_off() else state.settings.policy
        self._started = self._runtime.monotonic()
        self._reports = reports_made[0]
        self._awaits = awaits
        self._spending = None if self._policy is None else state.settings.spending()
        self._entry: Entry | None = None

    def begin(self) -> None:
        policy, spending = self._policy, self._spending
        if policy is not None and spending is not None:
            admit(spending, self._runtime, lambda: self._new_run(policy, self._request.describe(self._settings.safe)))
        self._entry = enter_commands(self._request, PipelineRequest.describe, self._settings.safe)

    def end(self) -> None:
        """Count the end of the step, and of the wait before the next cycle: its first step counts again."""
        if self._spending is not None:
            self._spending.end()
        if self.run is not None:
            self.run.end()

    def time_limit(self) -> AbstractAsyncContextManager[object]:
        limit = None if self._policy is None else self._settings.limit
        return nullcontext() if limit is None else self._runtime.within(limit)

    def succeeded(self, value: object) -> None:
        """Notify the budget and the listener of a success, after EXEC also of the cycles that failed before it.

        Without a policy do nothing. A policy with `on_result` judges `value` first, but the value is returned in any
        case.
        """
        run = self._take_run() if self._request.ends_cycle else None
        if self._entry is not None:
            self._entry.done()
        if self._policy is None:
            return
        if self._policy.checks_values:
            work = replace(self._request.describe(self._settings.safe), repeatable=False)
            (run or self._new_run(self._policy, work)).returned(value)
        else:
            succeeded(run, self._policy, self._spending)

    def failed(self, error: Exception) -> tuple[Exception, Grant | None]:
        """Return the exception to raise, and the grant to wait for if the caller's loop may begin again, else None.

        If it is granted, the library's WatchError is raised in place of the returned failure.
        """
        if str(error) == BEGIN_AGAIN:
            return error, None  # the error of a step within this one, such as loading scripts first
        failure = failure_of(error)
        work = replace(self._request.describe(self._settings.safe), watched=False)
        earlier = self._take_run()
        if is_watch_error(failure):  # a conflict: another client was quicker
            if self._entry is not None:
                self._entry.take_back()
            if self._policy is not None:
                self._new_run(self._policy, work).fail_as(CONFLICT, failure)
            return error, None
        verdict = verdict_of(failure, work)
        if self._entry is not None and verdict.kind is Kind.NOT_EXECUTED:
            self._entry.take_back()
        harmless = verdict.kind is Kind.NOT_EXECUTED or (verdict.kind is Kind.TRANSIENT and work.repeatable)
        as_in_library = harmless and self.loop is not None and is_watch_error(error)
        if self._policy is None:
            return (error if as_in_library else failure), None
        self.run = run = earlier or self._new_run(self._policy, work)
        verdict = run.policy_verdict(failure, verdict)
        if verdict.kind is Kind.PERMANENT and as_in_library:
            return error, None  # a policy for some errors only: no reason to end the caller's loop
        if not harmless or verdict.kind is Kind.PERMANENT:
            run.fail_as(verdict, failure, work)
            return failure, None
        return failure, run.fail_as(verdict.replace(kind=Kind.NOT_EXECUTED), failure, work)

    def cut_off(self, error: BaseException) -> None:
        """Attach a report to `error`, a cancellation or interrupt under way, unless repeating the step is harmless."""
        if self._policy is not None:
            work = replace(self._request.describe(self._settings.safe), watched=False)
            self._new_run(self._policy, work).cut_off(error)

    def _take_run(self) -> CommandRun | None:
        """Return the run of the failed cycles before this one, None if there is none, and make the loop forget it."""
        if self.loop is None:
            return None
        run, self.loop.run = self.loop.run, None
        return run

    def _new_run(self, policy: Policy, work: SentCommands) -> CommandRun:
        return CommandRun(
            self._settings,
            policy,
            work,
            self._runtime,
            self._started,
            self._reports,
            awaits=self._awaits,
            spending=self._spending,
        )
