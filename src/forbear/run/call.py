"""The sync loop: call, ask the run what to do, sleep, call again. It decides nothing itself."""

from forbear.run.functions import dress, refuse_awaitable
from forbear.run.runtime import current
from forbear.run.state import Run, reports_made

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from forbear.run.state import Plan


def call(
    plan: "Plan", operation: str, function: "Callable[..., Any]", args: "tuple[Any, ...]", kwargs: "dict[str, Any]"
) -> "Any":
    """Call `function` as often as the plan allows."""
    runtime = current.get()
    run = Run(plan, operation, runtime, runtime.monotonic())
    return _attempts(run, None, function, args, kwargs)


def wrap(plan: "Plan", operation: str, function: "Callable[..., Any]") -> "Callable[..., Any]":
    """The function that calls `function` as often as the plan allows.

    The first attempt is made here, with no state but its start: nearly every run ends with it.
    """
    plain = plan.budget is None and not plan.judges_values

    def retried(*args: "Any", **kwargs: "Any") -> "Any":
        runtime = current.get()
        started, reports = runtime.monotonic(), reports_made[0]
        try:
            value = function(*args, **kwargs)
        except Exception as error:
            run = Run(plan, operation, runtime, started, reports)
            delay = run.failed(error)
            if delay is None:
                raise
        else:
            if value is not None and hasattr(value, "__await__"):
                refuse_awaitable(value, operation)
            if plain:
                return value
            run = Run(plan, operation, runtime, started, reports)
            delay = run.returned(value)
            if delay is None:
                return value
        return _attempts(run, delay, function, args, kwargs)

    return dress(retried, function)


def _attempts(
    run: Run, delay: float | None, function: "Callable[..., Any]", args: "tuple[Any, ...]", kwargs: "dict[str, Any]"
) -> "Any":
    while True:
        if delay is not None:
            run.runtime.sleep(delay)
        try:
            value = function(*args, **kwargs)
        except Exception as error:
            delay = run.failed(error)
            if delay is None:
                raise
        else:
            if hasattr(value, "__await__"):
                refuse_awaitable(value, run.operation)
            delay = run.returned(value)
            if delay is None:
                return value
