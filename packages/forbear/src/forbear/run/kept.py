"""The failures that a run keeps for its report: the first and the last ones, each as short as can be.

Secrets are removed from texts only for listeners and reports, because most runs succeed.
"""

from functools import partial
from sys import intern

from forbear.core.attempt import Attempt

TYPE_CHECKING = False
if TYPE_CHECKING:
    from forbear.core.attempt import RequestIds
    from forbear.run.failure import Failure

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


def with_failure(
    failures: "tuple[KeptFailure, ...]", number: int, failure: "Failure", delay: float
) -> "tuple[KeptFailure, ...]":
    """Return `failures` with one more, which no listener has seen: attempt `number`, followed by a wait of `delay`."""
    name, text = failure.name, failure.text
    if type(name) is str:
        name = intern(name)  # a built-in class makes its name anew each time
    if len(text) > _LONGEST_TEXT:
        text = text[:_LONGEST_TEXT]
    kept = (number, name, text, failure.elapsed, delay)
    if failure.details:
        return with_kept(failures, (*kept, *failure.details))
    return with_kept(failures, kept) if len(failures) == 2 * _KEPT else (*failures, kept)


def with_kept(failures: "tuple[KeptFailure, ...]", failure: "KeptFailure") -> "tuple[KeptFailure, ...]":
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
