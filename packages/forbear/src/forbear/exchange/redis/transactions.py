"""`transaction(func, *keys)` of the clients, sync and asyncio: repeat the whole cycle from WATCH on.

A conflict runs the cycle again, under the backoff and the limits of the policy. So does a failure before anything was
executed, or where all of the cycle may be executed twice. Otherwise the error is raised once the outcome of EXEC is
unknown: the change may have been applied.
"""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import replace
from inspect import isawaitable
from typing import Any, Self

from forbear.core.verdict import PERMANENT, Kind, Verdict
from forbear.exchange.call import is_only_of_user
from forbear.exchange.redis.command_run import CommandRun
from forbear.exchange.redis.settings import RedisSettings
from forbear.exchange.redis.verdicts import verdict_of
from forbear.exchange.redis.work import Work, judge_together
from forbear.policy import Policy
from forbear.run.grant import Grant
from forbear.run.spending import begin
from forbear.services.redis.table import CommandJudgement
from forbear.services.redis.vouch import Safe
from forbear.services.redis.words import Command

_TRANSACTION = Work("transaction", repeatable=False, unsafe="")


class TransactionCycle:
    """One cycle of a transaction that forbear repeats, and what it has sent so far.

    `at_once` lists the commands that were not queued: WATCH, and those under it. `queued` returns the description of
    what EXEC executes, None before EXEC is sent. `failed` is true once something that was sent has failed; otherwise an
    error comes from the caller's function.
    """

    __slots__ = ("at_once", "failed", "queued")

    def __init__(self) -> None:
        self.at_once: list[Command] = []
        self.queued: Callable[[Safe], Work] | None = None
        self.failed = False

    def judge_at_once(self, safe: Safe) -> tuple[CommandJudgement, ...]:
        """Return the judgements on the commands in `at_once`; the user vouches for those in `safe`."""
        return judge_together(self.at_once, safe, at_once=True)


@contextmanager
def recording_failure(cycle: TransactionCycle | None) -> Generator[None]:
    """Set `cycle.failed` if the block raises an error, which is raised on; do nothing if `cycle` is None."""
    try:
        yield
    except BaseException:
        if cycle is not None:
            cycle.failed = True
        raise


def transact(
    settings: RedisSettings,
    policy: Policy,
    pipe: Any,
    func: Callable[[Any], Any],
    watches: tuple[Any, ...],
    **options: Any,
) -> Any:
    """Run the cycle (WATCH the keys in `watches`, `func(pipe)`, EXEC) until it succeeds or the policy gives up.

    Return what EXEC returned; with `value_from_callable` what `func` returned. `pipe` must send everything once.
    `options` are those of `TransactionRun`.
    """
    with TransactionRun(settings, policy, **options) as run:
        while True:
            run.cycle = pipe.state.cycle = TransactionCycle()
            try:
                if watches:
                    pipe.watch(*watches)
                value = func(pipe)
                executed = pipe.execute()
            except Exception as error:
                grant = run.failed(error)
                if grant is None or not grant.ask():
                    raise
            except BaseException as interrupt:
                run.cut_off(interrupt)
                raise
            else:
                return run.succeeded(value, executed)
            pipe.reset()
            grant.sleep()


async def atransact(
    settings: RedisSettings,
    policy: Policy,
    pipe: Any,
    func: Callable[[Any], Any],
    watches: tuple[Any, ...],
    **options: Any,
) -> Any:
    """The asyncio form of `transact`; `func` may be async or not."""
    with TransactionRun(settings, policy, awaits=True, **options) as run:
        while True:
            run.cycle = pipe.state.cycle = TransactionCycle()
            try:
                if watches:
                    await pipe.watch(*watches)
                value = func(pipe)
                if isawaitable(value):
                    value = await value
                executed = await pipe.execute()
            except Exception as error:
                grant = run.failed(error)
                if grant is None or not await grant.aask():
                    raise
            except BaseException as interrupt:  # a cancellation, too
                run.cut_off(interrupt)
                raise
            else:
                return run.succeeded(value, executed)
            await pipe.reset()
            await grant.asleep()


class TransactionRun:
    """The state of a transaction's loop: the cycle under way, and the run that counts and limits the cycles.

    With `value_from_callable` the value of the caller's function is returned instead of EXEC's. `watch_delay` (seconds)
    replaces the policy's backoff after a conflict, and `max_tries` its attempts; None and 0 replace nothing.
    `awaits` is as for `Run`. Entering it counts the first cycle in the retry budget, and
    raises Throttled if the budget refuses it.
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
        self.runtime = self._run.runtime
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
        """Return the retry of the cycle, None to raise the error.

        An error of the caller's function itself, without a failed command, is always raised.
        """
        if not self.cycle.failed:
            return self._run.failed_as(PERMANENT, error)  # the caller's function failed by itself
        work, harmless = self._work()
        proven = verdict_of(error, work)
        verdict = self._run.policy_verdict(error, proven)
        by_word = is_only_of_user(verdict, proven)
        # A command that was sent at once has taken effect, whatever comes of EXEC, as a script may have.
        work = replace(work, scripted=work.scripted or not harmless)
        verdict = self._of_cycle(verdict, harmless)
        return self._run.failed_as(verdict, error, work, by_word=by_word and verdict.kind is Kind.NOT_EXECUTED)

    def cut_off(self, error: BaseException) -> None:
        """Attach a report to `error`, which interrupted a command, unless repeating the cycle is harmless."""
        if self.cycle.failed:
            self._run.cut_off(error, self._work()[0])

    def _work(self) -> tuple[Work, bool]:
        """Return what the cycle has sent so far, and whether the commands sent at once may be executed twice.

        Before EXEC, only those can have taken effect.
        """
        at_once = self.cycle.judge_at_once(self._safe)
        queued = _TRANSACTION if self.cycle.queued is None else self.cycle.queued(self._safe)
        harmless = all(judgement.repeatable for judgement in at_once)
        repeatable = harmless and (self.cycle.queued is None or queued.repeatable)
        vouched = queued.vouched or any(judgement.vouched for judgement in at_once)
        return replace(queued, repeatable=repeatable, watched=False, vouched=vouched), harmless

    def _of_cycle(self, verdict: Verdict, harmless: bool) -> Verdict:
        """Turn the verdict on a step into the verdict on the whole cycle, which may be repeated after a conflict.

        CONFLICT becomes NOT_EXECUTED. NOT_EXECUTED becomes TRANSIENT unless the commands sent at once are `harmless`:
        all may be executed twice.
        """
        if verdict.kind is Kind.CONFLICT:
            return verdict.replace(kind=Kind.NOT_EXECUTED, delay=self._delay)
        if verdict.kind is Kind.NOT_EXECUTED and not harmless:
            return verdict.replace(kind=Kind.TRANSIENT)
        return verdict
