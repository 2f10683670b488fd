"""The sync loop around commands: send, ask what to do, wait, send again. It decides nothing itself."""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from forbear.core.report import reports_made
from forbear.exchange.redis.call import Call
from forbear.exchange.redis.settings import Settings
from forbear.exchange.redis.work import Work
from forbear.run.runtime import current_runtime

S = TypeVar("S")
T = TypeVar("T")

_NONE: Mapping[str, Any] = {}


def run(
    settings: Settings,
    describe: Callable[[S], Work],
    sent: S,
    attempt: Callable[..., T],
    args: tuple[Any, ...] = (),
    options: Mapping[str, Any] = _NONE,
) -> T:
    """Make the attempt as often as the policy allows and return what it returns; `describe` says what is `sent`.

    It is asked once an attempt has failed. The arguments of an attempt come apart from it, for it is made for every
    command.
    """
    policy = settings.policy
    if policy is None:
        return attempt(*args, **options)
    runtime = current_runtime()
    started, reports = runtime.monotonic(), reports_made[0]
    call = None  # nearly every command ends without a state
    while True:
        try:
            value = attempt(*args, **options)
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
        runtime.sleep(delay)
