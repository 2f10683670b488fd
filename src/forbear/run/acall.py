"""The async loop, for asyncio and trio: the sync one with `await`, and attempt timeouts. It decides nothing itself."""

from forbear.run.functions import dress
from forbear.run.runtime import current
from forbear.run.state import Run, reports_made

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from typing import Any

    from forbear.run.state import Plan


async def acall(
    plan: "Plan",
    operation: str,
    function: "Callable[..., Awaitable[Any]]",
    args: "tuple[Any, ...]",
    kwargs: "dict[str, Any]",
) -> "Any":
    """Await `function` as often as the plan allows."""
    runtime = current.get()
    run = Run(plan, operation, runtime, runtime.monotonic())
    return await _attempts(run, None, function, args, kwargs)


def wrap(plan: "Plan", operation: str, function: "Callable[..., Awaitable[Any]]") -> "Callable[..., Awaitable[Any]]":
    """The coroutine function that awaits `function` as often as the plan allows; the first attempt is made here."""
    if plan.attempt_timeout is not None:

        async def bounded(*args: "Any", **kwargs: "Any") -> "Any":
            return await acall(plan, operation, function, args, kwargs)

        return dress(bounded, function)

    plain = plan.budget is None and not plan.judges_values

    async def retried(*args: "Any", **kwargs: "Any") -> "Any":
        runtime = current.get()
        started, reports = runtime.monotonic(), reports_made[0]
        try:
            value = await function(*args, **kwargs)
        except Exception as error:
            run = Run(plan, operation, runtime, started, reports)
            delay = run.failed(error)
            if delay is None:
                raise
        else:
            if plain:
                return value
            run = Run(plan, operation, runtime, started, reports)
            delay = run.returned(value)
            if delay is None:
                return value
        return await _attempts(run, delay, function, args, kwargs)

    return dress(retried, function)


async def _attempts(
    run: Run,
    delay: float | None,
    function: "Callable[..., Awaitable[Any]]",
    args: "tuple[Any, ...]",
    kwargs: "dict[str, Any]",
) -> "Any":
    while True:
        if delay is not None:
            await run.runtime.asleep(delay)
        try:
            limit = run.attempt_limit()
            if limit is None:
                value = await function(*args, **kwargs)
            else:
                async with run.runtime.within(limit):
                    value = await function(*args, **kwargs)
        except Exception as error:
            delay = run.failed(error)
            if delay is None:
                raise
        else:
            delay = run.returned(value)
            if delay is None:
                return value
