"""`RunRecord`: what a run keeps of its failures, reports when it gives up, and tells its listeners.

It keeps the first and the last failures, each as short as can be. Secrets are removed from texts only for listeners and
reports, because most runs succeed.
"""

from forbear.core.attempt import Attempt
from forbear.core.decide import Reason, Stop
from forbear.core.events import Failed, GaveUp, Recovered, Scheduled, WouldStop
from forbear.core.record import reports_made
from forbear.core.report import Report, attach
from forbear.core.verdict import Kind
from forbear.run import listeners
from forbear.run.answers import Unsatisfied, refusal_of
from forbear.run.functions import warn_of_blocking
from forbear.run.grant import Grant
from forbear.run.judges import RAISE, declined
from forbear.run.nesting import RunOrigin, harm_within, is_ended_within, record_report
from forbear.run.runtime import is_in_event_loop
from forbear.run.switch import ever_off, ever_stopping, is_off

TYPE_CHECKING = False
if TYPE_CHECKING:
    from forbear.core.attempt import RequestIds
    from forbear.run.failure import Failure
    from forbear.run.listeners import Listener
    from forbear.run.plan import RetryPlan
    from forbear.run.protocols import Subject

    KeptFailure = (
        Attempt
        | tuple[int, str | type, str, float, float | None]
        | tuple[int, str | type, str, float, float | None, float, int | str | None, RequestIds]
    )
    """A failed attempt: its number, name and text, the seconds elapsed, the wait after it, and its details if known.

    The class of an error stands for its name, which a class of Python makes anew each time.
    """

_TRANSIENT = Kind.TRANSIENT  # slow to look up before 3.12
_KEPT = 16
"""Number of failures kept from the beginning of a run, and from its end: a run may never end."""
_MOST_KEPT = 2 * _KEPT
_LONGEST_TEXT = 4096
"""Characters of an error's text that are kept until a listener or a report reads it."""


class RunRecord(Grant):
    """The fields of a `Run` that say what has happened in it, and the methods that keep, report and tell it."""

    __slots__ = (
        "plan", "operation", "started", "subject", "attempt", "previous", "in_doubt", "vouched", "maybe_done",
        "billed", "failures", "listeners", "report", "reports", "awaits",
    )  # fmt: skip

    plan: "RetryPlan"
    operation: str
    started: float
    subject: "Subject | None"
    attempt: int
    previous: float | None
    in_doubt: bool
    """True if an earlier attempt may have been executed, and once the run gave up, also if the last one may have."""
    vouched: bool
    """True if only the user's word allowed a retry."""
    maybe_done: bool
    """True if an earlier attempt may have made what a later one is in conflict with."""
    billed: int
    """The number of the first failed attempt that may have cost money, 0 for none."""
    failures: "tuple[KeptFailure, ...]"
    listeners: "tuple[Listener, ...] | None"
    """The listeners; None before the first failure."""
    report: Report | None
    reports: int
    """The number of reports and entries when the attempt under way began."""
    awaits: bool

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

    def replaces(self, outcome: object) -> bool:
        """Return whether `on_give_up` replaces the `outcome`, an error or a refused value, after which the run ended.

        It does where a limit, the budget, doubt or the caller ended the run, or an inner run whose end counts here. It
        does not for a permanent error or a conflict, nor while retries are off.
        """
        if self.plan.on_give_up is RAISE:
            return False
        if self.report is not None:
            return self.report.reason not in (Reason.PERMANENT, Reason.CONFLICT)
        inner = reports_made.now != self.reports and not self.plan.retry_exhausted and not (ever_off[0] and is_off())
        return inner and is_ended_within(outcome, self)

    def refuse_last(self, value: object) -> Unsatisfied | None:
        """Raise the error for the last `value`, which `on_result` refused, or return it if `on_give_up` replaces it.

        It has the run's report, if there is one. Return None to return the value itself: without `raise_unsatisfied`
        and `on_give_up`, and while retries are off.
        """
        replaced = self.plan.on_give_up is not RAISE
        if not (self.plan.raise_unsatisfied or replaced) or (ever_off[0] and is_off()):
            return None
        error = Unsatisfied(value, refusal_of(value)[1])
        report = self.report or harm_within(self)
        if report is not None:
            attach(error, report)
        if replaced:
            return error
        try:
            raise error
        finally:
            del error  # otherwise the error's traceback would refer to the error itself

    def schedule(self, failure: "Failure", delay: float) -> Grant:
        """Count the failed attempt, notify the listeners of it and of the retry, and return the grant.

        Within `stop_on`, the grant of sync code is open: it waits, and the run can still give up.
        """
        failures, number, previous = self.failures, self.attempt, self.previous
        if self.listeners or failure.is_detailed:
            kept = self._note(failure, delay)
        else:
            kept = (number, type(failure.error), failure.text[:_LONGEST_TEXT], failure.elapsed, delay)
        self.failures = (*failures, kept) if number <= _MOST_KEPT else with_kept(failures, kept)
        if failure.verdict.kind is _TRANSIENT and not failure.harmless:
            self.in_doubt = True
        self.attempt = number + 1
        self.previous = self.delay = delay
        if reports_made.now != self.reports:
            self.reports = reports_made.now if failure.checked is None else failure.checked
        if not self.awaits:
            if delay and not previous and is_in_event_loop():  # its first wait
                warn_of_blocking(self.operation if self.subject is None else "a client")
            if ever_stopping[0]:
                from forbear.run.stopping import InterruptibleGrant, events

                if watched := events():
                    return InterruptibleGrant(self, failure, delay, watched)
        return self

    def _note(self, failure: "Failure", delay: float) -> "KeptFailure":
        """Note what else is known of the failed attempt, tell the listeners of it, and return it as it is kept."""
        if failure.vouched:
            self.vouched = True
        if failure.billed:
            self.billed = self.billed or self.attempt
        elapsed = failure.elapsed
        if not self.listeners:
            name = failure.label or type(failure.error)
            short = (self.attempt, name, failure.text[:_LONGEST_TEXT], elapsed, delay)
            return (*short, *failure.details) if failure.details else short
        kept, wait_from = self._attempt_of(failure, delay), failure.verdict.wait_from
        scheduled = Scheduled(self.operation, self.attempt + 1, elapsed, delay, kept, self.vouched, wait_from)
        listeners.notify(self.listeners, self.event_of(failure, kept.text), scheduled)
        return kept

    def notify_recovered(self) -> None:
        """Tell the listeners that the run has succeeded after failures."""
        elapsed = self.runtime.monotonic() - self.started
        attempts = attempts_of(self.failures, self.runtime.now() - elapsed)
        maybe_done = self.maybe_done and self.in_doubt
        recovered = Recovered(self.operation, self.attempt, elapsed, attempts, maybe_done, billed=self._is_billed)
        listeners.notify(self.listeners or (), recovered)

    def notify_would_stop(self, why: str) -> None:
        """Tell the listeners why the run would stop, if the policy only warned."""
        elapsed = self.runtime.monotonic() - self.started
        event = WouldStop(self.operation, self.attempt, elapsed, why)
        listeners.notify(listeners.collect(self.plan.on_event), event)

    def withdraw(self, stop: Stop, failure: "Failure") -> None:
        """Give up instead of the retry that was scheduled last, of whose failure the listeners know."""
        self.attempt -= 1
        self.failures = self.failures[:-1]
        self.give_up(stop, failure, known=True)

    def give_up(self, stop: Stop, failure: "Failure", *, known: bool = False) -> None:
        """Make the report, attach it to the error, if there is one, and notify the listeners.

        With `known` they know of the failed attempt already. Nothing is done for a permanent failure of the first
        attempt, unless `in_doubt` is set.
        """
        if stop.reason is Reason.PERMANENT and self.attempt == 1 and not self.in_doubt:
            if declined[0] is not None and failure.error is not None and failure.unsafe is None:
                declined[0](failure.error, self.plan, self.operation)
            return  # nothing was retried and nothing should have been: the error is the caller's business alone
        error = failure.error
        last = self._attempt_of(failure, None)
        maybe_done = failure.maybe_done and self.in_doubt and not known
        report = self._make_report(stop, failure, last, maybe_done=maybe_done)
        record_report(report, failure.outcome)
        if error is not None:
            attach(error, report)
        if self.listeners:
            news = () if known else (self.event_of(failure, last.text),)
            listeners.notify(self.listeners, *news, GaveUp(self.operation, report))
        if failure.verdict.kind is _TRANSIENT and not failure.harmless:
            self.in_doubt = True

    def settle(self, failure: "Failure") -> None:
        """End with a success although the last attempt failed: a read showed that an earlier one had worked.

        Make the report and notify the listeners.
        """
        failure.elapsed = elapsed = self.runtime.monotonic() - self.started
        self.listeners = self.listeners or listeners.collect(self.plan.on_event)
        last = self._attempt_of(failure, None)
        report = self._make_report(Stop(Reason.SETTLED), failure, last, maybe_done=False)
        if self.listeners:
            recovered = Recovered(self.operation, self.attempt, elapsed, report.attempts, settled=True)
            listeners.notify(self.listeners, self.event_of(failure, last.text), recovered)

    def _make_report(self, stop: Stop, failure: "Failure", last: Attempt, *, maybe_done: bool) -> Report:
        """Keep the `last` attempt, and make the report of the run, which ends."""
        self.failures = with_kept(self.failures, last)
        # The earlier times follow from that of the last attempt: what ran since would move them behind it.
        began = (self.runtime.now() if last.time is None else last.time) - failure.elapsed
        attempts, subject = attempts_of(self.failures, began), self.subject
        self.report = Report(
            self.operation,
            attempts,
            failure.elapsed,
            stop.reason,
            stop.text,
            maybe_done,
            self.attempt - len(attempts),
            RunOrigin(self.started, self.runtime, failure.error),
            None if subject is None else subject.method,
            None if subject is None else subject.resource,
            vouched=self.vouched,
            hint=failure.hint,
            billed=self._is_billed,
        )
        return self.report

    @property
    def _is_billed(self) -> bool:
        """True if an attempt was made after another one that may have cost money."""
        return 0 < self.billed < self.attempt

    def event_of(self, failure: "Failure", text: str) -> Failed:
        """Return the event of a failed attempt; `text` is without secrets."""
        verdict, name = failure.verdict, failure.name
        return Failed(self.operation, self.attempt, failure.elapsed, failure.error, text, verdict, name)

    def _attempt_of(self, failure: "Failure", delay: float | None) -> Attempt:
        details = failure.details or (self.runtime.now(), None, ())
        return Attempt(self.attempt, failure.name, failure.text, failure.elapsed, delay, *details)


def with_kept(failures: "tuple[KeptFailure, ...]", failure: "KeptFailure") -> "tuple[KeptFailure, ...]":
    """Return `failures` with one more; a failure in the middle of a long run gives way."""
    if len(failures) == _MOST_KEPT:
        failures = failures[:_KEPT] + failures[_KEPT + 1 :]
    return (*failures, failure)


def attempts_of(failures: "tuple[KeptFailure, ...]", began: float) -> tuple[Attempt, ...]:
    """Return the failures as attempts, without secrets; `began` is the wall clock at the start of the run.

    The wall clock is in epoch seconds. Times of failures without details follow from the seconds that had passed.
    """
    return tuple(_attempt(began, failure) for failure in failures)


def _attempt(began: float, failure: "KeptFailure") -> Attempt:
    if isinstance(failure, Attempt):
        return failure
    name = failure[1] if isinstance(failure[1], str) else failure[1].__qualname__
    if len(failure) > 5:
        return Attempt(failure[0], name, *failure[2:])
    return Attempt(failure[0], name, *failure[2:], began + failure[3])
