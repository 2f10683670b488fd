"""Send a command as often as its policy allows, sync and asyncio; `CommandRun` is the state of one run."""

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any, TypeVar

from forbear.core.report import reports_made
from forbear.exchange.redis.command_run import CommandRun
from forbear.exchange.redis.settings import RedisSettings
from forbear.exchange.redis.work import SUBSCRIPTION, Work
from forbear.policy import Policy
from forbear.run.runtime import current_runtime
from forbear.run.spending import Spending, admit
from forbear.services.redis.vouch import Safe

S = TypeVar("S")
T = TypeVar("T")

_NONE: Mapping[str, Any] = {}


def send(
    settings: RedisSettings,
    describe: Callable[[S, Safe], Work],
    sent: S,
    attempt: Callable[..., T],
    args: tuple[Any, ...] = (),
    options: Mapping[str, Any] = _NONE,
    finish: Callable[[], T] | None = None,
) -> T:
    """Call `attempt(*args, **options)` as often as the policy allows and return what it returns; without a policy once.

    `finish` is called after each attempt that raises nothing; what it returns is then the value, and what it raises is
    raised.

    `describe(sent, safe)` returns the description of what is sent; the user vouches for the commands in `safe`. It is
    called only after a failure, or if the policy judges values. The arguments of the attempt are separate parameters,
    because making a partial for each command would cost time.
    """
    policy = settings.policy
    if policy is None:
        value = attempt(*args, **options)
        return value if finish is None else finish()
    runtime = current_runtime()
    started, reports = runtime.monotonic(), reports_made[0]
    run = spending = None  # nearly every command ends without a state
    if policy.budget is not None:
        spending = Spending(policy.budget)
        refused = partial(_run_of, settings, policy, describe, sent, runtime, started, reports, spending)
        admit(spending, runtime, refused)
    try:
        while True:
            try:
                value = attempt(*args, **options)
            except Exception as error:
                run = run or _run_of(settings, policy, describe, sent, runtime, started, reports, spending)
                grant = run.failed(error)
                if grant is None or not grant.ask():
                    raise
            except BaseException as interrupt:
                run = run or _run_of(settings, policy, describe, sent, runtime, started, reports, spending)
                run.cut_off(interrupt)
                raise
            else:
                if finish is not None:
                    value = finish()
                if run is None and not policy.checks_values:
                    if spending is not None:
                        spending.succeeded(retried=False)
                    return value
                run = run or _run_of(settings, policy, describe, sent, runtime, started, reports, spending)
                grant = run.returned(value)
                if grant is None or not grant.ask():
                    return value
            grant.sleep()
    except BaseException:
        if spending is not None:
            spending.end()
        raise


async def asend(
    settings: RedisSettings,
    describe: Callable[[S, Safe], Work],
    sent: S,
    attempt: Callable[..., Awaitable[T]],
    args: tuple[Any, ...] = (),
    options: Mapping[str, Any] = _NONE,
    blocked_for: Callable[[S], float | None] = lambda _: 0.0,
    finish: Callable[[], Awaitable[T]] | None = None,
) -> T:
    """The asyncio form of `send`; each attempt is limited by the attempt timeout, if the policy has one.

    `finish` is not limited.

    `blocked_for(sent)` returns the seconds that the server may block the command, which are added to the attempt
    timeout; None for no limit.
    """
    policy = settings.policy
    if policy is None:
        value = await attempt(*args, **options)
        return value if finish is None else await finish()
    runtime = current_runtime()
    started, reports = runtime.monotonic(), reports_made[0]
    run = spending = None
    if policy.budget is not None:
        spending = Spending(policy.budget)
        refused = partial(_run_of, settings, policy, describe, sent, runtime, started, reports, spending, awaits=True)
        admit(spending, runtime, refused)
    try:
        while True:
            try:
                limit = settings.limit if run is None else run.attempt_limit()
                blocked = None if limit is None else blocked_for(sent)
                if limit is None or blocked is None:
                    value = await attempt(*args, **options)
                else:
                    async with runtime.within(limit + blocked):
                        value = await attempt(*args, **options)
            except Exception as error:
                run = run or _run_of(settings, policy, describe, sent, runtime, started, reports, spending, awaits=True)
                grant = run.failed(error)
                if grant is None or not await grant.aask():
                    raise
            except BaseException as interrupt:  # a cancellation, too
                run = run or _run_of(settings, policy, describe, sent, runtime, started, reports, spending, awaits=True)
                run.cut_off(interrupt)
                raise
            else:
                if finish is not None:
                    value = await finish()
                if run is None and not policy.checks_values:
                    if spending is not None:
                        spending.succeeded(retried=False)
                    return value
                run = run or _run_of(settings, policy, describe, sent, runtime, started, reports, spending, awaits=True)
                grant = run.returned(value)
                if grant is None or not await grant.aask():
                    return value
            await grant.asleep()
    except BaseException:
        if spending is not None:
            spending.end()
        raise


def _run_of(
    settings: RedisSettings,
    policy: Policy,
    describe: Callable[[S, Safe], Work],
    sent: S,
    *begun: Any,
    awaits: bool = False,
) -> "CommandRun":
    """Return the run of what is sent; `begun` are the runtime, the time, the number of reports and the spending."""
    runtime, started, reports, spending = begun
    work = describe(sent, settings.safe)
    return CommandRun(settings, policy, work, runtime, started, reports, awaits=awaits, spending=spending)


def listen(settings: RedisSettings, attempt: Callable[[], T]) -> T:
    """Call `attempt`, which subscribes or waits for a message, as often as the policy allows; return its value.

    Time counts from the first failure. The libraries connect and subscribe again when a connection breaks, and then
    still raise the error. Messages that were published in the meantime are lost, as always with Redis. A budget does
    not count the first attempt, because waiting for messages is no load.
    """
    policy, run = settings.policy, None
    while True:
        try:
            value = attempt()
        except Exception as error:
            if policy is None:
                raise
            run = run or CommandRun(settings, policy, SUBSCRIPTION)
            grant = run.failed(error)
            if grant is None or not grant.ask():
                raise
        else:
            if run is not None:
                run.succeeded()
            return value
        grant.sleep()


async def alisten(settings: RedisSettings, attempt: Callable[[], Awaitable[T]]) -> T:
    """The asyncio form of `listen`."""
    policy, run = settings.policy, None
    while True:
        try:
            value = await attempt()
        except Exception as error:
            if policy is None:
                raise
            run = run or CommandRun(settings, policy, SUBSCRIPTION, awaits=True)
            grant = run.failed(error)
            if grant is None or not await grant.aask():
                raise
        else:
            if run is not None:
                run.succeeded()
            return value
        await grant.asleep()
