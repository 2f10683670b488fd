"""The asyncio loops of Redis: commands, pipelines, steps under WATCH, whole transactions, clusters, subscriptions.

`loops.py` has the sync loops. It is generated from this file: change this one, then run `make unasync`.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from inspect import isawaitable
from typing import Any, TypeVar

from forbear.core.record import reports_made
from forbear.core.report import report
from forbear.exchange.redis import blocking
from forbear.exchange.redis.cluster import Nodes, QueuedCommand, annotate, plan_repair, raise_first
from forbear.exchange.redis.command_run import CommandRun
from forbear.exchange.redis.descriptions import SUBSCRIPTION, SentCommands, describe_command, enter_commands
from forbear.exchange.redis.pipelines import PipelineRequest, TransactionCycle, is_open
from forbear.exchange.redis.settings import RedisSettings
from forbear.exchange.redis.watch import TransactionRun, WatchStep
from forbear.policy import Policy
from forbear.run.harm import is_used
from forbear.run.runtime import current_runtime
from forbear.run.spending import Spending, admit
from forbear.services.redis.vouch import Safe
from forbear.services.redis.words import Command

S = TypeVar("S")
T = TypeVar("T")

_NONE: Mapping[str, Any] = {}


async def send(
    settings: RedisSettings,
    describe: Callable[[S, Safe], SentCommands],
    sent: S,
    attempt: Callable[..., Awaitable[T]],
    args: tuple[Any, ...] = (),
    options: Mapping[str, Any] = _NONE,
    blocking_time: Callable[[S], float | None] = lambda _: 0.0,
    finish: Callable[[], Awaitable[T]] | None = None,
) -> T:
    """Call `attempt(*args, **options)` as often as the policy allows and return what it returns; without a policy once.

    `finish` is called after each attempt that raises nothing; what it returns is then the value, and what it raises is
    raised. `describe(sent, safe)` describes what is sent, where the user vouches for the commands in `safe`. It is
    called only after a failure, or if the policy judges values. The arguments of the attempt are separate parameters,
    because making a partial for each command would cost time.

    An attempt may take the policy's attempt timeout, plus the seconds for which the server may block the command by
    `blocking_time(sent)`; None for no limit. `finish` has no limit.
    """
    policy = settings.policy
    if policy is None:
        value = await attempt(*args, **options)
        return value if finish is None else await finish()
    runtime = current_runtime()
    started, reports = runtime.monotonic(), reports_made[0]
    run = spending = None  # nearly every command ends without a state
    if policy.budget is not None:
        spending = Spending(policy.budget)
        admit(spending, runtime, partial(_begin, settings, policy, describe, sent, runtime, started, reports, spending))
    entry = enter_commands(sent, describe, settings.safe) if is_used[0] else None
    if entry is not None:
        reports = entry.number
    try:
        while True:
            try:
                limit = settings.limit if run is None else run.attempt_limit()
                blocked = None if limit is None else blocking_time(sent)
                if limit is None or blocked is None:
                    value = await attempt(*args, **options)
                else:
                    async with runtime.within(limit + blocked):
                        value = await attempt(*args, **options)
            except Exception as error:
                run = run or _begin(settings, policy, describe, sent, runtime, started, reports, spending)
                grant = run.failed(error)
                if grant is None or not await grant.aask():
                    if entry is not None and run.is_unexecuted:
                        entry.take_back()
                    raise
            except BaseException as interrupt:  # a cancellation, too
                run = run or _begin(settings, policy, describe, sent, runtime, started, reports, spending)
                run.cut_off(interrupt)
                if entry is not None and run.is_unexecuted:
                    entry.take_back()
                raise
            else:
                if finish is not None:
                    value = await finish()
                if entry is not None:
                    entry.done()
                if run is None and not policy.checks_values:
                    if spending is not None:
                        spending.succeeded(retried=False)
                    return value
                run = run or _begin(settings, policy, describe, sent, runtime, started, reports, spending)
                grant = run.returned(value)
                if grant is None or not await grant.aask():
                    return value
            await grant.asleep()
    except BaseException:
        if spending is not None:
            spending.end()
        raise


def _begin(
    settings: RedisSettings, policy: Policy, describe: Callable[[S, Safe], SentCommands], sent: S, *start: Any
) -> CommandRun:
    """Return the run of what is sent; `start` is the runtime, the time, the number of reports and the spending."""
    runtime, started, reports, spending = start
    work = describe(sent, settings.safe)
    return CommandRun(settings, policy, work, runtime, started, reports, spending=spending, awaits=True)


async def listen(settings: RedisSettings, attempt: Callable[[], Awaitable[T]]) -> T:
    """Call `attempt`, which subscribes or waits for a message, as often as the policy allows; return its value.

    Time counts from the first failure. The libraries connect and subscribe again when a connection breaks, and then
    still raise the error. Messages that were published in the meantime are lost, as always with Redis. A budget does
    not count the first attempt, because waiting for messages is no load.
    """
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


async def send_request(
    request: PipelineRequest, attempt: Callable[..., Awaitable[Any]], *args: Any, **options: Any
) -> Any:
    """Send a request of a pipeline by `attempt`; under WATCH once, else as often as the policy allows."""
    cycle = request.state.cycle
    try:
        if request.watched:
            return await _send_under_watch(WatchStep(request, awaits=True), attempt, args, options)
        return await send(request.state.settings, PipelineRequest.describe, request, attempt, args, options)
    except BaseException:
        if cycle is not None:
            cycle.failed = True
        raise


async def _send_under_watch(
    step: WatchStep, attempt: Callable[..., Awaitable[T]], args: tuple[Any, ...], options: Mapping[str, Any]
) -> T:
    """Make the only attempt of a step and return its value.

    After a failure, raise it, or wait and raise the library's WatchError if the caller's loop may begin again. In the
    retry budget each step counts as a first attempt; Throttled if the budget refuses it.
    """
    step.begin()
    raised = None
    try:
        try:
            async with step.time_limit():
                value = await attempt(*args, **options)
        except Exception as error:
            raised, grant = step.failed(error)
            goes_on = grant is not None and await grant.aask()
            if not goes_on and raised is error:
                raise
        except BaseException as interrupt:  # a cancellation, too
            step.cut_off(interrupt)
            raise
        else:
            step.succeeded(value)
            return value
        if grant is None or not goes_on or step.loop is None:
            raise raised
        await grant.asleep()
        raise step.loop.begin_again(step.run) from raised
    finally:
        step.end()
        del raised  # otherwise this frame and the error would keep each other alive


async def transact(
    settings: RedisSettings,
    policy: Policy,
    pipe: Any,
    func: Callable[[Any], Any],
    watches: tuple[Any, ...],
    **options: Any,
) -> Any:
    """Run the cycle (WATCH the keys in `watches`, `func(pipe)`, EXEC) until it succeeds or the policy gives up.

    Return what EXEC returned; with `value_from_callable` what `func` returned, which asyncio clients await if they can.
    `pipe` must send everything once. `options` are those of `TransactionRun`.
    """
    with TransactionRun(settings, policy, **options, awaits=True) as run:
        while True:
            run.cycle = pipe.state.cycle = TransactionCycle()
            try:
                if watches:
                    await pipe.watch(*watches)
                value = func(pipe)
                if isawaitable(value):
                    value = await value
                executed = await pipe.execute()
            except Exception as error:
                grant = run.failed(error)
                if grant is None or not await grant.aask():
                    raise
            except BaseException as interrupt:  # a cancellation, too
                run.cut_off(interrupt)
                raise
            else:
                return run.succeeded(value, executed)
            await pipe.reset()
            await grant.asleep()


async def send_to_nodes(settings: RedisSettings, attempt: Callable[[], Awaitable[T]], command: Command) -> T:
    """Send `command` by `attempt`, to all nodes it is meant for, as often as the policy allows; return the response."""
    nodes = Nodes(command)

    async def attempt_once() -> T:
        with nodes:
            return await attempt()

    describe = partial(describe_command, nodes=nodes)
    return await send(settings, describe, command, attempt_once, blocking_time=blocking.blocking_time)


async def send_scattered(
    settings: RedisSettings,
    describe: Callable[[Sequence[Command], Safe], SentCommands],
    stack: Sequence[QueuedCommand],
    attempt: Callable[[], Awaitable[Any]],
    send_again: Callable[[QueuedCommand], Awaitable[object]],
    *,
    raise_on_error: bool,
) -> list[Any]:
    """Send the commands of a cluster's pipeline by `attempt`, repair what failed, and return the responses in order.

    An empty pipeline returns [] and sends nothing. With `raise_on_error` the first error is raised; otherwise errors
    stay among the responses. `stack` may be filled anew by each attempt. `send_again` sends one command by itself.
    """

    async def finish() -> list[Any]:
        await repair(settings, stack, send_again)
        return [queued.result for queued in stack]

    if not stack:
        return []
    responses = await send(settings, describe, [queued.args for queued in stack], attempt, finish=finish)
    if raise_on_error:
        raise_first(stack)
    return list(responses)


async def repair(
    settings: RedisSettings,
    stack: Sequence[QueuedCommand],
    send_again: Callable[[QueuedCommand], Awaitable[object]],
) -> None:
    """Wait and send the failed commands of `stack` again, if allowed, and replace their errors by the responses.

    Without a policy, or without a failure worth repeating, it does nothing. If one of those commands must not be
    executed twice, or the policy gives up, none is sent and the errors get a report. A command that fails again keeps
    the new error; if that one has a report, the rest is not sent.
    """
    plan = plan_repair(settings, stack, awaits=True)
    if plan is None:
        return None
    run, grant, again = plan
    if grant is None or not await grant.aask():
        return annotate(stack, run)
    await grant.asleep()
    for queued in again:
        try:
            queued.result = await send_again(queued)
        except Exception as error:
            queued.result = error
            if report(error) is not None:
                return None  # the policy's limits are reached: the other commands keep their errors
    return run.succeeded()


async def unwatch(connection: Any) -> None:
    """Lift a connection's WATCH by UNWATCH; if that fails, close the connection, which lifts it, too."""
    if not is_open(connection):
        return  # it would be opened again only for this
    try:
        await connection.send_command("UNWATCH")
        await connection.read_response()
    except BaseException as error:
        await connection.disconnect()
        if not isinstance(error, Exception):
            raise
