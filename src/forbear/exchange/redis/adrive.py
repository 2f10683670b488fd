"""The async loop around commands: the sync one with `await`, and attempt timeouts. It decides nothing itself."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar

from forbear.core.report import reports_made
from forbear.exchange.redis.call import Call
from forbear.exchange.redis.settings import Settings
from forbear.exchange.redis.work import Work
from forbear.run.runtime import current_runtime

S = TypeVar("S")
T = TypeVar("T")

_NONE: Mapping[str, Any] = {}


def _not_at_all(sent: object) -> float:
    return 0.0


async def run(
    settings: Settings,
    describe: Callable[[S], Work],
    sent: S,
    attempt: Callable[..., Awaitable[T]],
    args: tuple[Any, ...] = (),
    options: Mapping[str, Any] = _NONE,
    patience: Callable[[S], float | None] = _not_at_all,
) -> T:
    """Make the attempt as often as the policy allows and return what it returns; `describe` says what is `sent`.

    `patience` says for how many seconds the server may block it, which come on top of the attempt timeout; None for as
    long as it takes.
    """
    policy = settings.policy
    if policy is None:
        return await attempt(*args, **options)
    runtime = current_runtime()
    started, reports = runtime.monotonic(), reports_made[0]
    call = None  # nearly every command ends without a state
    while True:
        try:
            limit = settings.limit if call is None else call.attempt_limit()
            blocked = None if limit is None else patience(sent)
            if limit is None or blocked is None:
                value = await attempt(*args, **options)
            else:
                async with runtime.within(limit + blocked):
                    value = await attempt(*args, **options)
        except Exception as error:
            if call is None:
                call = Call(settings, policy, describe(sent), runtime, started, reports)
            delay = call.failed(error)
            if delay is None:
                raise
        else:
            if call is None:
                if not policy.judges_values:
                    if policy.budget is not None:
                        policy.budget.put(retried=False)
                    return value
                call = Call(settings, policy, describe(sent), runtime, started, reports)
            delay = call.returned(value)
            if delay is None:
                return value
        await runtime.asleep(delay)
