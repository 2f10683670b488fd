"""Pipelines, sync and asyncio: send the queued commands, or one command at once, as often as the policy allows.

Under WATCH they are sent only once.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

from forbear.exchange.redis import loops
from forbear.exchange.redis.settings import RedisSettings
from forbear.exchange.redis.transactions import TransactionCycle, recording_failure
from forbear.exchange.redis.watch import WatchLoop, WatchStep
from forbear.exchange.redis.work import Work, pipeline, single, transaction
from forbear.services.redis.vouch import Safe
from forbear.services.redis.words import Command


class PipelineState:
    """The state that forbear keeps for one pipeline; `conflict` is the library's WatchError.

    `loop` is the loop under WATCH that the caller may run with the pipeline. `cycle` is the current cycle while forbear
    itself repeats a transaction, None otherwise.
    """

    __slots__ = ("loop", "settings", "cycle")

    def __init__(self, settings: RedisSettings, conflict: type[Exception]) -> None:
        self.settings = settings
        self.loop = WatchLoop(conflict)
        self.cycle: TransactionCycle | None = None

    def queued(
        self, describe: Callable[[Safe], Work], attempt: Callable[[], Any], *, watched: bool
    ) -> "PipelineRequest":
        """Return the request that sends the commands queued in the pipeline, under WATCH if `watched`.

        `attempt` sends them and `describe` returns their description, which the current cycle keeps, if there is one.
        """
        if self.cycle is not None:
            self.cycle.queued = describe
        return PipelineRequest(self, describe, attempt, watched, ends=True)

    def at_once(self, command: Command, attempt: Callable[[], Any], *, watched: bool) -> "PipelineRequest":
        """Return the request that sends `command` by `attempt` without queueing it: WATCH, or a command under WATCH.

        The current cycle lists the command, if there is one.
        """
        if self.cycle is not None:
            self.cycle.at_once.append(command)
        return PipelineRequest(self, partial(single, command, at_once=True), attempt, watched, ends=False)


@dataclass(frozen=True, slots=True)
class PipelineRequest:
    """One request of a pipeline: `attempt` sends it, `describe` returns its description.

    Under WATCH (`watched`) it is sent once. `ends` is true if it sends the queue, which ends a cycle under WATCH. For
    asyncio `attempt` returns an awaitable.
    """

    state: PipelineState
    describe: Callable[[Safe], Work]
    attempt: Callable[[], Any]
    watched: bool
    ends: bool

    def send(self) -> Any:
        """Send the request and return what its attempt returns; under WATCH once, else as often as the policy allows.

        A failure is recorded in the current cycle, if there is one.
        """
        with recording_failure(self.state.cycle):
            if self.watched:
                return self._step().send(self.attempt)
            return loops.send(self.state.settings, _described, self.describe, self.attempt)

    async def asend(self) -> Any:
        """The asyncio form of `send`."""
        with recording_failure(self.state.cycle):
            if self.watched:
                return await self._step().asend(self.attempt)
            return await loops.asend(self.state.settings, _described, self.describe, self.attempt)

    def _step(self) -> WatchStep:
        loop = self.state.loop if self.state.cycle is None else None
        return WatchStep(self.state.settings, loop, self.describe, ends=self.ends)


def _described(describe: Callable[[Safe], Work], safe: Safe) -> Work:
    return describe(safe)


class Pipe(Protocol):
    """The attributes of a pipeline for one server, of redis-py or valkey-py, that this module uses."""

    command_stack: Any  # a list of commands, each with its options
    scripts: set[Any]
    explicit_transaction: bool
    watching: bool
    state: PipelineState


def queued(pipe: Pipe, attempt: Callable[[], Any], *, atomic: bool) -> PipelineRequest:
    """Return the request that sends the commands queued in `pipe`; `attempt` is the library's own sending.

    They are a transaction if `atomic`, or if the caller began one by `pipe.multi()`; otherwise a plain pipeline.
    """
    queue = _Queue(pipe, atomic=atomic)
    return pipe.state.queued(queue.describe, partial(queue.send, pipe, attempt), watched=pipe.watching)


def at_once(pipe: Pipe, attempt: Callable[[], Any], command: Command) -> PipelineRequest:
    """Return the request for a command that `pipe` does not queue: WATCH, or a command under WATCH.

    `attempt` is the library's own sending of the command.
    """
    queue = _Queue(pipe, atomic=True)
    return pipe.state.at_once(command, partial(queue.send, pipe, attempt), watched=pipe.watching)


class _Queue:
    """The commands queued in a pipeline, kept here and put back before each attempt, because an attempt removes them.

    They are a transaction if `atomic`, or if the caller began one explicitly.
    """

    def __init__(self, pipe: Pipe, *, atomic: bool) -> None:
        self._stack = pipe.command_stack
        self._scripts = pipe.scripts
        self._explicit = pipe.explicit_transaction
        self._watched = pipe.watching
        self._atomic = atomic or pipe.explicit_transaction

    def send(self, pipe: Pipe, attempt: Callable[[], Any]) -> Any:
        """Put the commands back into `pipe`, call `attempt`, and return its result."""
        pipe.command_stack = self._stack
        pipe.scripts = self._scripts
        pipe.explicit_transaction = self._explicit
        return attempt()

    def describe(self, safe: Safe) -> Work:
        """Return the description of the queued commands together, as a transaction or as a plain pipeline.

        The user vouches for the commands in `safe`.
        """
        commands: Sequence[Command] = [command for command, _ in self._stack]
        return transaction(commands, safe, watched=self._watched) if self._atomic else pipeline(commands, safe)


def unwatch(connection: Any) -> None:
    """Lift a connection's WATCH by UNWATCH; if that fails, close the connection, which lifts it, too.

    Does nothing for None and for a closed connection. An Exception on the way is not raised; a KeyboardInterrupt or a
    cancellation is.
    """
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
    """The asyncio form of `unwatch`."""
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
    """Return whether a connection is open, and so may still hold a WATCH; False for None."""
    is_connected: object = getattr(connection, "is_connected", None)  # the sync one of valkey-py lacks it
    return is_connected if isinstance(is_connected, bool) else getattr(connection, "_sock", None) is not None
