"""The state of `transaction(func, *keys)` of the clients, which repeats the whole cycle from WATCH on.

A conflict runs the cycle again, under the backoff and the limits of the policy. So does a failure before anything was
executed, or where all of the cycle may be executed twice. Otherwise the error is raised once the outcome of EXEC is
unknown: the change may have been applied.
"""

from dataclasses import replace
from typing import Any, Self

from forbear.core.verdict import PERMANENT, Kind, Verdict
from forbear.exchange.call import is_only_of_user
from forbear.exchange.redis.command_run import CommandRun
from forbear.exchange.redis.descriptions import SentCommands, judge_together
from forbear.exchange.redis.pipelines import TransactionCycle
from forbear.exchange.redis.settings import RedisSettings
from forbear.exchange.redis.verdicts import verdict_of
from forbear.policy import Policy
from forbear.run.grant import Grant
from forbear.run.spending import begin

_TRANSACTION = SentCommands("transaction", repeatable=False, unsafe="")


class TransactionRun:
    """The state of a transaction's loop: the cycle under way, and the run that counts and limits the cycles.

    With `value_from_callable` the value of the caller's function is returned instead of EXEC's. `watch_delay` (seconds)
    replaces the policy's backoff after a conflict, and `max_tries` its attempts; None and 0 replace nothing.
    `awaits` is as for `Run`. Entering it counts the first cycle in the retry budget, and raises Throttled if the budget
    refuses it.
    """

    def __init__(
        self,
        settings: RedisSettings,
        policy: Policy,
        *,
        value_from_callable: bool = False,
        watch_delay: float | None = None,
        max_tries: int | None = None,
        awaits: bool = False,
    ) -> None:
        self.cycle = TransactionCycle()
        policy = policy.with_attempts(max_tries) if max_tries else policy
        self._safe = settings.safe
        self._run = CommandRun(settings, policy, _TRANSACTION, awaits=awaits)
        self._value_from_callable = value_from_callable
        self._delay = watch_delay or None

    def __enter__(self) -> Self:
        begin(self._run)
        return self

    def __exit__(self, *raised: object) -> None:
        self._run.end()

    def succeeded(self, value: Any, executed: Any) -> Any:
        """Notify the budget and the listener of a success; return the function's value or EXEC's, as chosen."""
        self._run.succeeded()
        return value if self._value_from_callable else executed

    def failed(self, error: Exception) -> Grant | None:
        """Return the retry of the cycle, None to raise the error."""
        if not self.cycle.failed:
            return self._run.fail_as(PERMANENT, error)  # the caller's function failed by itself
        work, harmless = self._work()
        proven = verdict_of(error, work)
        verdict = self._run.policy_verdict(error, proven)
        by_word = is_only_of_user(verdict, proven)
        # A command that was sent at once has taken effect, whatever comes of EXEC, as a script may have.
        work = replace(work, scripted=work.scripted or not harmless)
        verdict = self._verdict_of_cycle(verdict, harmless)
        return self._run.fail_as(verdict, error, work, by_word=by_word and verdict.kind is Kind.NOT_EXECUTED)

    def cut_off(self, error: BaseException) -> None:
        """Attach a report to `error`, which interrupted a command, unless repeating the cycle is harmless."""
        if self.cycle.failed:
            self._run.cut_off(error, self._work()[0])

    def _work(self) -> tuple[SentCommands, bool]:
        """Return what the cycle has sent so far, and whether the commands sent at once may be executed twice.

        Before EXEC, only those can have taken effect.
        """
        at_once = judge_together(self.cycle.at_once, self._safe, at_once=True)
        queued = _TRANSACTION if self.cycle.queued is None else self.cycle.queued.describe(self._safe)
        harmless = all(judgement.repeatable for judgement in at_once)
        repeatable = harmless and (self.cycle.queued is None or queued.repeatable)
        vouched = queued.vouched or any(judgement.vouched for judgement in at_once)
        return replace(queued, repeatable=repeatable, watched=False, vouched=vouched), harmless

    def _verdict_of_cycle(self, verdict: Verdict, harmless: bool) -> Verdict:
        """Turn the verdict on a step into the verdict on the whole cycle, which may be repeated after a conflict.

        CONFLICT becomes NOT_EXECUTED. NOT_EXECUTED becomes TRANSIENT unless the commands sent at once are `harmless`:
        all may be executed twice.
        """
        if verdict.kind is Kind.CONFLICT:
            return verdict.replace(kind=Kind.NOT_EXECUTED, delay=self._delay)
        if verdict.kind is Kind.NOT_EXECUTED and not harmless:
            return verdict.replace(kind=Kind.TRANSIENT)
        return verdict
