"""Commands and pipelines on a cluster, sync and asyncio: send again only the commands that failed, each by itself.

The libraries send every lost or redirected command of a pipeline again, even INCR. Here the table decides which
commands may be sent again, and each of them is then sent through the cluster by itself. Only if sending the pipeline
raises, or if `on_result` refuses the responses, is it sent again as a whole, where all of it is repeatable.
"""

from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextvars import ContextVar
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple, Protocol, TypeVar

from forbear.core.report import attach, report
from forbear.core.verdict import Kind, Verdict
from forbear.exchange.redis import loops
from forbear.exchange.redis.blocking import blocked_for
from forbear.exchange.redis.command_run import CommandRun
from forbear.exchange.redis.settings import RedisSettings
from forbear.exchange.redis.verdicts import verdict_of
from forbear.exchange.redis.work import Work, judge_together, pipeline, scattered_pipeline, single
from forbear.run.grant import Grant
from forbear.services.redis.vouch import Safe
from forbear.services.redis.words import Command

T = TypeVar("T")

_ALONE = Work("", repeatable=False, unsafe="", redirected=True)
_TOGETHER = replace(_ALONE, atomic=False)
_WORTH_RETRYING = (Kind.TRANSIENT, Kind.NOT_EXECUTED)


class _Nodes(list[object]):
    """The nodes to which the current attempt has sent `command`; entering its `with` block, one attempt, empties it."""

    def __init__(self, command: Command) -> None:
        super().__init__()
        self.command = command

    def __enter__(self) -> None:
        self.clear()
        self._token = _nodes.set(self)

    def __exit__(self, *raised: object) -> None:
        _nodes.reset(self._token)


_nodes: ContextVar[_Nodes | None] = ContextVar("forbear_nodes", default=None)


def visited(node: object) -> None:
    """Record that the current attempt sends to `node`: one node may execute a command that another node refused.

    Outside of an attempt of `send` or `asend` it does nothing.
    """
    nodes = _nodes.get()
    if nodes is not None:
        nodes.append(node)


def command_sent() -> Command | None:
    """Return the command that the current attempt of `send` or `asend` sends; None outside of one."""
    nodes = _nodes.get()
    return None if nodes is None else nodes.command


def send(settings: RedisSettings, attempt: Callable[[], T], command: Command) -> T:
    """Send `command` by `attempt`, to all nodes it is meant for, as often as the policy allows; return the response."""
    nodes = _Nodes(command)

    def once() -> T:
        with nodes:
            return attempt()

    return loops.send(settings, partial(single, nodes=nodes), command, once)


async def asend(settings: RedisSettings, attempt: Callable[[], Awaitable[T]], command: Command) -> T:
    """The asyncio form of `send`."""
    nodes = _Nodes(command)

    async def once() -> T:
        with nodes:
            return await attempt()

    return await loops.asend(settings, partial(single, nodes=nodes), command, once, blocked_for=blocked_for)


class Queued(Protocol):
    """A command in a pipeline of either library, its `position` (from 0), and its response or error as `result`."""

    args: tuple[Any, ...]
    position: int
    result: Any


def execute(
    settings: RedisSettings,
    stack: Sequence[Any],
    send_all: Callable[..., object],
    send_one: Callable[..., object],
    *,
    raise_on_error: bool,
) -> list[Any]:
    """Send the commands of a pipeline to their nodes, repair what failed, and return the responses in order.

    An empty pipeline returns [] and sends nothing. With `raise_on_error` the first error is raised; otherwise errors
    stay among the responses.

    `send_all(stack, ...)` is the library's own sending, without redirections; `send_one(*args, **options)` sends one
    command through the cluster.
    """
    options = [dict(queued.options) for queued in stack]  # an attempt takes the targets away

    def attempt() -> Any:
        for queued, own in zip(stack, options, strict=True):
            queued.options = dict(own)
        send_all(stack, raise_on_error=False, allow_redirections=False)

    def send_again(queued: Queued) -> object:
        return send(settings, partial(send_one, *queued.args, **options[queued.position]), queued.args)

    def finish() -> list[Any]:
        repair(settings, stack, send_again)
        return [queued.result for queued in stack]

    if not stack:
        return []
    commands = [queued.args for queued in stack]
    responses: list[Any] = loops.send(settings, pipeline, commands, attempt, finish=finish)
    if raise_on_error:
        raise_first(stack)
    return responses


async def aexecute(
    settings: RedisSettings,
    queue: Sequence[Any],
    client: Any,
    send_all: Callable[..., Awaitable[object]],
    *,
    raise_on_error: bool,
) -> list[Any]:
    """The asyncio form of `execute` for the commands in `queue`; `client` is forbear's cluster client.

    Its `execute_command` sends the failed commands again, one by one, if they may be repeated. `send_all(client, stack,
    ...)` is the library's own sending.
    """
    stack: list[Any] = []

    async def attempt() -> Any:
        # New ones each time: a node that was not waited for may still write into the old ones.
        stack[:] = [type(queued)(queued.position, *queued.args, **queued.kwargs) for queued in queue]
        await client.initialize()
        await send_all(client, list(stack), raise_on_error=False, allow_redirections=False)

    async def send_again(queued: Queued) -> object:
        return await client.execute_command(*queued.args, **queue[queued.position].kwargs)

    async def finish() -> list[Any]:
        await arepair(settings, stack, send_again)
        return [queued.result for queued in stack]

    if not queue:
        return []
    commands = [queued.args for queued in queue]
    responses: list[Any] = await loops.asend(settings, scattered_pipeline, commands, attempt, finish=finish)
    if raise_on_error:
        raise_first(stack)
    return responses


def repair(settings: RedisSettings, stack: Sequence[Queued], send_again: Callable[[Queued], object]) -> None:
    """Wait and send the failed commands of `stack` again, if allowed, and replace their errors by the responses.

    Without a policy, or without a failure worth repeating, it does nothing. If one of those commands must not be
    executed twice, or the policy gives up, none is sent and the errors get a report. A command that fails again keeps
    the new error; if that one has a report, the rest is not sent.
    """
    plan = _plan(settings, stack)
    if plan is None:
        return None
    run, grant, again = plan
    if grant is None or not grant.ask():
        return _annotate(stack, run)
    grant.sleep()
    for queued in again:
        try:
            queued.result = send_again(queued)
        except Exception as error:
            queued.result = error
            if report(error) is not None:
                return None  # the policy's limits are reached: the other commands keep their errors
    return run.succeeded()


async def arepair(
    settings: RedisSettings, stack: Sequence[Queued], send_again: Callable[[Queued], Awaitable[object]]
) -> None:
    """The asyncio form of `repair`."""
    plan = _plan(settings, stack, awaits=True)
    if plan is None:
        return None
    run, grant, again = plan
    if grant is None or not await grant.aask():
        return _annotate(stack, run)
    await grant.asleep()
    for queued in again:
        try:
            queued.result = await send_again(queued)
        except Exception as error:
            queued.result = error
            if report(error) is not None:
                return None
    return run.succeeded()


class _Failure(NamedTuple):
    """A failed command of a pipeline and the verdict on it.

    `harmful` is true if the command may have been executed and must not be executed twice. `vouched` is true if it may
    have been executed, and only the user's word allows that it is executed twice.
    """

    queued: Queued
    verdict: Verdict
    harmful: bool
    vouched: bool


def _plan(
    settings: RedisSettings, stack: Sequence[Queued], *, awaits: bool = False
) -> tuple[CommandRun, Grant | None, list[Queued]] | None:
    """Return the run, the grant of its retry and the commands to send again then.

    Return None without a policy, and if no command failed in a way worth repeating. The grant is None if the run
    gives up; one harmful command is enough for that.
    """
    if settings.policy is None or not any(isinstance(queued.result, Exception) for queued in stack):
        return None
    work = pipeline([queued.args for queued in stack], settings.safe)
    run = CommandRun(settings, settings.policy, work, awaits=awaits)
    failures = [failure for failure in _failures(run, stack, settings.safe) if failure.verdict.kind in _WORTH_RETRYING]
    harmful = next((failure for failure in failures if failure.harmful), None)
    if not failures:
        return None
    decisive = harmful or failures[0]
    vouched = any(failure.vouched for failure in failures)
    work = replace(work, repeatable=harmful is None, vouched=vouched)
    grant = run.failed_as(decisive.verdict, decisive.queued.result, work)
    return run, grant, [failure.queued for failure in failures]


def _annotate(stack: Sequence[Queued], run: CommandRun) -> None:
    """Attach the run's report, which says why nothing is sent again, to every error of `stack` that has none.

    Every error gets it, because the first error is raised in any case. Does nothing if the run has no report.
    """
    for queued in stack:
        error = queued.result
        if run.report is not None and isinstance(error, Exception) and report(error) is None:
            attach(error, run.report)


def _failures(run: CommandRun, stack: Sequence[Queued], safe: Safe) -> Iterator[_Failure]:
    judgements = judge_together([queued.args for queued in stack], safe)
    errors = Counter(id(queued.result) for queued in stack if isinstance(queued.result, Exception))
    for queued, judgement in zip(stack, judgements, strict=True):
        error = queued.result
        if isinstance(error, Exception):
            # redis-py gives one error to all commands of a node, even to those that were answered before it.
            work = replace(_TOGETHER if errors[id(error)] > 1 else _ALONE, scripted=judgement.scripted)
            verdict = run.policy_verdict(error, verdict_of(error, work))
            doubt = verdict.kind is Kind.TRANSIENT
            yield _Failure(queued, verdict, doubt and not judgement.repeatable, doubt and judgement.vouched)


def raise_first(stack: Sequence[Queued]) -> None:
    """Raise the first error among the results, with its command's name and number (from 1) in the text.

    Does nothing if there is no error.
    """
    for queued in stack:
        error = queued.result
        if isinstance(error, Exception):
            text = error.args[0] if error.args else ""
            command = queued.args[0]
            error.args = (f"Command # {queued.position + 1} ({command}) of pipeline caused error: {text}",)
            raise error
