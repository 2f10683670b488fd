"""`Run`: the state of one run. After each failed attempt it says how long to wait, or that the run gives up.

All loops and adapters share it. The order after a failure: `decide`, then a token from the retry budget, then the
events, then the loop's wait.
"""

from functools import partial

from forbear.core.attempt import Attempt, Details
from forbear.core.decide import Reason, Stop, decide
from forbear.core.events import Failed, GaveUp, Recovered, Scheduled, Succeeded
from forbear.core.report import Report, attach, reports_made, text_of
from forbear.core.verdict import NOT_EXECUTED, TRANSIENT, Kind, Verdict
from forbear.run import listeners
from forbear.run.budget import PendingDelay
from forbear.run.doubt import UNSAFE_CALL, leave_call_in_doubt
from forbear.run.endings import refusal_of
from forbear.run.judge_slot import judged, slot
from forbear.run.judges import delayed, why_stopped
from forbear.run.kept import attempts_of, short, with_failure
from forbear.run.nesting import RunOrigin, ended_within, gave_up, harm_within, inherit
from forbear.run.runtime import AttemptTimeout, Runtime
from forbear.run.spending import REFUSED, Spending
from forbear.run.switch import ever_off, ever_stopping, is_off

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from forbear.run.kept import KeptFailure
    from forbear.run.plan import RetryPlan, Subject

    Failure = tuple[Verdict, Exception | None, str, str, float, Details]
    """A failed attempt: its verdict, its error if there is one, its name and text, the seconds elapsed, its details."""


_TRANSIENT = Kind.TRANSIENT  # slow to look up before 3.12


class Run:
    """The state of one run. `report` is set when it gives up; `attempt` is the number of the attempt under way.

    `plan` is the policy and `operation` the name for reports. `started` is the time before the first attempt, on the
    clock of `runtime`, and `reports` the number of reports made by then (default: now). With `awaits`, the loop passes
    each delay through `granted`, so that a blocking budget is awaited there; without it, `after` asks the budget at
    once. `subject` is the request that the run sends, for the report; None (default) for a run of a function.
    `spending` is the run's part in the budget if the first attempt was counted there; None (default) makes one.
    """

    __slots__ = (
        "plan", "operation", "runtime", "started", "reports", "awaits", "subject", "attempt", "previous", "in_doubt",
        "vouched", "failures", "listeners", "report", "refused", "counts", "spending",
    )  # fmt: skip

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
        self.reports = reports_made[0] if reports is None else reports  # when the attempt under way began
        self.awaits = awaits
        self.subject = subject
        self.attempt = 1
        self.previous: float | None = None
        self.in_doubt = False  # an earlier attempt may have been executed
        self.vouched = False  # only the user's word allowed a retry
        self.failures: tuple[KeptFailure, ...] = ()  # many runs may wait at once: a list is bigger
        self.listeners: tuple[listeners.Listener, ...] = ()  # from the first failure on
        self.report: Report | None = None
        self.counts: dict[int, tuple[int, float | None]] | None = None  # of joined policies
        self.refused = False  # `on_result` refused the last value
        self.spending = spending if plan.budget is None or spending is not None else Spending(plan.budget)

    def failed(self, error: Exception, call: "tuple[tuple[Any, ...], dict[str, Any]] | None" = None) -> float | None:
        """Return the seconds to wait after `error` before the next attempt, None to raise the error.

        The policy judges the error; an AttemptTimeout is transient. `call` has the arguments of a function that failed,
        None for other work; a judge in the slot then says what the error shows. If the run gives up
        with a report, the error has it and its note by then.
        """
        plan = self.plan
        if self.spending is not None and self.spending.refused:
            self.refuse(error)
            return None
        inherit(error, self)
        try:
            verdict = TRANSIENT if type(error) is AttemptTimeout else plan.verdict_of_error(error)
            name, text = type(error).__qualname__, text_of(error)
            rule: RetryPlan = plan.rule_of(error) if plan.others else plan
            repeatable, unsafe = rule.repeats_calls, UNSAFE_CALL
            if call is not None and slot[0] is not None and rule.repeatable is None:
                judgement = judged(error, plan, *call)
                if judgement is not None and not judgement.repeatable:
                    from forbear.core.service import why_not  # no run without a judge needs it

                    repeatable, unsafe = False, why_not(judgement, self.operation)
            return self.after(verdict, error, name, text, repeatable=repeatable, unsafe=unsafe)
        except Exception as broken:
            leave_call_in_doubt(broken, self)
            raise

    def returned(self, value: object) -> float | None:
        """Return the seconds to wait before the next attempt, None to return `value`: a success, or the last value.

        The policy's `on_result` judges the value; without it, any value is a success.
        """
        plan = self.plan
        try:
            verdict = plan.verdict_of_value(value) if plan.checks_values else None
            self.refused = verdict is not None
            if verdict is None:
                self.succeeded()
                return None
            if reports_made[0] != self.reports and not plan.retry_exhausted and harm_within(self) is not None:
                self.end()
                return None
            return self.after(verdict, None, *refusal_of(value), repeatable=plan.repeats_calls, response=value)
        except Exception as broken:
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
            elapsed = self.runtime.monotonic() - self.started
            listeners.notify(self.listeners, Recovered(self.operation, self.attempt, elapsed, self._attempts(elapsed)))

    def end(self) -> None:
        """Count the end of an attempt that was cancelled in the budget; do nothing if its end was counted already."""
        if self.spending is not None:
            self.spending.end()

    @property
    def began(self) -> float:
        """The earliest monotonic time at which the attempt under way can have begun, but for rounding errors.

        For the first attempt it is `started`, for a later one the end of the wait before it.
        """
        if not self.failures:
            return self.started
        last = self.failures[-1]
        elapsed = last.elapsed if isinstance(last, Attempt) else last[3]
        return self.started + elapsed + (self.previous or 0.0) - 1e-6

    def attempt_limit(self) -> float | None:
        """Return the seconds that an attempt which starts now may take, None without an attempt timeout.

        It is at most what is left of the timeout, except that a final attempt at the deadline has its full time.
        """
        limit = self.plan.attempt_timeout
        timeout = self.plan.limits.timeout
        if limit is None or timeout is None:
            return limit
        left = timeout - (self.runtime.monotonic() - self.started)
        return min(limit, left) if left > 0 else limit

    def after(
        self,
        verdict: "Verdict",
        error: Exception | None,
        name: str,
        text: str,
        *,
        repeatable: bool,
        maybe_done: bool = False,
        blocked: Stop | None = None,
        unsafe: str | None = None,
        response: object = None,
        details: Details = (),
        vouched: bool = False,
    ) -> float | None:
        """Return the seconds to wait before the next attempt, None to give up; events and report are made here, too.

        `name` and `text` describe the failure; `response` is the failed response or value where there is no `error`.
        `repeatable` says whether the operation may be executed twice, and `unsafe` why not. `maybe_done` says that an
        earlier success would lead to this response. `blocked` forbids a further attempt that the decision would allow,
        because the body cannot be sent again. `details` are the time, status and request ids of the failure, for
        reports; without them the time is reckoned by the monotonic clock. `vouched` says that only the user's word
        allows a retry. With `awaits`, the result may be a `PendingDelay`. None without a report if retries are off, if
        an inner run gave up, or for a permanent first failure.
        """
        if ever_off[0] and is_off():
            self.end()
            return None
        plan: RetryPlan = self.plan
        outcome = response if error is None else error
        if reports_made[0] != self.reports and not plan.retry_exhausted and ended_within(outcome, self):
            if self.spending is not None:
                self.spending.failed(verdict, error)
            return None
        if self.attempt == 1:
            self.listeners = listeners.of_run(plan.on_event)
        spending, priced = self.spending, verdict
        if spending is not None:
            priced = spending.failed(verdict, error)
        elapsed = self.runtime.monotonic() - self.started
        number, previous = self.attempt, self.previous
        if plan.others:
            plan, number, previous = self._joined(error)
            if plan.repeatable is False:
                repeatable, unsafe = False, None
        if plan.delay is not None and verdict.delay is None:
            verdict = delayed(verdict, plan.delay(outcome))
        step = decide(
            plan.limits,
            plan.backoff,
            verdict,
            attempt=number,
            elapsed=elapsed,
            u=self.runtime.random(),
            repeatable=repeatable,
            previous=previous,
        )
        failure = verdict, error, name, text, elapsed, details
        if verdict.exhausted and not self.plan.retry_exhausted and blocked is None:
            blocked = Stop(Reason.EXHAUSTED)
        stop = blocked
        if isinstance(step, Stop):
            stop = Stop(Reason.UNSAFE, unsafe) if unsafe is not None and step.reason is Reason.UNSAFE else step
        elif stop is None:
            if ever_stopping[0] or plan.stop is not None:
                stop = self._stopped(failure, plan)
            if stop is None:
                self.vouched |= vouched
                if self.counts is not None:
                    self.counts[id(plan)] = number, step.delay
                if spending is None:
                    return self._schedule(step.delay, failure, outcome)
                if spending.budget.answers_late:
                    from forbear.run.late import settled

                    return settled(self, spending.budget, step.delay, failure, outcome, maybe_done)
                settle = partial(self._settle, step.delay, failure, outcome, maybe_done)
                if self.awaits and spending.budget.blocks:
                    return PendingDelay(step.delay, spending.budget.atake, settle)
                return settle(spending.take(priced, step.delay))
        self._give_up(stop, failure, outcome, maybe_done)
        return None

    def refuse(self, error: Exception) -> None:
        """Give up with `error`, a Throttled: the budget refused the first attempt."""
        self.listeners = listeners.of_run(self.plan.on_event)
        elapsed = self.runtime.monotonic() - self.started
        failure = NOT_EXECUTED, error, type(error).__qualname__, text_of(error), elapsed, ()
        self._give_up(Stop(Reason.BUDGET, REFUSED), failure, error, maybe_done=False)

    def _joined(self, error: Exception | None) -> "tuple[RetryPlan, int, float | None]":
        """Return the policy that counts for `error` among joined ones, the number of its failures and its last delay.

        For an outcome without an error the left policy counts.
        """
        plan = self.plan
        rule: RetryPlan = plan if error is None else plan.rule_of(error)
        self.counts = counts = {} if self.counts is None else self.counts
        failures, previous = counts.get(id(rule), (0, None))
        return rule, failures + 1, previous

    def _stopped(self, failure: "Failure", plan: "RetryPlan") -> Stop | None:
        """Return the caller's stop, by the policy's `stop` or an event of `stop_on`; None to go on."""
        if ever_stopping[0]:
            from forbear.run.stopping import WHY, is_stopped

            if is_stopped():
                return Stop(Reason.STOPPED, WHY)
        stop = plan.stop
        if stop is None:
            return None
        verdict, error, name, text, elapsed, _ = failure
        shown = Attempt(self.attempt, name, text, elapsed).text  # without secrets
        why = why_stopped(stop(Failed(self.operation, self.attempt, elapsed, error, shown, verdict, name)))
        return None if why is None else Stop(Reason.STOPPED, why)

    def _settle(
        self, delay: float, failure: "Failure", outcome: object, maybe_done: bool, allowed: bool
    ) -> float | None:
        """Schedule the retry if the budget `allowed` it, otherwise give up; return the delay or None."""
        if allowed:
            return self._schedule(delay, failure, outcome)
        self._give_up(Stop(Reason.BUDGET), failure, outcome, maybe_done)
        return None

    def _schedule(self, delay: float, failure: "Failure", outcome: object) -> float | None:
        """Count the failed attempt, notify the listeners of it and of the retry, and return `delay`.

        Within `stop_on`, sync code waits here, where the run can still give up. It then returns `WAITED`, a delay of 0,
        or None if the event was set.
        """
        verdict, error, name, text, elapsed, details = failure
        number = self.attempt
        if self.listeners:
            kept = Attempt(number, name, text, elapsed, delay, *(details or (self.runtime.now(), None, ())))
            failed = Failed(self.operation, number, elapsed, error, kept.text, verdict, name)
            scheduled = Scheduled(self.operation, number + 1, elapsed, delay, kept, self.vouched)
            listeners.notify(self.listeners, failed, scheduled)
            self.failures = with_failure(self.failures, kept)
        else:
            self.failures = with_failure(self.failures, short(number, name, text, elapsed, delay, details))
        if verdict.kind is _TRANSIENT:
            self.in_doubt = True
        self.attempt = number + 1
        self.previous = delay
        if ever_stopping[0] and not self.awaits:
            from forbear.run.stopping import WHY, waited

            left = waited(self.runtime, delay)
            if left is None:
                self._withdraw(Stop(Reason.STOPPED, WHY), failure, outcome)
                return None
            delay = left
        self.reports = reports_made[0]
        return delay

    def _withdraw(self, stop: Stop, failure: "Failure", outcome: object) -> None:
        """Give up instead of the retry that was scheduled last."""
        self.attempt -= 1
        self.failures = self.failures[:-1]
        self._give_up(stop, failure, outcome, maybe_done=False, known=True)

    def _give_up(
        self, stop: Stop, failure: "Failure", outcome: object, maybe_done: bool, *, known: bool = False
    ) -> None:
        """Make the report, attach it to the error, if there is one, and notify the listeners.

        With `known` they know of the failed attempt already. Nothing is done for a permanent failure of the first
        attempt, unless `in_doubt` is set.
        """
        if stop.reason is Reason.PERMANENT and self.attempt == 1 and not self.in_doubt:
            return  # nothing was retried and nothing should have been: the error is the caller's business alone
        verdict, error, name, text, elapsed, details = failure
        last = Attempt(self.attempt, name, text, elapsed, None, *(details or (self.runtime.now(), None, ())))
        self.failures = with_failure(self.failures, last)
        attempts = self._attempts(elapsed)
        subject = self.subject
        self.report = Report(
            self.operation,
            attempts,
            elapsed,
            stop.reason,
            stop.text,
            maybe_done and self.in_doubt,
            self.attempt - len(attempts),
            RunOrigin(self, error),
            None if subject is None else subject.method,
            None if subject is None else subject.resource,
            vouched=self.vouched,
        )
        gave_up(self.report, outcome)
        if error is not None:
            attach(error, self.report)
        if self.listeners:
            failed = Failed(self.operation, self.attempt, elapsed, error, last.text, verdict, name)
            news = () if known else (failed,)
            listeners.notify(self.listeners, *news, GaveUp(self.operation, self.report))

    def _attempts(self, elapsed: float) -> tuple[Attempt, ...]:
        """Return the kept failures as attempts; `elapsed` is now. The wall clock is read once, only here."""
        return attempts_of(self.failures, self.runtime.now() - elapsed)
