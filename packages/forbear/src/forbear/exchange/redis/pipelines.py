"""The requests that a pipeline sends, for sync and asyncio: its queue, or one command at once; `loops` sends them."""

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from forbear.exchange.redis.command_run import CommandRun
from forbear.exchange.redis.descriptions import (
    SentCommands,
    describe_command,
    describe_pipeline,
    describe_transaction,
)
from forbear.exchange.redis.settings import RedisSettings
from forbear.services.redis.errors import BEGIN_AGAIN
from forbear.services.redis.vouch import Safe
from forbear.services.redis.words import Command


class WatchLoop:
    """A caller's loop under WATCH; `conflict` is the library's WatchError class.

    `run` is the run of the last cycles in a row that failed and may begin again without harm, None after any other.
    """

    __slots__ = ("conflict", "run")

    def __init__(self, conflict: type[Exception]) -> None:
        self.conflict = conflict
        self.run: CommandRun | None = None

    def begin_again(self, run: CommandRun | None) -> Exception:
        """Return the library's WatchError, which makes the caller's loop begin again; keep `run` for the next cycle."""
        self.run = run
        return self.conflict(BEGIN_AGAIN)


class TransactionCycle:
    """One cycle of a transaction that forbear repeats, and what it has sent so far.

    `at_once` lists the commands that were not queued: WATCH, and those under it. `queued` is the request that sends the
    queue and EXEC, None before that. `failed` is true once something that was sent has failed; otherwise an error comes
    from the caller's function.
    """

    __slots__ = ("at_once", "failed", "queued")

    def __init__(self) -> None:
        self.at_once: list[Command] = []
        self.queued: PipelineRequest | None = None
        self.failed = False


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

    def request_for_queue(
        self, stack: Sequence[Any], *, atomic: bool, watched: bool, redirected: bool = False
    ) -> "PipelineRequest":
        """Return the request that sends the queued commands, a transaction if `atomic`; the current cycle keeps it."""
        request = PipelineRequest(self, stack, watched=watched, atomic=atomic, redirected=redirected)
        if self.cycle is not None:
            self.cycle.queued = request
        return request

    def request_at_once(self, command: Command, *, watched: bool) -> "PipelineRequest":
        """Return the request that sends `command` without queueing it: WATCH, or a command under WATCH."""
        if self.cycle is not None:
            self.cycle.at_once.append(command)
        return PipelineRequest(self, (), watched=watched, command=command)


class PipelineRequest:
    """One request of a pipeline: the commands in `stack`, or one `command` at once.

    Under WATCH (`watched`) it is sent once. `redirected` is true if the next attempt follows a redirection.
    """

    __slots__ = ("state", "watched", "_atomic", "_command", "_redirected", "_stack")

    def __init__(
        self,
        state: PipelineState,
        stack: Sequence[Any],
        *,
        watched: bool,
        atomic: bool = True,
        redirected: bool = False,
        command: Command | None = None,
    ) -> None:
        self.state = state
        self.watched = watched
        self._stack = stack
        self._atomic = atomic
        self._redirected = redirected
        self._command = command

    @property
    def ends_cycle(self) -> bool:
        """True if it sends the queue, which ends a cycle under WATCH."""
        return self._command is None

    @property
    def commands(self) -> list[Command]:
        """The commands that are sent."""
        if self._command is not None:
            return [self._command]
        return [
            queued.args if hasattr(queued, "args") else queued[0]  # on a cluster, and for one server
            for queued in self._stack
        ]

    @property
    def is_transaction(self) -> bool:
        """True for commands between MULTI and EXEC."""
        return self._command is None and self._atomic

    def describe(self, safe: Safe) -> SentCommands:
        """Return the description of what is sent; the user vouches for the commands in `safe`."""
        if self._command is not None:
            return describe_command(self._command, safe, at_once=True)
        commands = self.commands
        if not self._atomic:
            return describe_pipeline(commands, safe)
        return describe_transaction(commands, safe, watched=self.watched, redirected=self._redirected)


class Pipe(Protocol):
    """The attributes of a pipeline for one server, of redis-py or valkey-py, that this module uses."""

    command_stack: Any  # a list of commands, each with its options
    scripts: set[Any]
    explicit_transaction: bool


class Queue:
    """The queued commands of a pipeline for one server, put back before each attempt, since an attempt removes them."""

    __slots__ = ("_explicit", "_pipe", "_scripts", "_stack")

    def __init__(self, pipe: Pipe) -> None:
        self._pipe = pipe
        self._stack = pipe.command_stack
        self._scripts = pipe.scripts
        self._explicit = pipe.explicit_transaction

    def send(self, send: Callable[..., Any], *args: Any, **options: Any) -> Any:
        """Put the commands back and call the library's `send`; return its result, for asyncio an awaitable of it."""
        pipe = self._pipe
        pipe.command_stack = self._stack
        pipe.scripts = self._scripts
        pipe.explicit_transaction = self._explicit
        return send(*args, **options)


def is_open(connection: Any) -> bool:
    """Return whether a connection is open, and so may still hold a WATCH; False for None."""
    is_connected: object = getattr(connection, "is_connected", None)  # the sync one of valkey-py lacks it
    return is_connected if isinstance(is_connected, bool) else getattr(connection, "_sock", None) is not None
