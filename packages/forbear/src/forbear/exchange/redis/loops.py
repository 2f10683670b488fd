"""The sync loops of Redis: whatever is sent, what failed on a cluster, transactions and subscriptions.

Generated from aloops.py: change that file, then run `make unasync`.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

from forbear.core.report import report
from forbear.exchange.call_state import Start
from forbear.exchange.redis.call import RedisCall
from forbear.exchange.redis.cluster import QueuedCommand, Repair, list_commands, list_results
from forbear.exchange.redis.descriptions import SUBSCRIPTION, SentCommands, enter_commands
from forbear.exchange.redis.pipelines import PipelineRequest, TransactionCall, WatchStep, is_open
from forbear.exchange.redis.settings import RedisSettings
from forbear.run.harm import is_used
from forbear.services.redis.errors import raise_first
from forbear.services.redis.vouch import Safe

T = TypeVar("T")

_NONE: Mapping[str, Any] = {}


def send(
    settings: RedisSettings,
    describe: Callable[[Any, Safe], SentCommands] | None,
    sent: Any,
    attempt: Callable[..., T],
    args: tuple[Any, ...] = (),
    options: Mapping[str, Any] = _NONE,
    call_type: Callable[..., RedisCall] = RedisCall,
    *,
    finish: Callable[[], T] | None = None,
    resumes: bool = False,
) -> T:
    """Call `attempt(*args, **options)` as often as the policy allows and return what it returns; without a policy once.

    `describe(sent, safe)` describes what is sent, as for `RedisCall`; None if the attempt sends it by this function.
    The arguments of the attempt are separate parameters, because making a partial for each command would cost time.
    `call_type` makes the state, which nearly every command ends without. If it `resumes` a run, it also sees a success.

    `finish` is called after each attempt that raises nothing; what it returns is then the value, and
    what it raises is raised.
    """
    if settings.policy is None and call_type is RedisCall:
        value = attempt(*args, **options)
        return value if finish is None else finish()
    start = Start()
    call = entry = None
    if resumes or is_used[0] or not settings.is_plain:
        entry = enter_commands(sent, describe, settings.safe) if is_used[0] and describe is not None else None
        if resumes or not settings.is_plain:
            call = call_type(settings, describe, sent, start, entry)
            call.count()
    try:
        while True:
            try:
                value = attempt(*args, **options)
            except Exception as error:
                call = call or call_type(settings, describe, sent, start, entry)
                grant = call.failed(error)
                if grant is not None and not grant.ask():
                    grant = None
                if grant is None and call.raised is error:
                    raise
            except BaseException as interrupt:
                call = call or call_type(settings, describe, sent, start, entry)
                call.cut_off(interrupt)
                raise
            else:
                if finish is not None:
                    value = finish()
                if call is None:
                    if entry is not None:
                        entry.done()
                    return value
                grant = call.returned(value)
                if grant is None or not grant.ask():
                    call.end()
                    return value
            if grant is None:
                raise call.raised
            grant.sleep()
            call.go_on()
    except BaseException:
        if call is not None:
            call.end()
        raise


def listen(settings: RedisSettings, attempt: Callable[..., T], *args: Any) -> T:
    """Call `attempt(*args)`, which subscribes or waits for a message, as often as the policy allows; return its value.

    Time counts from the first failure. The libraries connect and subscribe again when a connection breaks, and then
    still raise the error. Messages that were published in the meantime are lost, as always with Redis. A budget does
    not count the first attempt, because waiting for messages is no load.
    """
    call = None
    try:
        while True:
            try:
                value = attempt(*args)
            except Exception as error:
                if settings.policy is None:
                    raise
                call = call or RedisCall(settings, lambda sent, safe: SUBSCRIPTION, None, Start())
                grant = call.failed(error)
                if grant is None or not grant.ask():
                    raise
            else:
                if call is not None:
                    call.succeeded()
                return value
            grant.sleep()
    finally:
        if call is not None:
            call.end()


def send_request(request: PipelineRequest, attempt: Callable[..., Any], *args: Any, **options: Any) -> Any:
    """Send a request of a pipeline by `attempt`; once under WATCH and in a transaction that is repeated as a whole."""
    state = request.state
    call_type = WatchStep if request.watched or state.at_once is not None else RedisCall
    parts = PipelineRequest.describe, request, attempt, args, options, call_type
    return send(state.settings, *parts, resumes=state.run is not None)


def transact(
    settings: RedisSettings,
    pipe: Any,
    func: Callable[[Any], Any],
    watches: tuple[Any, ...],
    *,
    value_from_callable: bool,
    watch_delay: float | None,
) -> Any:
    """Run the cycle (WATCH the keys in `watches`, `func(pipe)`, EXEC) until it succeeds or the policy gives up.

    Return what EXEC returned; with `value_from_callable` what `func` returned.
    `watch_delay` (seconds) replaces the policy's backoff after a conflict; None and 0 replace nothing.
    """

    def cycle() -> Any:
        pipe.state.begin_cycle()
        try:
            if watches:
                pipe.watch(*watches)
            value = func(pipe)
            executed = pipe.execute()
        except Exception:
            pipe.reset()
            raise
        return value if value_from_callable else executed

    return send(settings, None, pipe.state, cycle, call_type=partial(TransactionCall, delay=watch_delay or None))


def send_scattered(
    settings: RedisSettings,
    describe: Callable[[Sequence[Any], Safe], SentCommands],
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
    if not stack:
        return []
    commands = list_commands(stack)
    responses = send(settings, describe, commands, attempt, finish=partial(repair, settings, stack, send_again))
    if raise_on_error:
        raise_first(commands, list_results(stack))
    return list(responses)


def repair(
    settings: RedisSettings,
    stack: Sequence[QueuedCommand],
    send_again: Callable[[QueuedCommand], object],
) -> list[Any]:
    """Wait and send the failed commands of `stack` again, if allowed; return the responses and the errors that remain.

    Without a policy, or without a failure worth repeating, it sends nothing. If one of those commands must not be
    executed twice, or the policy gives up, none is sent and the errors get a report. A command that fails again keeps
    the new error; if that one has a report, the rest is not sent.
    """
    if settings.policy is None or not any(isinstance(queued.result, Exception) for queued in stack):
        return list_results(stack)
    call = Repair(settings, stack, Start())
    grant = call.plan()
    if grant is None or not grant.ask():
        call.annotate()
        return list_results(stack)
    grant.sleep()
    for queued in call.again:
        try:
            queued.result = send_again(queued)
        except Exception as error:
            queued.result = error
            if report(error) is not None:
                break  # the policy's limits are reached: the other commands keep their errors
    else:
        call.succeeded()
    return list_results(stack)


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
