"""The failures that a run keeps for its report: the first and the last ones, each as short as can be.

Secrets are removed from texts only for listeners and reports, because most runs succeed.
"""

from functools import partial
from sys import intern

from forbear.core.attempt import Attempt

TYPE_CHECKING = False
if TYPE_CHECKING:
    from forbear.core.attempt import Details, RequestIds

    KeptFailure = (
        Attempt
        | tuple[int, str, str, float, float | None]
        | tuple[int, str, str, float, float | None, float, int | str | None, RequestIds]
    )
    """A failed attempt: its number, name and text, the seconds elapsed, the wait after it, and its details if known."""

_KEPT = 16
"""Number of failures kept from the beginning of a run, and from its end: a run may never end."""
_LONGEST_TEXT = 4096
"""Characters of an error's text that are kept until a listener or a report reads it."""


def short(number: int, name: str, text: str, elapsed: float, delay: float, details: "Details") -> "KeptFailure":
    """Return a failed attempt that no listener has seen."""
    name = intern(name) if type(name) is str else name  # a built-in class makes its name anew each time
    kept = (number, name, text[:_LONGEST_TEXT], elapsed, delay)
    return (*kept, *details) if details else kept


def with_failure(failures: "tuple[KeptFailure, ...]", failure: "KeptFailure") -> "tuple[KeptFailure, ...]":
    """Return `failures` with one more; a failure in the middle of a long run gives way."""
    if len(failures) == 2 * _KEPT:
        failures = failures[:_KEPT] + failures[_KEPT + 1 :]
    return (*failures, failure)


def attempts_of(failures: "tuple[KeptFailure, ...]", began: float) -> tuple[Attempt, ...]:
    """Return the failures as attempts, without secrets; `began` is the wall clock at the start of the run.

    The wall clock is in epoch seconds. Times of failures without details follow from the seconds that had passed.
    """
    return tuple(map(partial(_attempt, began), failures))


def _attempt(began: float, failure: "KeptFailure") -> Attempt:
    if isinstance(failure, Attempt):
        return failure
    return Attempt(*failure) if len(failure) > 5 else Attempt(*failure, began + failure[3])
