"""Run: the state of one run; after a failed attempt every loop and adapter asks it how long to wait, if at all."""

from sys import intern

from forbear.core.decide import Reason, Stop, Wait, decide
from forbear.core.events import Failed, GaveUp, Recovered, Scheduled
from forbear.core.report import Attempt, Report, attach, reports_made, text_of
from forbear.core.verdict import TRANSIENT, Kind
from forbear.run import listeners
from forbear.run.nesting import Origin, ended_within, gave_up
from forbear.run.runtime import AttemptTimeout
from forbear.run.switch import ever_off, is_off

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Protocol

    from forbear.core.backoff import Backoff
    from forbear.core.decide import Limits
    from forbear.core.events import Event
    from forbear.core.verdict import Verdict
    from forbear.run.budget import Budget
    from forbear.run.runtime import Runtime

    Failure = Attempt | tuple[int, str, str, float, float | None]

    class Plan(Protocol):
        """What a run needs to know of a policy."""

        @property
        def limits(self) -> Limits: ...
        @property
        def backoff(self) -> Backoff: ...
        @property
        def budget(self) -> Budget | None: ...
        @property
        def attempt_timeout(self) -> float | None: ...
        @property
        def repeatable(self) -> bool: ...
        @property
        def retry_exhausted(self) -> bool: ...
        @property
        def judges_values(self) -> bool: ...
        @property
        def on_event(self) -> Callable[[Event], object] | None: ...
        def judge_error(self, error: Exception) -> Verdict: ...
        def judge_value(self, value: object) -> Verdict | None: ...


_TRANSIENT = Kind.TRANSIENT  # slow to look up before 3.12

_UNSAFE = f"{Reason.UNSAFE.value}; if it does none, say so with policy.with_repeatable(True)"

_KEPT = 16
"""How many failures are kept from the beginning of a run, and as many from its end: a run may never end."""
_LONGEST_TEXT = 4096
"""Characters of an error's text that are kept until somebody is told of it."""


class Run:
    """The state of one run. `report` is set when it gives up; `attempt` is the number of the attempt under way.

    `started` is the time before the first attempt and `reports` the number of reports made by then (default: now).
    """

    __slots__ = (
        "plan", "operation", "runtime", "started", "reports", "attempt", "previous", "in_doubt", "failures",
        "listeners", "report",
    )  # fmt: skip

    def __init__(
        self, plan: "Plan", operation: str, runtime: "Runtime", started: float, reports: int | None = None
    ) -> None:
        self.plan = plan
        self.operation = operation
        self.runtime = runtime
        self.started = started
        self.reports = reports_made[0] if reports is None else reports  # when the attempt under way began
        self.attempt = 1
        self.previous: float | None = None
        self.in_doubt = False  # an earlier attempt may have been executed
        self.failures: tuple[Failure, ...] = ()  # many runs may wait at once: a list is bigger
        self.listeners: tuple[listeners.Listener, ...] = ()  # from the first failure on
        self.report: Report | None = None

    def failed(self, error: Exception) -> float | None:
        """Seconds to wait before the next attempt, None to let `error` out (it is annotated)."""
        plan = self.plan
        verdict = TRANSIENT if type(error) is AttemptTimeout else plan.judge_error(error)
        name, text = type(error).__qualname__, text_of(error)
        return self.after(verdict, error, name, text, repeatable=plan.repeatable, unsafe=_UNSAFE)

    def returned(self, value: object) -> float | None:
        """Seconds to wait before the next attempt, None to hand `value` out: it is right, or the run gave up."""
        verdict = self.plan.judge_value(value) if self.plan.judges_values else None
        if verdict is None:
            self.succeeded()
            return None
        kind = type(value).__qualname__
        text = f"on_result refused a value of type {kind}"
        return self.after(verdict, None, kind, text, repeatable=self.plan.repeatable, response=value)

    def succeeded(self) -> None:
        """Tell the budget and the listener of a success."""
        retried = self.attempt > 1
        budget = self.plan.budget
        if budget is not None:
            budget.put(retried=retried)
        if retried and self.listeners:
            elapsed = self.runtime.monotonic() - self.started
            listeners.tell(self.listeners, Recovered(self.operation, self.attempt, elapsed, self._attempts()))

    @property
    def began(self) -> float:
        """The earliest time at which the attempt under way can have begun, but for errors of rounding."""
        if not self.failures:
            return self.started
        last = self.failures[-1]
        elapsed = last.elapsed if isinstance(last, Attempt) else last[3]
        return self.started + elapsed + (self.previous or 0.0) - 1e-6

    def attempt_limit(self) -> float | None:
        """Seconds that the attempt which starts now may take, None without an attempt timeout.

        It is what is left of the timeout where that is less; a final attempt that starts at the deadline has its full
        time.
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
    ) -> float | None:
        """Return the seconds to wait before the next attempt, None to give up.

        `name` and `text` describe the failure; `response` is what came back where there is no `error`. `maybe_done`
        says that this response is what an earlier success would lead to. `blocked` forbids another attempt that the
        decision would allow: the body is gone. `unsafe` says why the operation is not repeatable.
        """
        if ever_off[0] and is_off():
            return None
        plan, number = self.plan, self.attempt
        outcome = response if error is None else error
        some_made = reports_made[0] != self.reports
        if some_made and not plan.retry_exhausted and ended_within(outcome, self):
            return None
        if number == 1:
            self.listeners = listeners.of(plan.on_event)
        elapsed = self.runtime.monotonic() - self.started
        step = decide(
            plan.limits,
            plan.backoff,
            verdict,
            attempt=number,
            elapsed=elapsed,
            u=self.runtime.random(),
            repeatable=repeatable,
            previous=self.previous,
        )
        if isinstance(step, Wait):
            delay = step.delay
            stop = blocked
            if stop is None and plan.budget is not None and not plan.budget.take():
                stop = Stop(Reason.BUDGET)
        else:
            delay, stop = 0.0, step
            if unsafe is not None and stop.reason is Reason.UNSAFE:
                stop = Stop(Reason.UNSAFE, unsafe)
        if stop is not None:
            self._give_up(stop, verdict, error, name, text, elapsed, maybe_done, outcome)
            return None
        if self.listeners:
            self._keep(self._scheduled(delay, verdict, error, name, text, elapsed))
        else:
            kept = intern(name) if type(name) is str else name  # that of a built-in class is made anew each time
            self._keep((number, kept, text[:_LONGEST_TEXT], elapsed, delay))
        if verdict.kind is _TRANSIENT:
            self.in_doubt = True
        self.attempt = number + 1
        self.previous = delay
        self.reports = reports_made[0]
        return delay

    def _scheduled(
        self, delay: float, verdict: "Verdict", error: Exception | None, name: str, text: str, elapsed: float
    ) -> Attempt:
        """Tell the listeners of a failure and of the wait that follows, and return the failure."""
        number = self.attempt
        failure = Attempt(number, name, text, elapsed, delay)
        failed = Failed(self.operation, number, elapsed, error, failure.text, verdict, name)
        listeners.tell(self.listeners, failed, Scheduled(self.operation, number + 1, elapsed, delay, failure))
        return failure

    def _give_up(
        self,
        stop: Stop,
        verdict: "Verdict",
        error: Exception | None,
        name: str,
        text: str,
        elapsed: float,
        maybe_done: bool,
        outcome: object,
    ) -> None:
        if stop.reason is Reason.PERMANENT and self.attempt == 1 and not self.in_doubt:
            return  # nothing was retried and nothing should have been: the error is the caller's business alone
        failure = Attempt(self.attempt, name, text, elapsed)
        self._keep(failure)
        attempts = self._attempts()
        self.report = Report(
            self.operation,
            attempts,
            elapsed,
            stop.reason,
            stop.text,
            maybe_done and self.in_doubt,
            self.attempt - len(attempts),
            Origin(self, error),
        )
        gave_up(self.report, outcome)
        if error is not None:
            attach(error, self.report)
        if self.listeners:
            failed = Failed(self.operation, self.attempt, elapsed, error, failure.text, verdict, name)
            listeners.tell(self.listeners, failed, GaveUp(self.operation, self.report))

    def _keep(self, failure: "Failure") -> None:
        failures = self.failures
        if len(failures) == 2 * _KEPT:
            failures = failures[:_KEPT] + failures[_KEPT + 1 :]
        self.failures = (*failures, failure)

    def _attempts(self) -> tuple[Attempt, ...]:
        """Return the failures that are kept; secrets are taken out of their texts now, which most runs never need."""
        return tuple(failure if isinstance(failure, Attempt) else Attempt(*failure) for failure in self.failures)
