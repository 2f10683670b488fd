"""Check what users pass to judge outcomes, and turn the answers of `on` and `on_result` into verdicts."""

from forbear.core.check import in_seconds
from forbear.core.verdict import PERMANENT, TRANSIENT, Kind, Verdict
from forbear.run import listeners
from forbear.run.endings import RAISE
from forbear.run.functions import refuse_async

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from forbear.core.protocols import On
    from forbear.run.plan import RetryPlan

TYPES = (type, tuple)  # a constant: the union `type | tuple` would be built again for each error
JUDGE = "judge by the error or the value alone"


def types_of(types: "Any", on: "Any") -> "Any":
    """Return what `forbear.retry(*types, on=on)` retries: the types, or `on` if there are none.

    Raises TypeError if both or neither are passed, and for a positional argument that is no exception type.
    """
    if not types:
        if on is None:
            raise TypeError(
                "`retry` needs the errors to retry, as in forbear.retry(OSError) or forbear.retry(on=judge)"
            )
        return on
    if on is not None:
        raise TypeError(f"`on` must not be passed together with positional exception types, got {on!r}")
    kind: Any
    for kind in types:
        if isinstance(kind, type) and issubclass(kind, BaseException):
            continue
        if len(types) == 1 and callable(kind):  # pyright: ignore[reportUnknownArgumentType]
            raise TypeError(
                "`retry` needs the errors to retry before it can decorate: write @forbear.retry(OSError); "
                f"a function that judges errors is passed as on=, got {kind!r}"
            )
        raise TypeError(f"positional arguments of `retry` must be exception types, as in retry(OSError), got {kind!r}")
    check_on(types)
    return types[0] if len(types) == 1 else types


def check_on(on: "Any") -> None:
    """Raise TypeError if `on` is neither a subclass of Exception, a tuple of such, nor a sync callable.

    Raises ValueError for an empty tuple.
    """
    if not isinstance(on, TYPES):
        if not callable(on):
            raise TypeError(f"`on` must be exception types or a callable that judges an error, got {on!r}")
        refuse_async("`on`", on, JUDGE)
        return
    listed: tuple[Any, ...] = on if isinstance(on, tuple) else (on,)  # pyright: ignore[reportUnknownVariableType]
    if not listed:
        raise ValueError("`on` must list at least one exception type, got none")
    for kind in listed:
        if not isinstance(kind, type) or not issubclass(kind, BaseException):
            raise TypeError(f"`on` must list exception types, got {kind!r}")
        if not issubclass(kind, Exception):
            raise TypeError(
                f"`on` must list subclasses of Exception, got {kind.__name__}, which ends programs or tasks"
            )


def check_callable(parameter: str, function: object, cure: str = JUDGE) -> None:
    """Raise TypeError if `function` is neither None nor a sync callable; `parameter` names it in the text.

    The text for an async function ends with the `cure`.
    """
    if function is not None:
        if not callable(function):
            raise TypeError(f"`{parameter}` must be callable or None, got {function!r}")
        refuse_async(f"`{parameter}`", function, cure)


def check_listener(parameter: str, listener: object) -> None:
    """Raise TypeError if `listener` is neither None nor a sync callable with one event; `parameter` names it."""
    if listener is not None:
        if not callable(listener):
            raise TypeError(f"`{parameter}` must be callable or None, got {listener!r}")
        listeners.check(f"`{parameter}`", listener)


_LEFT = (
    ("attempt_timeout", None), ("on_result", None), ("on_event", None), ("budget", None), ("retry_exhausted", False),
    ("name", None), ("service", None), ("on_give_up", RAISE), ("raise_unsatisfied", False), ("on_success", None),
)  # fmt: skip


def retries(on: "On", error: Exception) -> bool:
    """Return whether `on` accepts an error: it is of its types, or the function's verdict is not PERMANENT."""
    if isinstance(on, TYPES):
        return isinstance(error, on)
    return verdict_of("on", on(error)).kind is not Kind.PERMANENT


def check_joined(left: "RetryPlan", right: "RetryPlan") -> None:
    """Raise ValueError if `right` sets what `left | right` takes from `left` alone, to another value."""
    for name, default in _LEFT:
        value = getattr(right, name)
        if value != default and value != getattr(left, name):
            raise ValueError(
                f"`{name}` of policies joined by | must be set in the left one, got {value!r} in the right"
            )


def why_stopped(answer: object) -> str | None:
    """Return why the run stops, by the `answer` of a policy's `stop`: True or a reason; None if it goes on.

    Raises TypeError for any other answer than True, False, None and a string.
    """
    if answer is True:
        return "`stop` returned True"
    if answer is None or answer is False or isinstance(answer, str):
        return answer or None
    raise TypeError(f"`stop` must return True, False, None or the reason as a string, got {answer!r}")


def delayed(verdict: Verdict, delay: object) -> Verdict:
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
