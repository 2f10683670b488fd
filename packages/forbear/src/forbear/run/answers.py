"""Turn what the functions of a policy answer into verdicts: `on` of errors, `on_result` of values, `stop`, `delay`.

`TryAgain` and `Unsatisfied`, the errors with a verdict of their own, are here, too. Only a failure needs them.
"""

from forbear.core.check import in_seconds, seconds
from forbear.core.dataclass import dataclass
from forbear.core.record import Record
from forbear.core.verdict import PERMANENT, TRANSIENT, Kind, Verdict

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import timedelta
    from typing import Any


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
    forbear.run.answers.Unsatisfied: ...
    """

    def __init__(self, value: "Any", text: str) -> None:
        super().__init__(value, text)
        self.value: Any = value
        self._text = text

    def __str__(self) -> str:
        return self._text


def refusal_of(value: object) -> tuple[str, str]:
    """Return the type's name of a `value` that `on_result` refused, and the text of that refusal.

    They describe the failure in reports.
    """
    kind = type(value).__qualname__
    return kind, f"on_result refused a value of type {kind}"


TYPES = (type, tuple)  # a constant: the union `type | tuple` would be built again for each error


@dataclass(frozen=True, slots=True)
class AnyOf(Record):
    """The judge for an `on` of types and functions together: the first function that asks for a retry decides.

    Without one, an error of the types is TRANSIENT. For any other error a CONFLICT counts before PERMANENT.
    """

    types: tuple[type[Exception], ...]
    judges: "tuple[Callable[[Exception], Any], ...]"

    def __call__(self, error: Exception) -> Verdict:
        """Return the verdict on an error."""
        verdicts: list[Verdict] = []
        for judge in self.judges:
            verdict = verdict_of("on", judge(error))
            if verdict:
                return verdict
            verdicts.append(verdict)
        if isinstance(error, self.types):
            return TRANSIENT
        return next((verdict for verdict in verdicts if verdict.kind is Kind.CONFLICT), PERMANENT)

    @property
    def is_of_service(self) -> bool:
        """True if a judge is that of a service, which does not see what a function sends."""
        return any(getattr(judge, "is_of_service", False) for judge in self.judges)


class Broken(Verdict):
    """The verdict where a function of the policy raised `error` while it judged a failure: the run ends.

    `kind` is PERMANENT, or NOT_EXECUTED if the client proves that.
    """

    __slots__ = ("error",)

    error: Exception

    def __init__(self, error: Exception, kind: Kind = Kind.PERMANENT, **fields: "Any") -> None:
        super().__init__(kind, **fields)
        self._set(error=error)


def ask(judge: "Callable[[Exception], Any]", error: Exception) -> Verdict:
    """Return the verdict of `judge`, an `on`, on `error`; it is Broken if the judge raises, or gives no answer."""
    try:
        return verdict_of("on", judge(error))
    except Exception as broken:
        return Broken(broken)


def read_stop(answer: object) -> str | None:
    """Return why the run stops, by the `answer` of a policy's `stop`: True or a reason; None if it goes on.

    Raises TypeError for any other answer than True, False, None and a string.
    """
    if answer is True:
        return "`stop` returned True"
    if answer is None or answer is False or isinstance(answer, str):
        return answer or None
    raise TypeError(f"`stop` must return True, False, None or the reason as a string, got {answer!r}")


def set_delay(verdict: Verdict, delay: object) -> Verdict:
    """Return `verdict` with the exact `delay` that the policy's `delay` returned; TypeError for what is no time."""
    seconds = in_seconds(delay)
    if seconds is None:
        return verdict
    if not isinstance(seconds, int | float) or isinstance(seconds, bool):
        raise TypeError(f"`delay` must return a number of seconds, a timedelta or None, got {delay!r}")
    return verdict.replace(delay=seconds)


def verdict_of(parameter: str, answer: "Any") -> Verdict:
    """Return the verdict that stands for `answer`, the value returned by an `on` or `on_result`.

    True is TRANSIENT, False PERMANENT, a number or timedelta TRANSIENT with that delay, and a Verdict itself. Any other
    value raises TypeError, which names the `parameter`.
    """
    if answer is True:
        return TRANSIENT
    if answer is False:
        return PERMANENT
    if isinstance(answer, Verdict):
        return answer
    answer = in_seconds(answer)
    if isinstance(answer, float | int):
        return Verdict(Kind.TRANSIENT, delay=answer)
    raise TypeError(f"`{parameter}` must return a bool, a number of seconds or a Verdict, got {answer!r}")


def judge(plan: "Any", error: Exception) -> Verdict:
    """Return the verdict of a policy's `on` alone, without the `others`, on an error that is no TryAgain."""
    on: Any = plan.on
    if isinstance(on, TYPES):
        return TRANSIENT if isinstance(error, on) else PERMANENT
    return ask(on, error)


def verdict_of_error(plan: "Any", error: Exception) -> Verdict:
    """Return the verdict of a policy on an error, as the method of `RetryPlan` does."""
    if isinstance(error, TryAgain):
        return error.verdict
    return judge(rule_of(plan, error) if plan.others else plan, error)


def rule_of(plan: "Any", error: Exception) -> "Any":
    """Return the policy whose limits count for `error`: the first that retries it, of `plan` and its `others`.

    It is `plan` for an error that none retries.
    """
    return next((rule for rule in (plan, *plan.others) if _retries(rule, error)), plan)


def _retries(plan: "Any", error: Exception) -> bool:
    verdict = judge(plan, error)
    return verdict.kind is not Kind.PERMANENT or isinstance(verdict, Broken)


def verdict_of_value(on_result: "Callable[[Any], Any]", value: object) -> Verdict | None:
    """Return the verdict of `on_result` on a returned value; None for a value that is accepted."""
    verdict = verdict_of("on_result", on_result(value))
    return None if verdict.kind is Kind.PERMANENT else verdict
