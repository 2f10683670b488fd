"""Pipelines on a cluster, sync and asyncio: what came back broken is sent again by itself. It knows no library.

The libraries send again whatever of a pipeline was lost or redirected, INCR too. Here the table says what may follow,
and each such command then goes its own way through the cluster.
"""

from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from contextvars import ContextVar
from dataclasses import replace
from functools import partial
from typing import Any, Protocol, TypeVar

from forbear.core.report import attach, report
from forbear.core.verdict import Kind, Verdict
from forbear.exchange.redis import adrive, drive
from forbear.exchange.redis.call import Call
from forbear.exchange.redis.settings import Settings
from forbear.exchange.redis.verdicts import verdict_of
from forbear.exchange.redis.work import Work, judge_together, pipeline, single
from forbear.policy import Policy
from forbear.services.redis.words import Command

T = TypeVar("T")

_nodes: ContextVar[list[object]] = ContextVar("forbear_nodes")
_ALONE = Work("", repeatable=False, unsafe="", redirected=True)
_TOGETHER = replace(_ALONE, atomic=False)


def visited(node: object) -> None:
    """Note that the attempt under way goes to `node`: what one node refused another may have executed."""
    nodes = _nodes.get(None)
    if nodes is not None:
        nodes.append(node)


def run(settings: Settings, attempt: Callable[[], T], command: Command) -> T:
    """Have the cluster execute one command, on as many nodes as it is for."""
    nodes: list[object] = []

    def once() -> T:
        nodes.clear()
        token = _nodes.set(nodes)
        try:
            return attempt()
        finally:
            _nodes.reset(token)

    return drive.run(settings, partial(single, nodes=nodes), command, once)


async def arun(settings: Settings, attempt: Callable[[], Awaitable[T]], command: Command) -> T:
    """The same for asyncio."""
    nodes: list[object] = []

    async def once() -> T:
        nodes.clear()
        token = _nodes.set(nodes)
        try:
            return await attempt()
        finally:
            _nodes.reset(token)

    return await adrive.run(settings, partial(single, nodes=nodes), command, once)


class Queued(Protocol):
    """A command in a pipeline of either library, and its reply or error."""

    args: tuple[Any, ...]
    position: int
    result: Any


def mend(settings: Settings, stack: Sequence[Queued], send: Callable[[Queued], object]) -> None:
    """Send again what came back broken, where it may be, and put the replies in the place of the errors."""
    if settings.policy is None or not any(isinstance(queued.result, Exception) for queued in stack):
        return
    broken = _Broken(settings, settings.policy, stack)
    delay = broken.delay()
    if delay is None:
        broken.tell()
        return
    broken.call.runtime.sleep(delay)
    for queued in broken.again:
        try:
            queued.result = send(queued)
        except Exception as error:
            queued.result = error
            if report(error) is not None:
                return  # patience is at an end: the others keep their errors
    broken.call.succeeded()


async def amend(settings: Settings, stack: Sequence[Queued], send: Callable[[Queued], Awaitable[object]]) -> None:
    """The same for asyncio."""
    if settings.policy is None or not any(isinstance(queued.result, Exception) for queued in stack):
        return
    broken = _Broken(settings, settings.policy, stack)
    delay = broken.delay()
    if delay is None:
        broken.tell()
        return
    await broken.call.runtime.asleep(delay)
    for queued in broken.again:
        try:
            queued.result = await send(queued)
        except Exception as error:
            queued.result = error
            if report(error) is not None:
                return
    broken.call.succeeded()


def raise_first(stack: Sequence[Queued]) -> None:
    """Raise the first error among the results, saying whose it is."""
    for queued in stack:
        error = queued.result
        if isinstance(error, Exception):
            text = error.args[0] if error.args else ""
            command = queued.args[0]
            error.args = (f"Command # {queued.position + 1} ({command}) of pipeline caused error: {text}",)
            raise error


class _Broken:
    """What is to be done about a pipeline that came back with errors; `again` lists what is to be sent again."""

    def __init__(self, settings: Settings, policy: Policy, stack: Sequence[Queued]) -> None:
        self.again: list[Queued] = []
        self._stack = stack
        self._work = pipeline([queued.args for queued in stack])
        self.call = Call(settings, policy, self._work)

    def tell(self) -> None:
        """Let all errors say why nothing is sent again: the first of them comes out, whichever was decisive."""
        told = self.call.report
        for queued in self._stack:
            error = queued.result
            if told is not None and isinstance(error, Exception) and report(error) is None:
                attach(error, told)

    def delay(self) -> float | None:
        """Seconds to wait before that; None if there is nothing to be sent again, or it must not be."""
        judged = judge_together([queued.args for queued in self._stack])
        verdicts: list[Verdict] = []
        errors = Counter(id(queued.result) for queued in self._stack if isinstance(queued.result, Exception))
        for queued, judgement in zip(self._stack, judged, strict=True):
            error = queued.result
            if not isinstance(error, Exception):
                continue
            # redis-py gives one error to all commands of a node, those too that were answered before it came.
            work = replace(_TOGETHER if errors[id(error)] > 1 else _ALONE, scripted=judgement.scripted)
            verdict = self.call.judged(error, verdict_of(error, work))
            if verdict.kind is Kind.TRANSIENT and not judgement.repeatable:
                return self.call.after(verdict, error, replace(self._work, repeatable=False))
            if verdict.kind in (Kind.TRANSIENT, Kind.NOT_EXECUTED):
                self.again.append(queued)
                verdicts.append(verdict)
        if not self.again:
            return None
        return self.call.after(verdicts[0], self.again[0].result, replace(self._work, repeatable=True))
