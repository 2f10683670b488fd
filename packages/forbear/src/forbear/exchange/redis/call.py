"""The state machine of whatever is sent to Redis: the outcome of an attempt goes in, the next step is returned.

It does no I/O and awaits nothing. `aloops.send` makes the attempts and carries out the steps:

- A grant: ask it, wait, and call `go_on`, after which everything is sent again.
- No grant: return the value, or raise the exception `raised`.

What follows depends on the call:

| the attempt                      | `RedisCall`     | `WatchStep`                   | `TransactionCall` |
|----------------------------------|-----------------|-------------------------------|-------------------|
| not executed, or it may be twice | send again      | wait, raise the WatchError    | a new cycle       |
| a conflict                       | none            | raise the WatchError          | a new cycle       |
| any other failure                | raise the error | raise what a WatchError hides | raise the error   |
| a value                          | `on_result`     | return it                     | return it         |

`RedisCall` is a command, a pipeline, or a transaction without WATCH. The others are in `pipelines.py`: one step of a
cycle from WATCH to EXEC, and the cycles of `transaction()`.
"""

from collections.abc import Callable
from typing import Any, cast

from forbear.core.decide import Reason
from forbear.core.report import text_of
from forbear.core.verdict import TRANSIENT, Kind, Verdict
from forbear.exchange.call_state import FORBIDDEN, CallState, Start, is_only_of_user, with_proof
from forbear.exchange.interrupt import is_interrupt
from forbear.exchange.redis.blocking import blocking_time
from forbear.exchange.redis.descriptions import SentCommands
from forbear.exchange.redis.settings import RECOMMENDED, RedisSettings
from forbear.exchange.redis.verdicts import Phase, is_refused, phase_of, verdict_of
from forbear.run.answers import refusal_of
from forbear.run.doubt import leave_in_doubt
from forbear.run.failure import DetailedFailure
from forbear.run.runtime import AttemptTimeout
from forbear.services.redis.errors import hide_arguments
from forbear.services.redis.vouch import Safe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from forbear.run.grant import Grant
    from forbear.run.ledger import Entry

_LONGEST_TEXT = 4096


class RedisCall(CallState):
    """One command, or several sent together, through its attempts under the policy of `settings`.

    `describe(sent, safe)` describes what is sent, where the user vouches for the commands in `safe`. It is called only
    after a failure, or if the policy judges values. `entry` is what is sent in the ledger, None if it does no harm.
    """

    __slots__ = ("is_unexecuted", "raised", "sent", "settings", "_describe", "_commands")

    def __init__(
        self,
        settings: RedisSettings,
        describe: Callable[[Any, Safe], SentCommands] | None,
        sent: Any,
        start: Start,
        entry: "Entry | None" = None,
    ) -> None:
        super().__init__(settings.policy or RECOMMENDED, awaits=start.awaits)
        self.time, self.reports = start.time, start.reports if entry is None else entry.number
        self.settings = settings
        self.sent = sent
        self.raised: Exception  # the exception to raise in the end
        self.is_unexecuted = False  # what the last attempt sent, and no earlier one may have been executed
        self._describe = cast("Callable[[Any, Safe], SentCommands]", describe)  # None where `commands` is another one
        self._commands: SentCommands | None = None
        self.entry = entry

    @property
    def commands(self) -> SentCommands:
        if self._commands is None:
            self._commands = self._describe(self.sent, self.settings.safe)
        return self._commands

    def count(self) -> None:
        """Count the first attempt in the budget; Throttled, with a report, if the budget refuses it."""
        self.begin(lambda: self.commands.operation, None)

    def find_limit(self) -> float | None:
        """Return the seconds that the next attempt may take, None for no limit.

        They are the policy's attempt timeout, and those for which the server may block the command.
        """
        limit = self.settings.limit if self.run is None else self.run.attempt_limit()
        # What is sent is a command, the request of a pipeline, which may hold one, or a list of commands.
        command = getattr(self.sent, "command", None if isinstance(self.sent, list) else self.sent)
        if limit is None or command is None:
            return limit
        blocked = blocking_time(command)
        return None if blocked is None else limit + blocked

    def failed(self, error: Exception) -> "Grant | None":
        """Return the grant of the next step, None to give up; its verdict decides."""
        self.raised = error
        commands = self.commands
        proven = verdict_of(error, commands)
        verdict = self.find_verdict(error, proven)
        return self.follow(verdict, error, commands, by_word=is_only_of_user(verdict, proven))

    def go_on(self) -> None:
        self.is_unexecuted = False

    def returned(self, value: object) -> "Grant | None":
        """Return the grant of another attempt after a value that `on_result` refuses, None to return the value.

        An exception of `on_result` is ignored if there are errors among the responses of a pipeline.
        """
        if not self.policy.checks_values:
            self.succeeded()
            return None
        if self.entry is not None:
            self.entry.done()
        return self.judge_value(value, self.commands)

    def cut_off(self, error: BaseException) -> None:
        """Attach a report to `error`, a cancellation or interrupt under way, unless a repeat is harmless."""
        self.is_unexecuted = phase_of(error) is Phase.BEFORE and (self.run is None or not self.run.in_doubt)
        self._leave_in_doubt(error, self.commands)

    def end(self) -> None:
        """Count the end, also of a wait that was cut off; what was certainly not executed leaves the ledger."""
        if self.is_unexecuted:
            self.take_back()
        if hasattr(self, "raised"):
            del self.raised  # it and the frame of the loop would keep each other alive
        super().end()

    def find_verdict(self, error: Exception, verdict: Verdict) -> Verdict:
        """Return the policy's verdict on `error`, which overrules `verdict`, the one by what was sent.

        `verdict` stays for a conflict, for an attempt timeout, for what a signal handler raised, and under the
        service's own policy. If it is NOT_EXECUTED and the policy calls the error transient, the result is
        NOT_EXECUTED.
        """
        if self.settings.tables or verdict.kind is Kind.CONFLICT or type(error) is AttemptTimeout:
            return verdict
        if verdict.kind is Kind.PERMANENT and is_interrupt(error):
            return verdict
        return with_proof(self.policy.verdict_of_error(error), verdict)

    def follow(
        self, verdict: Verdict, error: Exception, commands: SentCommands, *, by_word: bool = False
    ) -> "Grant | None":
        """Return the grant after `verdict` on the `error` of `commands`, None to give up.

        With `by_word`, only the user calls the failure NOT_EXECUTED.
        """
        run = self.begin_run(commands.operation, None)
        text = hide_arguments(text_of(error))[:_LONGEST_TEXT]
        if commands.scripted and verdict.kind is Kind.TRANSIENT:
            run.in_doubt = True  # whatever a script answers, it may have written before
        if verdict.kind is Kind.PERMANENT and is_interrupt(error):
            self._leave_in_doubt(error, commands)
        self.is_unexecuted = not run.in_doubt and is_refused(verdict, error, commands)
        lowered = text.lower()
        try:
            return run.after(
                DetailedFailure(
                    verdict,
                    error,
                    text=text,
                    unsafe=self._find_reason(commands),
                    maybe_done=commands.scripted or any(part in lowered for part in commands.texts),
                    vouched=by_word or (commands.vouched and verdict.kind is not Kind.NOT_EXECUTED),
                )
            )
        except Exception as broken:
            self._leave_in_doubt(broken, commands, verdict_of(error, commands))
            raise

    def judge_value(self, value: object, commands: SentCommands) -> "Grant | None":
        """Return the grant after `on_result` has judged a value, None if it accepts the value or the run gives up."""
        policy = self.policy
        try:
            verdict = policy.verdict_of_failed_value(value) if _has_errors(value) else policy.verdict_of_value(value)
            if verdict is None or verdict.kind is Kind.PERMANENT:
                self.succeeded()
                return None
            name, text = refusal_of(value)
            vouched = commands.vouched or verdict.kind is Kind.NOT_EXECUTED
            unsafe = self._find_reason(commands)
            run = self.begin_run(commands.operation, None)
            return run.after(DetailedFailure(verdict, name=name, text=text, unsafe=unsafe, vouched=vouched))
        except Exception as broken:
            self._leave_in_doubt(broken, commands, TRANSIENT)
            raise

    def _leave_in_doubt(self, error: BaseException, commands: SentCommands, verdict: Verdict | None = None) -> None:
        """Attach a report to `error`, of the user's code or a cancellation, unless a repeat is harmless.

        It is harmless, too, if nothing was executed, by the `verdict` or without one by the error's phase.
        """
        unsafe = self._find_reason(commands)
        is_sent = phase_of(error) is not Phase.BEFORE if verdict is None else verdict.kind is not Kind.NOT_EXECUTED
        if is_sent and unsafe is not None:
            run = self.begin_run(commands.operation, None)
            leave_in_doubt(error, run.operation, unsafe, run.runtime, run.started, number=run.attempt)

    def _find_reason(self, commands: SentCommands) -> str | None:
        """Return why the commands are not repeated, with the cure if the policy lets it work; None if they may be."""
        permitted = self.policy.repeatable is not False
        if commands.repeatable:
            return None if permitted else f"{commands.operation} {FORBIDDEN}"
        why = commands.unsafe or Reason.UNSAFE.value
        return f"{why}{commands.cure}" if commands.unsafe and permitted else why


def _has_errors(value: object) -> bool:
    return isinstance(value, list) and any(isinstance(each, Exception) for each in cast("list[object]", value))
