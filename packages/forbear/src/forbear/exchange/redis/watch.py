"""The state of cycles from WATCH to EXEC: of a loop of the caller's own, and of `transaction(func, *keys)`.

In a loop of the caller's own nothing is sent again here: a WATCH dies with its connection, and what was read under it
may be out of date. Where nothing was executed, or executing it twice is harmless, the loop may begin again with WATCH,
as after a conflict. It then gets the library's WatchError, after a wait by the policy; once the policy's limits are
reached, it gets the error itself. A conflict, and any failure of EXEC that may have been executed, is raised at once.

`transaction()` repeats the whole cycle itself, after a conflict and in the same cases, within the policy's limits.
"""

from contextlib import AbstractAsyncContextManager, nullcontext
from typing import Any, Self

from forbear.core.dataclass import replace
from forbear.core.record import reports_made
from forbear.core.verdict import CONFLICT, PERMANENT, Kind, Verdict
from forbear.exchange.call import is_only_of_user
from forbear.exchange.redis.command_run import CommandRun
from forbear.exchange.redis.descriptions import SentCommands, enter_commands, judge_together
from forbear.exchange.redis.pipelines import PipelineRequest, TransactionCycle
from forbear.exchange.redis.settings import RedisSettings
from forbear.exchange.redis.verdicts import failure_of, is_watch_error, verdict_of
from forbear.policy import Policy
from forbear.run.grant import Grant
from forbear.run.runtime import current_runtime
from forbear.run.spending import admit, begin, succeeded
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


_TRANSACTION = SentCommands("transaction", repeatable=False, unsafe="")


class TransactionRun:
    """The state of a transaction's loop: the cycle under way, and the run that counts and limits the cycles.

    With `value_from_callable` the value of the caller's function is returned instead of EXEC's. `watch_delay` (seconds)
    replaces the policy's backoff after a conflict, and `max_tries` its attempts; None and 0 replace nothing.
    `awaits` is as for `Run`. Entering it counts the first cycle in the retry budget, and raises Throttled if the budget
    refuses it.
    """

    def __init__(
        self,
        settings: RedisSettings,
        policy: Policy,
        *,
        value_from_callable: bool = False,
        watch_delay: float | None = None,
        max_tries: int | None = None,
        awaits: bool = False,
    ) -> None:
        self.cycle = TransactionCycle()
        policy = policy.with_attempts(max_tries) if max_tries else policy
        self._safe = settings.safe
        self._run = CommandRun(settings, policy, _TRANSACTION, awaits=awaits)
        self._value_from_callable = value_from_callable
        self._delay = watch_delay or None

    def __enter__(self) -> Self:
        begin(self._run)
        return self

    def __exit__(self, *raised: object) -> None:
        self._run.end()

    def succeeded(self, value: Any, executed: Any) -> Any:
        """Notify the budget and the listener of a success; return the function's value or EXEC's, as chosen."""
        self._run.succeeded()
        return value if self._value_from_callable else executed

    def failed(self, error: Exception) -> Grant | None:
        """Return the retry of the cycle, None to raise the error."""
        if not self.cycle.failed:
            return self._run.fail_as(PERMANENT, error)  # the caller's function failed by itself
        work, harmless = self._work()
        proven = verdict_of(error, work)
        verdict = self._run.policy_verdict(error, proven)
        by_word = is_only_of_user(verdict, proven)
        # A command that was sent at once has taken effect, whatever comes of EXEC, as a script may have.
        work = replace(work, scripted=work.scripted or not harmless)
        verdict = self._verdict_of_cycle(verdict, harmless)
        return self._run.fail_as(verdict, error, work, by_word=by_word and verdict.kind is Kind.NOT_EXECUTED)

    def cut_off(self, error: BaseException) -> None:
        """Attach a report to `error`, which interrupted a command, unless repeating the cycle is harmless."""
        if self.cycle.failed:
            self._run.cut_off(error, self._work()[0])

    def _work(self) -> tuple[SentCommands, bool]:
        """Return what the cycle has sent so far, and whether the commands sent at once may be executed twice.

        Before EXEC, only those can have taken effect.
        """
        at_once = judge_together(self.cycle.at_once, self._safe, at_once=True)
        queued = _TRANSACTION if self.cycle.queued is None else self.cycle.queued.describe(self._safe)
        harmless = all(judgement.repeatable for judgement in at_once)
        repeatable = harmless and (self.cycle.queued is None or queued.repeatable)
        vouched = queued.vouched or any(judgement.vouched for judgement in at_once)
        return replace(queued, repeatable=repeatable, watched=False, vouched=vouched), harmless

    def _verdict_of_cycle(self, verdict: Verdict, harmless: bool) -> Verdict:
        """Turn the verdict on a step into the verdict on the whole cycle, which may be repeated after a conflict.

        CONFLICT becomes NOT_EXECUTED. NOT_EXECUTED becomes TRANSIENT unless the commands sent at once are `harmless`:
        all may be executed twice.
        """
        if verdict.kind is Kind.CONFLICT:
            return verdict.replace(kind=Kind.NOT_EXECUTED, delay=self._delay)
        if verdict.kind is Kind.NOT_EXECUTED and not harmless:
            return verdict.replace(kind=Kind.TRANSIENT)
        return verdict
