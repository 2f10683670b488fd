"""Pipelines, sync and asyncio: what they hold, what they have sent, and how it is sent again. It knows no library."""

from collections.abc import Awaitable, Callable, Generator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, Protocol, TypeVar

from forbear.exchange.redis import adrive, drive, watch
from forbear.exchange.redis.settings import Settings
from forbear.exchange.redis.work import Work, judge_together, pipeline, single, transaction
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
    """A pipeline of either library; `trail` is there while a transaction wants to know what was sent.

    `loop` is what is known of the caller's own WATCH loop, and `conflict` the WatchError of the library.
    """

    command_stack: Any  # a list of commands, each with its options
    scripts: set[Any]
    explicit_transaction: bool
    watching: bool
    settings: Settings
    trail: Trail | None
    loop: watch.Loop | None
    conflict: type[Exception]


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
        return attempt()

    with noting(pipe.trail):
        if pipe.watching:
            return watch.run(pipe.settings, _loop(pipe), queue.describe, once, ends=True)
        return drive.run(pipe.settings, _Queue.describe, queue, once)


def at_once(pipe: Pipe, attempt: Callable[[], T], command: Command) -> T:
    """Execute a command at once: WATCH, and those that follow it."""
    queue = _Queue(pipe, atomic=True)
    if pipe.trail is not None:
        pipe.trail.at_once.append(command)

    def once() -> T:
        queue.restore(pipe)
        return attempt()

    with noting(pipe.trail):
        if pipe.watching:
            return watch.run(pipe.settings, _loop(pipe), partial(_immediate, command), once)
        return drive.run(pipe.settings, _immediate, command, once)


async def aexecute(pipe: Pipe, attempt: Callable[[], Awaitable[T]], *, atomic: bool) -> T:
    """Do the same for asyncio."""
    queue = _Queue(pipe, atomic=atomic)
    if pipe.trail is not None:
        pipe.trail.queued = queue.describe

    async def once() -> T:
        queue.restore(pipe)
        return await attempt()

    with noting(pipe.trail):
        if pipe.watching:
            return await watch.arun(pipe.settings, _loop(pipe), queue.describe, once, ends=True)
        return await adrive.run(pipe.settings, _Queue.describe, queue, once)


async def aat_once(pipe: Pipe, attempt: Callable[[], Awaitable[T]], command: Command) -> T:
    """Do the same for asyncio."""
    queue = _Queue(pipe, atomic=True)
    if pipe.trail is not None:
        pipe.trail.at_once.append(command)

    async def once() -> T:
        queue.restore(pipe)
        return await attempt()

    with noting(pipe.trail):
        if pipe.watching:
            return await watch.arun(pipe.settings, _loop(pipe), partial(_immediate, command), once)
        return await adrive.run(pipe.settings, _immediate, command, once)


def unwatch(connection: Any) -> None:
    """Lift a WATCH. A connection that does not do so is closed, which lifts it, too."""
    if not is_open(connection):
        return  # it would be opened again only for this
    try:
        connection.send_command("UNWATCH")
        connection.read_response()
    except BaseException as error:
        connection.disconnect()
        if not isinstance(error, Exception):
            raise


async def aunwatch(connection: Any) -> None:
    """Do the same for asyncio."""
    if not is_open(connection):
        return
    try:
        await connection.send_command("UNWATCH")
        await connection.read_response()
    except BaseException as error:
        await connection.disconnect()
        if not isinstance(error, Exception):
            raise


def is_open(connection: Any) -> bool:
    """Return whether a connection is open, and so may still hold a WATCH."""
    is_connected: object = getattr(connection, "is_connected", None)  # the sync one of valkey-py lacks it
    return is_connected if isinstance(is_connected, bool) else getattr(connection, "_sock", None) is not None


def _immediate(command: Command) -> Work:
    return single(command, at_once=True)


def _loop(pipe: Pipe) -> watch.Loop | None:
    if pipe.trail is not None:
        return None
    if pipe.loop is None:
        pipe.loop = watch.Loop(pipe.conflict)
    return pipe.loop
