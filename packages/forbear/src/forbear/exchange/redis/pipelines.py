"""Pipelines: what one sends, and the state machine of its cycles from WATCH to EXEC.

A WATCH dies with its connection, and what was read under it may be out of date. So no step is sent again by itself: the
whole cycle begins again, in the caller's own loop, or in `transaction()`, where forbear repeats it.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from forbear.core.dataclass import dataclass, replace
from forbear.core.verdict import CONFLICT, PERMANENT, Kind
from forbear.exchange.call_state import is_only_of_user
from forbear.exchange.redis.call import RedisCall
from forbear.exchange.redis.descriptions import (
    TRANSACTION,
    SentCommands,
    describe_command,
    describe_together,
    judge_together,
)
from forbear.exchange.redis.settings import RedisSettings
from forbear.exchange.redis.verdicts import failure_of, is_refused, is_watch_error, verdict_of
from forbear.run.switch import is_off
from forbear.services.redis.command_words import Command
from forbear.services.redis.errors import BEGIN_AGAIN
from forbear.services.redis.table import CommandJudgement
from forbear.services.redis.vouch import Safe

if TYPE_CHECKING:
    from forbear.run.grant import Grant
    from forbear.run.state import Run


@dataclass(slots=True)
class PipelineState:
    """The state that forbear keeps for one pipeline; `conflict` is the library's WatchError.

    `run` is the run of the last cycles in a row that failed in the caller's own loop and may begin again without harm,
    None after any other.

    While forbear itself repeats a transaction, `at_once` lists the commands that the current cycle has sent without
    queueing them: WATCH, and those under it. It is None otherwise. `queued` is the request of the cycle that sends the
    queue and EXEC, None before that. `failed` is true once something that was sent has failed; otherwise an error comes
    from the caller's function.
    """

    settings: RedisSettings
    conflict: type[Exception]
    run: "Run | None" = None
    at_once: list[Command] | None = None
    queued: "PipelineRequest | None" = None
    failed: bool = False

    def begin_cycle(self) -> None:
        """Forget the cycle before: the next one begins, which forbear may repeat."""
        self.at_once, self.queued, self.failed = [], None, False


class PipelineRequest:
    """One request of a pipeline: its queue, as a transaction if it is `atomic`, or one `command` at once.

    `stack` has the queued commands. Under WATCH (`watched`) it is sent once. `redirected` is true if the next attempt
    follows a redirection.
    """

    __slots__ = ("command", "is_transaction", "state", "watched", "_redirected", "_stack")

    def __init__(
        self,
        state: PipelineState,
        *,
        watched: bool,
        stack: Sequence[Any] = (),
        atomic: bool = False,
        redirected: bool = False,
        command: Command | None = None,
    ) -> None:
        self.state = state
        self.watched = watched
        self.is_transaction = atomic
        self.command = command
        self._stack = stack
        self._redirected = redirected
        if state.at_once is not None:
            if command is None:
                state.queued = self
            else:
                state.at_once.append(command)

    @property
    def commands(self) -> list[Command]:
        if self.command is not None:
            return [self.command]
        return [
            queued.args if hasattr(queued, "args") else queued[0]  # on a cluster, and for one server
            for queued in self._stack
        ]

    def describe(self, safe: Safe) -> SentCommands:
        """Return the description of what is sent; the user vouches for the commands in `safe`."""
        if self.command is not None:
            return describe_command(self.command, safe, at_once=True)
        atomic, watched = self.is_transaction, self.is_transaction and self.watched
        return describe_together(self.commands, safe, transaction=atomic, watched=watched, redirected=self._redirected)


class WatchStep(RedisCall):
    """One step of a cycle: a command that is sent at once, or MULTI to EXEC, which ends the cycle.

    It is sent once. In the caller's own loop, the WatchError that makes the loop begin again comes after a wait by the
    policy. Once the policy's limits are reached, the loop gets the error itself. In the retry budget each step counts
    as a first attempt. Without a policy, and where forbear runs the cycles itself, nothing is counted.
    """

    __slots__ = ("_counts",)

    def __init__(self, settings: RedisSettings, *parts: Any) -> None:
        super().__init__(settings, *parts)
        state: PipelineState = self.sent.state
        self._counts = settings.policy is not None and state.at_once is None and not is_off()
        if not self._counts:
            self.spending = None

    def failed(self, error: Exception) -> "Grant | None":
        state: PipelineState = self.sent.state
        state.failed = True
        self.raised = error
        if str(error) == BEGIN_AGAIN:
            return None  # the error of a step within this one, such as loading scripts first
        failure = failure_of(error) if self.sent.watched else error
        commands = replace(self.commands, watched=False)
        earlier = self._take_run()
        if is_watch_error(failure):  # another client was quicker
            self.is_unexecuted = True
            if self._counts:
                self.follow(CONFLICT, failure, commands)
            return None
        verdict = verdict_of(failure, commands)
        unexecuted = self.is_unexecuted = is_refused(verdict, failure, commands)
        harmless = verdict.kind is Kind.NOT_EXECUTED or (verdict.kind is Kind.TRANSIENT and commands.repeatable)
        begins_again = harmless and state.at_once is None and is_watch_error(error)
        if not self._counts:
            self.raised = error if begins_again else failure
            return None
        self.run = earlier
        verdict = self.find_verdict(failure, verdict)
        if verdict.kind is Kind.PERMANENT and begins_again:
            return None  # a policy for some errors only: no reason to end the caller's loop
        self.raised = failure
        harmless = harmless and verdict.kind is not Kind.PERMANENT
        grant = self.follow(verdict.replace(kind=Kind.NOT_EXECUTED) if harmless else verdict, failure, commands)
        self.is_unexecuted = unexecuted
        return grant if harmless else None

    def go_on(self) -> None:
        """Raise the library's WatchError, so that the caller's loop begins again; its next cycle belongs to the run."""
        state: PipelineState = self.sent.state
        state.run = self.run
        raise state.conflict(BEGIN_AGAIN) from self.raised

    def returned(self, value: object) -> None:
        """Count a success, after EXEC also of the cycles that failed before it; `on_result` may only look at it."""
        run = self._take_run() if self.sent.command is None else None
        if self._counts:
            self.run = run
            if self.policy.checks_values:
                self.judge_value(value, replace(self.commands, repeatable=False))
            else:
                self.succeeded()
        if self.entry is not None:
            self.entry.done()

    def cut_off(self, error: BaseException) -> None:
        self.sent.state.failed = True
        if self._counts:
            super().cut_off(error)

    def end(self) -> None:
        """Count the end of the step, and of the wait before the next cycle: its first step counts again."""
        if self.run is not None:
            self.run.end()
        super().end()

    def _take_run(self) -> "Run | None":
        """Return the run of the failed cycles before this one, None if there is none, and make the loop forget it."""
        state: PipelineState = self.sent.state
        run, state.run = state.run, None
        return run


class TransactionCall(RedisCall):
    """The cycles of a transaction that forbear repeats, by the pipeline's state in `sent`.

    `delay` (seconds) replaces the policy's backoff after a conflict; None replaces nothing.
    """

    __slots__ = ("delay",)

    def __init__(self, *parts: Any, delay: float | None = None) -> None:
        super().__init__(*parts)
        self.delay = delay

    @property
    def commands(self) -> SentCommands:
        """The description of what the current cycle has sent so far: before EXEC, only what was sent at once counts."""
        state: PipelineState = self.sent
        queued = TRANSACTION if state.queued is None else state.queued.describe(self.settings.safe)
        at_once = self._judge_at_once()
        repeatable = all(one.repeatable for one in at_once) and (state.queued is None or queued.repeatable)
        vouched = queued.vouched or any(one.vouched for one in at_once)
        return replace(queued, repeatable=repeatable, watched=False, vouched=vouched)

    def find_limit(self) -> None:
        """Return None: each step has a limit of its own."""

    def failed(self, error: Exception) -> "Grant | None":
        self.raised = error
        if not self.sent.failed:
            return self.follow(PERMANENT, error, TRANSACTION)  # the caller's function failed by itself
        commands = self.commands
        proven = verdict_of(error, commands)
        verdict = self.find_verdict(error, proven)
        by_word = is_only_of_user(verdict, proven)
        if not all(one.repeatable for one in self._judge_at_once()):
            # A command that was sent at once has taken effect, whatever comes of EXEC, as a script may have.
            commands = replace(commands, scripted=True)
            if verdict.kind is Kind.NOT_EXECUTED:
                verdict, by_word = verdict.replace(kind=Kind.TRANSIENT), False
        if verdict.kind is Kind.CONFLICT:
            verdict = verdict.replace(kind=Kind.NOT_EXECUTED, delay=self.delay)
        return self.follow(verdict, error, commands, by_word=by_word)

    def returned(self, value: object) -> None:
        """Count a success; `on_result` does not see the value, which may be that of the caller's function."""
        self.succeeded()

    def cut_off(self, error: BaseException) -> None:
        if self.sent.failed:  # it interrupted a command
            super().cut_off(error)

    def _judge_at_once(self) -> tuple[CommandJudgement, ...]:
        return judge_together(self.sent.at_once or (), self.settings.safe, at_once=True)


def is_open(connection: Any) -> bool:
    """Return whether a connection is open, and so may still hold a WATCH; False for None."""
    is_connected: object = getattr(connection, "is_connected", None)  # the sync one of valkey-py lacks it
    return is_connected if isinstance(is_connected, bool) else getattr(connection, "_sock", None) is not None
