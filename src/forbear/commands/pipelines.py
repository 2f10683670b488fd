"""Pipelines, sync and asyncio: what they hold, what they have sent, and how it is sent again. It knows no library."""

from collections.abc import Awaitable, Callable, Generator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, Protocol, TypeVar

from forbear.commands import adrive, drive
from forbear.commands.settings import Settings
from forbear.commands.verdicts import lost_under_watch
from forbear.commands.work import Work, judge_together, pipeline, single, transaction
from forbear.services.redis.words import Command

T = TypeVar("T")


class Trail:
    """What one cycle of a transaction has sent: commands at once, as under WATCH, and what EXEC was to execute.

    `failed` tells a failure of the pipeline from one of the caller's function.
    """

    __slots__ = ("at_once", "failed", "queued")

    def __init__(self) -> None:
        self.at_once: list[Command] = []
        self.queued: Callable[[], Work] | None = None
        self.failed = False

    @property
    def harmless(self) -> bool:
        """Whether all that was sent at once may be sent again."""
        return all(judgement.repeatable for judgement in judge_together(self.at_once, at_once=True))


@contextmanager
def noting(trail: Trail | None) -> Generator[None]:
    """Note a failure of what the block sends."""
    try:
        yield
    except Exception:
        if trail is not None:
            trail.failed = True
        raise


class Pipe(Protocol):
    """A pipeline of either library; `trail` is there while a transaction wants to know what was sent."""

    command_stack: Any  # a list of commands, each with its options
    scripts: set[Any]
    explicit_transaction: bool
    watching: bool
    settings: Settings
    trail: Trail | None


class _Queue:
    """What a pipeline holds, which every attempt takes away."""

    def __init__(self, pipe: Pipe, *, atomic: bool) -> None:
        self._stack = pipe.command_stack
        self._scripts = pipe.scripts
        self._explicit = pipe.explicit_transaction
        self._watched = pipe.watching
        self._atomic = atomic or pipe.explicit_transaction

    def restore(self, pipe: Pipe) -> None:
        """Put it back for the next attempt."""
        pipe.command_stack = self._stack
        pipe.scripts = self._scripts
        pipe.explicit_transaction = self._explicit

    def describe(self) -> Work:
        """What it is, taken together."""
        commands: Sequence[Command] = [command for command, _ in self._stack]
        return transaction(commands, watched=self._watched) if self._atomic else pipeline(commands)


def execute(pipe: Pipe, attempt: Callable[[], T], *, atomic: bool) -> T:
    """Execute what is queued, `atomic` between MULTI and EXEC."""
    queue = _Queue(pipe, atomic=atomic)
    if pipe.trail is not None:
        pipe.trail.queued = queue.describe

    def once() -> T:
        queue.restore(pipe)
        return _surfacing(attempt)

    with noting(pipe.trail):
        return drive.run(pipe.settings, _Queue.describe, queue, once)


def at_once(pipe: Pipe, attempt: Callable[[], T], command: Command) -> T:
    """Execute a command at once: WATCH, and those that follow it."""
    queue = _Queue(pipe, atomic=True)
    if pipe.trail is not None:
        pipe.trail.at_once.append(command)
    watched = pipe.watching

    def once() -> T:
        queue.restore(pipe)
        return _surfacing(attempt, command)

    with noting(pipe.trail):
        return drive.run(pipe.settings, partial(single, watched=watched), command, once)


async def aexecute(pipe: Pipe, attempt: Callable[[], Awaitable[T]], *, atomic: bool) -> T:
    """The same for asyncio."""
    queue = _Queue(pipe, atomic=atomic)
    if pipe.trail is not None:
        pipe.trail.queued = queue.describe

    async def once() -> T:
        queue.restore(pipe)
        return await _asurfacing(attempt)

    with noting(pipe.trail):
        return await adrive.run(pipe.settings, _Queue.describe, queue, once)


async def aat_once(pipe: Pipe, attempt: Callable[[], Awaitable[T]], command: Command) -> T:
    """The same for asyncio."""
    queue = _Queue(pipe, atomic=True)
    if pipe.trail is not None:
        pipe.trail.at_once.append(command)
    watched = pipe.watching

    async def once() -> T:
        queue.restore(pipe)
        return await _asurfacing(attempt, command)

    with noting(pipe.trail):
        return await adrive.run(pipe.settings, partial(single, watched=watched), command, once)


def _surfacing(attempt: Callable[[], T], command: Command | None = None) -> T:
    """The attempt, where a loss that may hide an execution comes out as what it is, not as a WatchError."""
    try:
        return attempt()
    except Exception as error:
        lost = _loss(error, command)
        if lost is None:
            raise
    try:
        raise lost
    finally:
        del lost  # or this frame and the error would keep each other alive


async def _asurfacing(attempt: Callable[[], Awaitable[T]], command: Command | None = None) -> T:
    """The same for asyncio."""
    try:
        return await attempt()
    except Exception as error:
        lost = _loss(error, command)
        if lost is None:
            raise
    try:
        raise lost
    finally:
        del lost


def _loss(error: Exception, command: Command | None) -> Exception | None:
    lost = lost_under_watch(error)
    if lost is not None and command is not None and single(command, watched=False).repeatable:
        return None  # begin again with WATCH, as the error says
    return lost
