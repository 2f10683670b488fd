"""`Run`: the state of one run, for all loops and adapters; `Run.after` has the steps that follow a failed attempt."""

from forbear.core.attempt import Attempt
from forbear.core.chain import cause_of, context_of
from forbear.core.decide import Reason, Stop, Wait, decide
from forbear.core.events import Succeeded
from forbear.core.record import reports_made
from forbear.core.verdict import NOT_EXECUTED, TRANSIENT, Kind
from forbear.run import listeners
from forbear.run.answers import (
    Broken,
    TryAgain,
    judge,
    read_stop,
    refusal_of,
    rule_of,
    set_delay,
    verdict_of_error,
    verdict_of_value,
)
from forbear.run.doubt import UNSAFE_CALL, leave_call_in_doubt
from forbear.run.failure import DetailedFailure, Failure
from forbear.run.grant import Grant
from forbear.run.judge_slot import unsafe_by_evidence
from forbear.run.ledger import reads_in, why_not_again
from forbear.run.nesting import harm_within, inherit, is_ended_within
from forbear.run.open_runs import expiry, run_keys
from forbear.run.record import RunRecord
from forbear.run.runtime import AttemptTimeout, Runtime
from forbear.run.spending import REFUSED, Spending, _throttled
from forbear.run.switch import ever_off, ever_stopping, is_off

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from forbear.core.report import Report
    from forbear.run.listeners import Listener
    from forbear.run.plan import RetryPlan
    from forbear.run.protocols import Subject
    from forbear.run.record import KeptFailure

    Call = tuple[object, tuple[Any, ...], dict[str, Any]]
    """A function with its arguments, by position and by name; None and no arguments for a block."""


_TRANSIENT = Kind.TRANSIENT  # slow to look up before 3.12
_OWN = TryAgain, AttemptTimeout  # errors whose verdict is not the policy's


class Run(RunRecord):
    """The state of one run, and the grant of its next retry if no budget takes its time: that saves an object.

    `report` is set when it gives up; `attempt` is the number of the attempt under way.
    `plan` is the policy and `operation` the name for reports. `started` is the time before the first attempt, on the
    clock of `runtime`, and `reports` the number of reports made by then (default: now). `awaits` is True if the loop is
    async: then it shares its thread, and `stop_on` does not end its waits. `subject` is the request that the run sends,
    for the report; None (default) for a run of a function. `spending` is the run's part in the budget if the first
    attempt was counted there; None (default) makes one. Example: see `Failure`.
    """

    __slots__ = ("refused", "counts", "spending")

    def __init__(
        self,
        plan: "RetryPlan",
        operation: str,
        runtime: "Runtime",
        started: float,
        reports: int | None = None,
        *,
        awaits: bool = False,
        subject: "Subject | None" = None,
        spending: Spending | None = None,
    ) -> None:
        self.plan = plan
        self.operation = operation
        self.runtime = runtime
        self.started = started
        self.reports = reports_made.now if reports is None else reports  # when the attempt under way began
        self.awaits = awaits
        self.subject = subject
        self.attempt = 1
        self.previous: float | None = None
        self.in_doubt = False
        self.vouched = False
        self.maybe_done, self.billed = False, 0
        self.failures: tuple[KeptFailure, ...] = ()  # many runs may wait at once: a list is bigger
        self.listeners: tuple[Listener, ...] | None = None
        self.report: Report | None = None
        self.counts: dict[int, tuple[int, float | None]] | None = None  # of joined policies
        self.refused = False  # `on_result` refused the last value
        self.spending = spending if plan.budget is None or spending is not None else Spending(plan.budget)

    def failed(self, error: Exception, call: "Call | None" = None) -> Grant | None:
        """Return the retry that follows `error`, None to raise it.

        The policy judges the error; an AttemptTimeout is transient. `call` has the arguments of a function that failed,
        None for other work; a judge in the slot then says what the error shows. If the run gives up with a report, the
        error has it and its note by then.
        """
        plan = self.plan
        if self.spending is not None and self.spending.refused:
            self.refuse(error)
            return None
        if reports_made.now != self.reports or context_of(error) is not None or cause_of(error) is not None:
            inherit(error, self)
        rule: RetryPlan = rule_of(plan, error) if plan.others else plan
        if isinstance(error, _OWN):
            verdict = TRANSIENT if type(error) is AttemptTimeout else verdict_of_error(plan, error)
        else:
            verdict = judge(rule, error)
        unsafe = None if rule.repeats_calls else UNSAFE_CALL
        checked = blocked = None
        if call is not None and rule.repeatable is None:
            if reports_made.now != self.reports:
                checked = reports_made.now
                blocked = self._block_by_ledger(call)
            if blocked is not None:
                unsafe = blocked.text
            elif verdict.kind is _TRANSIENT or type(verdict) is Broken:
                try:
                    unsafe = unsafe_by_evidence(error, self, call, reads_in) or unsafe
                except Exception as broken:
                    verdict, unsafe = Broken(broken), UNSAFE_CALL
        if not (run_keys or self.maybe_done or checked):
            return self.after(Failure(verdict, error, unsafe))
        done = self.maybe_done and self.in_doubt
        failure = DetailedFailure(verdict, error, unsafe, blocked=blocked, maybe_done=done, checked=checked)
        failure.until = None if call is None else expiry(self)
        return self.after(failure)

    def _block_by_ledger(self, call: "Call") -> Stop | None:
        """Return the stop for what adapters have sent in this attempt, None if nothing of it forbids another one."""
        why = why_not_again(self, *call)
        return None if why is None else Stop(Reason.UNSAFE, why)

    def returned(self, value: object, call: "Call | None" = None) -> Grant | None:
        """Return the retry that follows `value`, None to return it: a success, or the last value.

        The policy's `on_result` judges the value; without it, any value is a success. `call` is as for `failed`.
        """
        plan = self.plan
        try:
            verdict = None if plan.on_result is None else verdict_of_value(plan.on_result, value)
            self.refused = verdict is not None
            if verdict is None:
                self.succeeded()
                return None
            if reports_made.now != self.reports and not plan.retry_exhausted and harm_within(self) is not None:
                self.end()
                return None
            name, text = refusal_of(value)
            failure = DetailedFailure(verdict, None, name=name, text=text, response=value)
            failure.unsafe = None if plan.repeats_calls else Reason.UNSAFE.value
            if call is not None and reports_made.now != self.reports and plan.repeatable is None:
                failure.checked = reports_made.now
                failure.blocked = self._block_by_ledger(call)
            return self.after(failure)
        except Exception as broken:  # there is no error of the user's that it could hide
            leave_call_in_doubt(broken, self)
            raise

    def succeeded(self) -> None:
        """Count a success in the budget, and notify the listeners if it took more than one attempt."""
        if self.spending is not None:
            self.spending.succeeded(retried=self.attempt > 1)
        if self.plan.on_success is not None:
            elapsed = self.runtime.monotonic() - self.started
            listeners.notify((self.plan.on_success,), Succeeded(self.operation, self.attempt, elapsed))
        if self.listeners:  # set by a failure
            self.notify_recovered()

    def gate(self, function: "Callable[..., Any]") -> "Callable[..., Any]":
        """Return `function` if the budget admits the first attempt, else a function that raises Throttled.

        While retries are off, nothing is refused or counted.
        """
        return function if self.spending is None or self.spending.admits(self.runtime) else _throttled

    def end(self) -> None:
        """Count the end of an attempt that was cancelled in the budget; do nothing if its end was counted already."""
        if self.spending is not None:
            self.spending.end()

    def attempt_limit(self) -> float | None:
        """Return the seconds that an attempt which starts now may take, None without an attempt timeout.

        It is at most what is left of the timeout, except that a final attempt at the deadline has its full time.
        """
        limit, timeout = self.plan.attempt_timeout, self.plan.limits.timeout
        if limit is None or timeout is None:
            return limit
        left = timeout - (self.runtime.monotonic() - self.started)
        return min(limit, left) if left > 0 else limit

    def after(self, failure: Failure) -> Grant | None:
        """Return the retry that follows `failure`, None to give up. A loop asks the grant, and then waits.

        The steps, in this order; each may end the run:

        1. While retries are off, or if an inner run gave up, the failure passes through without a report.
        2. The budget counts it.
        3. `decide`: the verdict, the safety of a repeat, and the limits.
        4. What blocks a retry, retries that the client itself has used up, and the caller's own stop.
        5. The budget is asked. If its answer takes time, the grant asks.
        6. `schedule` counts the retry, or `give_up` makes the report. Both notify the listeners.
        """
        if (ever_off[0] or reports_made.now != self.reports) and self._passes_through(failure):
            return None
        plan, spending = self.plan, self.spending
        if self.listeners is None:
            self.listeners = listeners.collect(plan.on_event)
        verdict = counted = failure.verdict
        if spending is not None:
            counted = spending.failed(verdict, failure.error)
        failure.elapsed = elapsed = self.runtime.monotonic() - self.started
        try:
            if verdict.kind is not _TRANSIENT and type(verdict) is Broken:
                raise verdict.error
            number, previous = self.attempt, self.previous
            if plan.others:
                plan, number, previous = self._find_joined(failure)
            if plan.delay is not None and verdict.delay is None:
                failure.verdict = verdict = set_delay(verdict, plan.delay(failure.outcome))
            step = decide(
                plan.limits,
                plan.backoff,
                verdict,
                attempt=number,
                elapsed=elapsed,
                u=self.runtime.random(),
                repeatable=failure.unsafe is None,
                previous=previous,
            )
            if isinstance(step, Stop):
                step = Stop(Reason.UNSAFE, failure.unsafe) if step.reason is Reason.UNSAFE else step
            else:
                if failure.is_detailed or verdict.exhausted or ever_stopping[0] or plan.stop is not None:
                    step = self._find_block(failure, plan, step.delay) or step
                if self.counts is not None and isinstance(step, Wait):
                    self.counts[id(plan)] = number, step.delay
        except Exception as broken:
            step = self._stop_for(broken, failure)

        if isinstance(step, Wait):
            if spending is None:
                return self.schedule(failure, step.delay)
            if spending.budget.open_grant is not None:
                return spending.budget.open_grant(self, spending.budget, failure, step.delay)
            if spending.take(counted, step.delay):
                return self.schedule(failure, step.delay)
            step = Stop(Reason.BUDGET)
        self.give_up(step, failure)
        return None

    def _find_block(self, failure: Failure, plan: "RetryPlan", delay: float) -> Stop | None:
        """Return what blocks a retry that the decision allows, or the caller's own stop; None to go on."""
        stop = failure.find_block(delay)
        if stop is None and failure.verdict.exhausted and not self.plan.retry_exhausted:
            stop = Stop(Reason.EXHAUSTED)
        return self._callers_stop(failure, plan) if stop is None else stop

    def _stop_for(self, broken: Exception, failure: Failure) -> Stop:
        """Return the stop because a function of the policy raised `broken` after `failure`; the user's error counts.

        Without one, `broken` itself is raised.
        """
        if failure.error is None or broken is failure.error:
            raise broken
        failure.elapsed = self.runtime.monotonic() - self.started
        text = Attempt(self.attempt, type(broken).__name__, str(broken), 0.0).text  # without secrets
        why = f"{Reason.BROKEN.value}: {type(broken).__name__}" + (f": {text}" if text else "")
        if failure.unsafe is None or failure.verdict.kind is Kind.NOT_EXECUTED:
            return Stop(Reason.BROKEN, why)
        return Stop(Reason.UNSAFE, f"{failure.unsafe}; {why}")

    def refuse(self, error: Exception) -> None:
        """Give up with `error`, a Throttled: the budget refused the first attempt."""
        self.listeners = listeners.collect(self.plan.on_event)
        failure = Failure(NOT_EXECUTED, error)
        failure.elapsed = self.runtime.monotonic() - self.started
        self.give_up(Stop(Reason.BUDGET, REFUSED), failure)

    def _passes_through(self, failure: Failure) -> bool:
        """Return whether the outcome goes to the caller as it is: retries are off, or an inner run gave up."""
        if ever_off[0] and is_off():
            self.end()
            return True
        if reports_made.now == self.reports or self.plan.retry_exhausted or not is_ended_within(failure.outcome, self):
            return False
        if self.spending is not None:
            self.spending.failed(failure.verdict, failure.error)
        return True

    def _find_joined(self, failure: Failure) -> "tuple[RetryPlan, int, float | None]":
        """Return the policy that counts for the error among joined ones, the number of its failures, its last delay.

        For an outcome without an error the left policy counts.
        """
        rule: RetryPlan = self.plan if failure.error is None else rule_of(self.plan, failure.error)
        self.counts = counts = {} if self.counts is None else self.counts
        failures, previous = counts.get(id(rule), (0, None))
        if rule.repeatable is False:
            failure.unsafe = Reason.UNSAFE.value
        return rule, failures + 1, previous

    def _callers_stop(self, failure: Failure, plan: "RetryPlan") -> Stop | None:
        """Return the caller's stop, by the policy's `stop` or an event of `stop_on`; None to go on."""
        if ever_stopping[0]:
            from forbear.run.stopping import WHY, is_stopped

            if is_stopped():
                return Stop(Reason.STOPPED, WHY)
        if plan.stop is None:
            return None
        shown = Attempt(self.attempt, failure.name, failure.text, failure.elapsed).text  # without secrets
        why = read_stop(plan.stop(self.event_of(failure, shown)))
        return None if why is None else Stop(Reason.STOPPED, why)
