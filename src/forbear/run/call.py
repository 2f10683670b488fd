"""The sync loop: call, ask the run what to do, sleep, call again. It decides nothing itself."""

from forbear.core.report import reports_made
from forbear.run.functions import dress, refuse_coroutine
from forbear.run.runtime import current, current_runtime
from forbear.run.state import Run

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from forbear.run.state import Plan


def call(
    plan: "Plan", operation: str, function: "Callable[..., Any]", args: "tuple[Any, ...]", kwargs: "dict[str, Any]"
) -> "Any":
    """Call `function` as often as the plan allows."""
    runtime = current_runtime()
    return _repeat(Run(plan, operation, runtime, runtime.monotonic()), function, args, kwargs)


def wrap(plan: "Plan", operation: str, function: "Callable[..., Any]") -> "Callable[..., Any]":
    """Return the function that calls `function` as often as the plan allows."""
    if plan.budget is not None or plan.judges_values:

        def counted(*args: "Any", **kwargs: "Any") -> "Any":
            return call(plan, operation, function, args, kwargs)

        return dress(counted, function)

    harmless: type[object] = type(None)  # the type of the last value: known to be no coroutine

    def retried(*args: "Any", **kwargs: "Any") -> "Any":
        nonlocal harmless
        started, reports = current.clock(), reports_made[0]
        try:
            value: object = function(*args, **kwargs)
        except Exception as error:
            run = Run(plan, operation, current_runtime(), started, reports)
            delay = run.failed(error)
            if delay is None:
                raise
        else:  # nearly every call ends here, without a state
            if type(value) is not harmless:
                refuse_coroutine(value, operation)
                harmless = type(value)
            return value
        run.runtime.sleep(delay)
        return _repeat(run, function, args, kwargs)

    return dress(retried, function)


def _repeat(run: Run, function: "Callable[..., Any]", args: "tuple[Any, ...]", kwargs: "dict[str, Any]") -> "Any":
    """Call `function` until the run ends."""
    while True:
        try:
            value: object = function(*args, **kwargs)
        except Exception as error:
            delay = run.failed(error)
            if delay is None:
                raise
        else:
            refuse_coroutine(value, run.operation)
            delay = run.returned(value)
            if delay is None:
                return value
        run.runtime.sleep(delay)
