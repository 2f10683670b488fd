"""The sync loops of Redis: commands, pipelines, steps under WATCH, whole transactions, clusters, subscriptions.

Generated from aloops.py: change that file, then run `make unasync`.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

from forbear.core.record import reports_made
from forbear.core.report import report
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


def send(
    settings: RedisSettings,
    describe: Callable[[S, Safe], SentCommands],
    sent: S,
    attempt: Callable[..., T],
    args: tuple[Any, ...] = (),
    options: Mapping[str, Any] = _NONE,
    finish: Callable[[], T] | None = None,
) -> T:
    """Call `attempt(*args, **options)` as often as the policy allows and return what it returns; without a policy once.

    `finish` is called after each attempt that raises nothing; what it returns is then the value, and what it raises is
    raised. `describe(sent, safe)` describes what is sent, where the user vouches for the commands in `safe`. It is
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
        admit(spending, runtime, partial(_begin, settings, policy, describe, sent, runtime, started, reports, spending))
    entry = enter_commands(sent, describe, settings.safe) if is_used[0] else None
    if entry is not None:
        reports = entry.number
    try:
        while True:
            try:
                value = attempt(*args, **options)
            except Exception as error:
                run = run or _begin(settings, policy, describe, sent, runtime, started, reports, spending)
                grant = run.failed(error)
                if grant is None or not grant.ask():
                    if entry is not None and run.is_unexecuted:
                        entry.take_back()
                    raise
            except BaseException as interrupt:
                run = run or _begin(settings, policy, describe, sent, runtime, started, reports, spending)
                run.cut_off(interrupt)
                if entry is not None and run.is_unexecuted:
                    entry.take_back()
                raise
            else:
                if finish is not None:
                    value = finish()
                if entry is not None:
                    entry.done()
                if run is None and not policy.checks_values:
                    if spending is not None:
                        spending.succeeded(retried=False)
                    return value
                run = run or _begin(settings, policy, describe, sent, runtime, started, reports, spending)
                grant = run.returned(value)
                if grant is None or not grant.ask():
                    return value
            grant.sleep()
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
    return CommandRun(settings, policy, work, runtime, started, reports, spending=spending)


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


def send_request(request: PipelineRequest, attempt: Callable[..., Any], *args: Any, **options: Any) -> Any:
    """Send a request of a pipeline by `attempt`; under WATCH once, else as often as the policy allows."""
    cycle = request.state.cycle
    try:
        if request.watched:
            return _send_under_watch(WatchStep(request), attempt, args, options)
        return send(request.state.settings, PipelineRequest.describe, request, attempt, args, options)
    except BaseException:
        if cycle is not None:
            cycle.failed = True
        raise


def _send_under_watch(
    step: WatchStep, attempt: Callable[..., T], args: tuple[Any, ...], options: Mapping[str, Any]
) -> T:
    """Make the only attempt of a step and return its value.

    After a failure, raise it, or wait and raise the library's WatchError if the caller's loop may begin again. In the
    retry budget each step counts as a first attempt; Throttled if the budget refuses it.
    """
    step.begin()
    raised = None
    try:
        try:
            value = attempt(*args, **options)
        except Exception as error:
            raised, grant = step.failed(error)
            goes_on = grant is not None and grant.ask()
            if not goes_on and raised is error:
                raise
        except BaseException as interrupt:
            step.cut_off(interrupt)
            raise
        else:
            step.succeeded(value)
            return value
        if grant is None or not goes_on or step.loop is None:
            raise raised
        grant.sleep()
        raise step.loop.begin_again(step.run) from raised
    finally:
        step.end()
        del raised  # otherwise this frame and the error would keep each other alive


def transact(
    settings: RedisSettings,
    policy: Policy,
    pipe: Any,
    func: Callable[[Any], Any],
    watches: tuple[Any, ...],
    **options: Any,
) -> Any:
    """Run the cycle (WATCH the keys in `watches`, `func(pipe)`, EXEC) until it succeeds or the policy gives up.

    Return what EXEC returned; with `value_from_callable` what `func` returned.
    `pipe` must send everything once. `options` are those of `TransactionRun`.
    """
    with TransactionRun(settings, policy, **options) as run:
        while True:
            run.cycle = pipe.state.cycle = TransactionCycle()
            try:
                if watches:
                    pipe.watch(*watches)
                value = func(pipe)
                executed = pipe.execute()
            except Exception as error:
                grant = run.failed(error)
                if grant is None or not grant.ask():
                    raise
            except BaseException as interrupt:
                run.cut_off(interrupt)
                raise
            else:
                return run.succeeded(value, executed)
            pipe.reset()
            grant.sleep()


def send_to_nodes(settings: RedisSettings, attempt: Callable[[], T], command: Command) -> T:
    """Send `command` by `attempt`, to all nodes it is meant for, as often as the policy allows; return the response."""
    nodes = Nodes(command)

    def attempt_once() -> T:
        with nodes:
            return attempt()

    describe = partial(describe_command, nodes=nodes)
    return send(settings, describe, command, attempt_once)


def send_scattered(
    settings: RedisSettings,
    describe: Callable[[Sequence[Command], Safe], SentCommands],
    stack: Sequence[QueuedCommand],
    attempt: Callable[[], Any],
    send_again: Callable[[QueuedCommand], object],
    *,
    raise_on_error: bool,
) -> list[Any]:
    """Send the commands of a cluster's pipeline by `attempt`, repair what failed, and return the responses in order.

    An empty pipeline returns [] and sends nothing. With `raise_on_error` the first error is raised; otherwise errors
    stay among the responses. `stack` may be filled anew by each attempt. `send_again` sends one command by itself.
    """

    def finish() -> list[Any]:
        repair(settings, stack, send_again)
        return [queued.result for queued in stack]

    if not stack:
        return []
    responses = send(settings, describe, [queued.args for queued in stack], attempt, finish=finish)
    if raise_on_error:
        raise_first(stack)
    return list(responses)


def repair(
    settings: RedisSettings,
    stack: Sequence[QueuedCommand],
    send_again: Callable[[QueuedCommand], object],
) -> None:
    """Wait and send the failed commands of `stack` again, if allowed, and replace their errors by the responses.

    Without a policy, or without a failure worth repeating, it does nothing. If one of those commands must not be
    executed twice, or the policy gives up, none is sent and the errors get a report. A command that fails again keeps
    the new error; if that one has a report, the rest is not sent.
    """
    plan = plan_repair(settings, stack)
    if plan is None:
        return None
    run, grant, again = plan
    if grant is None or not grant.ask():
        return annotate(stack, run)
    grant.sleep()
    for queued in again:
        try:
            queued.result = send_again(queued)
        except Exception as error:
            queued.result = error
            if report(error) is not None:
                return None  # the policy's limits are reached: the other commands keep their errors
    return run.succeeded()


def unwatch(connection: Any) -> None:
    """Lift a connection's WATCH by UNWATCH; if that fails, close the connection, which lifts it, too."""
    if not is_open(connection):
        return  # it would be opened again only for this
    try:
        connection.send_command("UNWATCH")
        connection.read_response()
    except BaseException as error:
        connection.disconnect()
        if not isinstance(error, Exception):
            raise
