"""Send a command as often as its policy allows, sync and asyncio; `CommandRun` is the state of one run."""

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any, TypeVar, cast

from forbear.core.decide import Reason
from forbear.core.report import reports_made, text_of
from forbear.core.verdict import NOT_EXECUTED, TRANSIENT, Kind, Verdict
from forbear.exchange.call import FORBIDDEN, is_only_of_user, with_proof
from forbear.exchange.interrupt import is_interrupt
from forbear.exchange.redis.phase import Phase, phase_of
from forbear.exchange.redis.settings import RedisSettings
from forbear.exchange.redis.verdicts import verdict_of
from forbear.exchange.redis.work import SUBSCRIPTION, Work
from forbear.policy import Policy
from forbear.run.doubt import leave_in_doubt
from forbear.run.endings import refusal_of
from forbear.run.failure import DetailedFailure
from forbear.run.grant import Grant
from forbear.run.runtime import AttemptTimeout, Runtime, current_runtime
from forbear.run.spending import Spending, admit
from forbear.run.state import Run
from forbear.services.redis.vouch import Safe

S = TypeVar("S")
T = TypeVar("T")

_COMMAND, _CAUSED = "Command # ", ") of pipeline caused error: "
"""The texts around the command that both libraries quote in errors of pipelines; its arguments may be secrets."""

_LONGEST_NAME = 100
_LONGEST_TEXT = 4096
_NONE: Mapping[str, Any] = {}


def send(
    settings: RedisSettings,
    describe: Callable[[S, Safe], Work],
    sent: S,
    attempt: Callable[..., T],
    args: tuple[Any, ...] = (),
    options: Mapping[str, Any] = _NONE,
    finish: Callable[[], T] | None = None,
) -> T:
    """Call `attempt(*args, **options)` as often as the policy allows and return what it returns; without a policy once.

    `finish` is called after each attempt that raises nothing; what it returns is then the value, and what it raises is
    raised.

    `describe(sent, safe)` returns the description of what is sent; the user vouches for the commands in `safe`. It is
    called only after a failure, or if the policy judges values. The arguments of the attempt are separate parameters,
    because making a partial for each command would cost time.
    """
    policy = settings.policy
    if policy is None:
        value = attempt(*args, **options)
        return value if finish is None else finish()
    runtime = current_runtime()
    started, reports = runtime.monotonic(), reports_made[0]
    run = spending = None  # nearly every command ends without a state
    if policy.budget is not None:
        spending = Spending(policy.budget)
        refused = partial(_run_of, settings, policy, describe, sent, runtime, started, reports, spending)
        admit(spending, runtime, refused)
    try:
        while True:
            try:
                value = attempt(*args, **options)
            except Exception as error:
                run = run or _run_of(settings, policy, describe, sent, runtime, started, reports, spending)
                grant = run.failed(error)
                if grant is None or not grant.ask():
                    raise
            except BaseException as interrupt:
                run = run or _run_of(settings, policy, describe, sent, runtime, started, reports, spending)
                run.cut_off(interrupt)
                raise
            else:
                if finish is not None:
                    value = finish()
                if run is None and not policy.checks_values:
                    if spending is not None:
                        spending.succeeded(retried=False)
                    return value
                run = run or _run_of(settings, policy, describe, sent, runtime, started, reports, spending)
                grant = run.returned(value)
                if grant is None or not grant.ask():
                    return value
            grant.sleep()
    except BaseException:
        if spending is not None:
            spending.end()
        raise


async def asend(
    settings: RedisSettings,
    describe: Callable[[S, Safe], Work],
    sent: S,
    attempt: Callable[..., Awaitable[T]],
    args: tuple[Any, ...] = (),
    options: Mapping[str, Any] = _NONE,
    blocked_for: Callable[[S], float | None] = lambda _: 0.0,
    finish: Callable[[], Awaitable[T]] | None = None,
) -> T:
    """The asyncio form of `send`; each attempt is limited by the attempt timeout, if the policy has one.

    `finish` is not limited.

    `blocked_for(sent)` returns the seconds that the server may block the command, which are added to the attempt
    timeout; None for no limit.
    """
    policy = settings.policy
    if policy is None:
        value = await attempt(*args, **options)
        return value if finish is None else await finish()
    runtime = current_runtime()
    started, reports = runtime.monotonic(), reports_made[0]
    run = spending = None
    if policy.budget is not None:
        spending = Spending(policy.budget)
        refused = partial(_run_of, settings, policy, describe, sent, runtime, started, reports, spending, awaits=True)
        admit(spending, runtime, refused)
    try:
        while True:
            try:
                limit = settings.limit if run is None else run.attempt_limit()
                blocked = None if limit is None else blocked_for(sent)
                if limit is None or blocked is None:
                    value = await attempt(*args, **options)
                else:
                    async with runtime.within(limit + blocked):
                        value = await attempt(*args, **options)
            except Exception as error:
                run = run or _run_of(settings, policy, describe, sent, runtime, started, reports, spending, awaits=True)
                grant = run.failed(error)
                if grant is None or not await grant.aask():
                    raise
            except BaseException as interrupt:  # a cancellation, too
                run = run or _run_of(settings, policy, describe, sent, runtime, started, reports, spending, awaits=True)
                run.cut_off(interrupt)
                raise
            else:
                if finish is not None:
                    value = await finish()
                if run is None and not policy.checks_values:
                    if spending is not None:
                        spending.succeeded(retried=False)
                    return value
                run = run or _run_of(settings, policy, describe, sent, runtime, started, reports, spending, awaits=True)
                grant = run.returned(value)
                if grant is None or not await grant.aask():
                    return value
            await grant.asleep()
    except BaseException:
        if spending is not None:
            spending.end()
        raise


def _run_of(
    settings: RedisSettings,
    policy: Policy,
    describe: Callable[[S, Safe], Work],
    sent: S,
    *begun: Any,
    awaits: bool = False,
) -> "CommandRun":
    """Return the run of what is sent; `begun` are the runtime, the time, the number of reports and the spending."""
    runtime, started, reports, spending = begun
    work = describe(sent, settings.safe)
    return CommandRun(settings, policy, work, runtime, started, reports, awaits=awaits, spending=spending)


def listen(settings: RedisSettings, attempt: Callable[[], T]) -> T:
    """Call `attempt`, which subscribes or waits for a message, as often as the policy allows; return its value.

    Time counts from the first failure. The libraries connect and subscribe again when a connection breaks, and then
    still raise the error. Messages that were published in the meantime are lost, as always with Redis. A budget does
    not count the first attempt, because waiting for messages is no load.
    """
    policy, run = settings.policy, None
    while True:
        try:
            value = attempt()
        except Exception as error:
            if policy is None:
                raise
            run = run or CommandRun(settings, policy, SUBSCRIPTION)
            grant = run.failed(error)
            if grant is None or not grant.ask():
                raise
        else:
            if run is not None:
                run.succeeded()
            return value
        grant.sleep()


async def alisten(settings: RedisSettings, attempt: Callable[[], Awaitable[T]]) -> T:
    """The asyncio form of `listen`."""
    policy, run = settings.policy, None
    while True:
        try:
            value = await attempt()
        except Exception as error:
            if policy is None:
                raise
            run = run or CommandRun(settings, policy, SUBSCRIPTION, awaits=True)
            grant = run.failed(error)
            if grant is None or not await grant.aask():
                raise
        else:
            if run is not None:
                run.succeeded()
            return value
        await grant.asleep()


class CommandRun(Run):
    """One run of a command, or of several sent together, under a policy.

    The loops make it after a failure, or to let the policy see a value. `started` is the time before the first attempt
    and `reports` the number of reports made by then (default: now). `awaits` is as for `Run`.
    `spending` is the run's part in the budget, if it has one already.
    """

    __slots__ = ("_policy", "_settings", "_work")

    def __init__(
        self,
        settings: RedisSettings,
        policy: Policy,
        work: Work,
        runtime: Runtime | None = None,
        started: float | None = None,
        reports: int | None = None,
        *,
        awaits: bool = False,
        spending: Spending | None = None,
    ) -> None:
        runtime = current_runtime() if runtime is None else runtime
        started = runtime.monotonic() if started is None else started
        name = policy.name or work.operation
        super().__init__(policy, name, runtime, started, reports, awaits=awaits, spending=spending)
        self._policy = policy
        self._settings = settings
        self._work = work

    def failed(self, error: Exception, call: object = None) -> Grant | None:
        """Return the retry that follows, None to raise `error`; its verdict decides."""
        proven = verdict_of(error, self._work)
        verdict = self.policy_verdict(error, proven)
        return self.failed_as(verdict, error, by_word=is_only_of_user(verdict, proven))

    def policy_verdict(self, error: Exception, verdict: Verdict) -> Verdict:
        """Return the policy's verdict on `error`, which overrules `verdict`, the one by what was sent.

        `verdict` stays for a conflict, for an attempt timeout, for what a signal handler raised, and under the
        service's own policy. If it is NOT_EXECUTED and the policy calls the error transient, the result is
        NOT_EXECUTED.
        """
        if self._settings.tables or verdict.kind is Kind.CONFLICT or type(error) is AttemptTimeout:
            return verdict
        if verdict.kind is Kind.PERMANENT and is_interrupt(error):
            return verdict
        try:
            return with_proof(self.plan.verdict_of_error(error), verdict)
        except Exception as broken:
            self._leave_in_doubt(broken, verdict, self._work)
            raise

    def failed_as(
        self, verdict: Verdict, error: Exception, work: Work | None = None, *, by_word: bool = False
    ) -> Grant | None:
        """Return the retry that follows `error` with its `verdict`, None to give up.

        `work` replaces the description of what the run sends, for this failure only. `by_word` says that only the user
        calls the failure NOT_EXECUTED.
        """
        work = work or self._work
        text = without_arguments(text_of(error))[:_LONGEST_TEXT]
        if work.scripted and verdict.kind is Kind.TRANSIENT:
            self.in_doubt = True  # whatever a script answers, it may have written before
        if verdict.kind is Kind.PERMANENT and is_interrupt(error):
            self.cut_off(error, work)
        try:
            return self.after(
                DetailedFailure(
                    verdict,
                    error,
                    text=text,
                    unsafe=self._unsafe(work),
                    maybe_done=work.scripted or work.is_maybe_done(text),
                    vouched=by_word or (work.vouched and verdict.kind is not Kind.NOT_EXECUTED),
                )
            )
        except Exception as broken:
            self._leave_in_doubt(broken, verdict_of(error, work), work)
            raise

    def cut_off(self, error: BaseException, work: Work | None = None) -> None:
        """Attach a report to `error`, a cancellation or interrupt under way, unless repeating the work is harmless.

        `work` is as for `failed_as`. The work may have been executed, unless the error arose before it was sent.
        """
        sent = NOT_EXECUTED if phase_of(error) is Phase.BEFORE else TRANSIENT
        self._leave_in_doubt(error, sent, work or self._work)

    def returned(self, value: object) -> Grant | None:
        """Return the retry after a value that the policy's `on_result` refuses, None to return the value.

        None is for an accepted value, which counts as a success, and for the last value of a run that gives up. If
        there are errors among the responses of a pipeline, only a Verdict of `on_result` counts.
        """
        try:
            return self._judged(value)
        except Exception as broken:
            self._leave_in_doubt(broken, TRANSIENT, self._work)
            raise

    def _judged(self, value: object) -> Grant | None:
        policy = self._policy
        verdict = policy.verdict_of_failed_value(value) if _has_errors(value) else policy.verdict_of_value(value)
        if verdict is None or verdict.kind is Kind.PERMANENT:
            self.succeeded()
            return None
        name, text = refusal_of(value)
        vouched = self._work.vouched or verdict.kind is Kind.NOT_EXECUTED
        return self.after(
            DetailedFailure(verdict, name=name, text=text, unsafe=self._unsafe(self._work), vouched=vouched)
        )

    def _leave_in_doubt(self, error: BaseException, verdict: Verdict, work: Work) -> None:
        """Attach a report to `error`, which the user's own code raised, unless repeating the work is harmless.

        `verdict` is the one by what was sent.
        """
        unsafe = self._unsafe(work)
        if verdict.kind is not Kind.NOT_EXECUTED and unsafe is not None:
            leave_in_doubt(error, self.operation, unsafe, self.runtime, self.started, number=self.attempt)

    def _unsafe(self, work: Work) -> str | None:
        """Return why the work is not repeated, with the cure if the policy lets it work; None if it may be repeated."""
        if work.repeatable:
            return None if self._settings.may_repeat else f"{work.operation} {FORBIDDEN}"
        why = work.unsafe or Reason.UNSAFE.value
        return f"{why}{work.cure}" if work.unsafe and self._settings.may_repeat else why


def _has_errors(value: object) -> bool:
    return isinstance(value, list) and any(isinstance(each, Exception) for each in cast("list[object]", value))


def without_arguments(text: str) -> str:
    """Return the text of an error without the arguments of the command that the libraries quote in errors of pipelines.

    Of the quoted command the first word stays, up to 100 characters. Any other text is returned as it is. It takes
    linear time.
    """
    start, end = text.find(_COMMAND), text.rfind(_CAUSED)
    opened = text.find("(", start) + 1
    if start < 0 or not 0 < opened <= end:
        return text
    name = text[opened : min(end, opened + _LONGEST_NAME)].split(maxsplit=1)[:1]
    return text[:opened] + "".join(name) + text[end:]
