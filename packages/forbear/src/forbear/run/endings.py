"""The ends of a run: another attempt by `TryAgain`, a value in place of an error, and the error `Unsatisfied`."""

from forbear.core.check import in_seconds, seconds
from forbear.core.decide import Reason
from forbear.core.record import Record
from forbear.core.report import attach, reports_made
from forbear.core.verdict import Kind, Verdict
from forbear.run.nesting import harm_within, is_ended_within
from forbear.run.switch import ever_off, is_off

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import timedelta
    from typing import Any

    from forbear.run.protocols import RunState


class _Raise(Record):
    """The type of `RAISE`."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "RAISE"

    def __reduce__(self) -> str:  # type: ignore[override] # the name of the global: it stays the same object
        return "RAISE"


RAISE = _Raise()
"""The default of `on_give_up`: raise the last error, or return the last value. None would be a value."""


class TryAgain(Exception):
    """Raise it in a retried function or block to ask for another attempt, whatever `on` and `repeatable` say.

    `TryAgain("no rows yet", delay=5)` waits exactly 5 seconds (or a timedelta) instead of the backoff. The limits of
    the policy hold. On giving up, the last TryAgain itself is raised, with a note and a report; raise it `from` another
    error to keep that as its cause.

    >>> states = iter(["pending", "ready"])
    >>> @forbear.retry(OSError)
    ... def poll():
    ...     if (state := next(states)) == "pending":
    ...         raise forbear.TryAgain
    ...     return state
    >>> poll()
    'ready'
    """

    def __init__(self, *args: object, delay: "float | timedelta | None" = None) -> None:
        super().__init__(*args)
        wait = in_seconds(delay)
        if wait is not None:
            seconds("delay", wait)
        self.delay: float | None = wait

    @property
    def verdict(self) -> Verdict:
        """The verdict on the attempt: any operation may be repeated, after `delay` if there is one."""
        return Verdict(Kind.NOT_EXECUTED, delay=self.delay)


class Unsatisfied(Exception):
    """The last value was still refused by `on_result` when the run gave up; `value` is that value.

    It is raised under `raise_unsatisfied=True`, and passed to a function in `on_give_up`.

    >>> policy = forbear.retry(OSError, on_result=lambda value: value is None, raise_unsatisfied=True)
    >>> policy.call(print)
    Traceback (most recent call last):
    ...
    forbear.run.endings.Unsatisfied: ...
    """

    def __init__(self, value: "Any", text: str) -> None:
        super().__init__(value, text)
        self.value: Any = value
        self._text = text

    def __str__(self) -> str:
        return self._text


def replaces(run: "RunState", outcome: object) -> bool:
    """Return whether `on_give_up` replaces the `outcome`, an error or a refused value, after which the run ended.

    It does where a limit, the budget, doubt or the caller ended the run, or an inner run whose end counts here. It does
    not for a permanent error or a conflict, nor while retries are off.
    """
    plan = run.plan
    if plan.on_give_up is RAISE:
        return False
    if run.report is not None:
        return run.report.reason not in (Reason.PERMANENT, Reason.CONFLICT)
    inner = reports_made[0] != run.reports and not plan.retry_exhausted and not (ever_off[0] and is_off())
    return inner and is_ended_within(outcome, run)


def refusal_of(value: object) -> tuple[str, str]:
    """Return the type's name of a `value` that `on_result` refused, and the text of that refusal.

    They describe the failure in reports.
    """
    kind = type(value).__qualname__
    return kind, f"on_result refused a value of type {kind}"


def refuse_last(run: "RunState", value: object) -> Unsatisfied | None:
    """Raise the error for the last `value`, which `on_result` refused, or return it if `on_give_up` replaces it.

    It has the run's report, if there is one. Return None to return the value itself: without `raise_unsatisfied` and
    `on_give_up`, and while retries are off.
    """
    plan = run.plan
    if not (plan.raise_unsatisfied or plan.on_give_up is not RAISE) or (ever_off[0] and is_off()):
        return None
    error = Unsatisfied(value, refusal_of(value)[1])
    report = run.report or harm_within(run)
    if report is not None:
        attach(error, report)
    if plan.on_give_up is not RAISE:
        return error
    try:
        raise error
    finally:
        del error  # otherwise the error's traceback would refer to the error itself


def replacement(on_give_up: "Any", error: Exception) -> "Any":
    """Return what a run returns instead of raising `error`: `on_give_up(error)`, or `on_give_up` if not callable."""
    if callable(on_give_up):
        function: Callable[[Exception], Any] = on_give_up
        return function(error)
    return on_give_up
