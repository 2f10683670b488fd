"""`TryAgain`, which asks for another attempt, and `Unsatisfied`, the error of a value that was refused to the end."""

from forbear.core.check import in_seconds, seconds
from forbear.core.verdict import Kind, Verdict

TYPE_CHECKING = False
if TYPE_CHECKING:
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
    forbear.run.endings.Unsatisfied: ...
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
