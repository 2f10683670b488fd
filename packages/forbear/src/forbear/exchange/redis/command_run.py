"""`CommandRun`: one run of a command of Redis, or of several sent together, under a policy."""

from typing import cast

from forbear.core.decide import Reason
from forbear.core.report import text_of
from forbear.core.verdict import NOT_EXECUTED, TRANSIENT, Kind, Verdict
from forbear.exchange.call import FORBIDDEN, is_only_of_user, with_proof
from forbear.exchange.interrupt import is_interrupt
from forbear.exchange.redis.descriptions import SentCommands
from forbear.exchange.redis.settings import RedisSettings
from forbear.exchange.redis.verdicts import Phase, phase_of, verdict_of
from forbear.policy import Policy
from forbear.run.doubt import leave_in_doubt
from forbear.run.endings import refusal_of
from forbear.run.failure import DetailedFailure
from forbear.run.grant import Grant
from forbear.run.runtime import AttemptTimeout, Runtime, current_runtime
from forbear.run.spending import Spending
from forbear.run.state import Run
from forbear.services.redis.errors import response_of

_COMMAND, _CAUSED = "Command # ", ") of pipeline caused error: "
"""The texts around the command that both libraries quote in errors of pipelines; its arguments may be secrets."""

_LONGEST_NAME = 100
_LONGEST_TEXT = 4096


class CommandRun(Run):
    """One run of a command, or of several sent together, under a policy.

    The loops make it after a failure, or to let the policy see a value. `started` is the time before the first attempt
    and `reports` the number of reports made by then (default: now). `awaits` is as for `Run`.
    `spending` is the run's part in the budget, if it has one already.
    """

    __slots__ = ("is_unexecuted", "_policy", "_settings", "_work")

    def __init__(
        self,
        settings: RedisSettings,
        policy: Policy,
        work: SentCommands,
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
        self.is_unexecuted = False  # what the last attempt sent, and no earlier one may have been executed
        self._policy = policy
        self._settings = settings
        self._work = work

    def failed(self, error: Exception, call: object = None) -> Grant | None:
        """Return the retry that follows, None to raise `error`; its verdict decides."""
        proven = verdict_of(error, self._work)
        verdict = self.policy_verdict(error, proven)
        return self.fail_as(verdict, error, by_word=is_only_of_user(verdict, proven))

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

    def fail_as(
        self, verdict: Verdict, error: Exception, work: SentCommands | None = None, *, by_word: bool = False
    ) -> Grant | None:
        """Return the retry that follows `error`, None to give up; `work` is what failed, if that is not all.

        With `by_word`, only the user calls the failure NOT_EXECUTED.
        """
        work = work or self._work
        text = hide_arguments(text_of(error))[:_LONGEST_TEXT]
        if work.scripted and verdict.kind is Kind.TRANSIENT:
            self.in_doubt = True  # whatever a script answers, it may have written before
        if verdict.kind is Kind.PERMANENT and is_interrupt(error):
            self.cut_off(error, work)
        self.is_unexecuted = not self.in_doubt and _is_refused(verdict, error, work)
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

    def cut_off(self, error: BaseException, work: SentCommands | None = None) -> None:
        """Attach a report to `error`, a cancellation or interrupt under way, unless repeating the work is harmless."""
        sent = NOT_EXECUTED if phase_of(error) is Phase.BEFORE else TRANSIENT
        self.is_unexecuted = sent is NOT_EXECUTED and not self.in_doubt
        self._leave_in_doubt(error, sent, work or self._work)

    def returned(self, value: object, call: object = None) -> Grant | None:
        """Return the retry after a value that `on_result` refuses; None to return the value, accepted or the last one.

        An exception of `on_result` is ignored if there are errors among the responses of a pipeline.
        """
        try:
            return self._judge_value(value)
        except Exception as broken:
            self._leave_in_doubt(broken, TRANSIENT, self._work)
            raise

    def _judge_value(self, value: object) -> Grant | None:
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

    def _leave_in_doubt(self, error: BaseException, verdict: Verdict, work: SentCommands) -> None:
        """Attach a report to `error`, which the user's own code raised, unless repeating the work is harmless."""
        unsafe = self._unsafe(work)
        if verdict.kind is not Kind.NOT_EXECUTED and unsafe is not None:
            leave_in_doubt(error, self.operation, unsafe, self.runtime, self.started, number=self.attempt)

    def _unsafe(self, work: SentCommands) -> str | None:
        """Return why the work is not repeated, with the cure if the policy lets it work; None if it may be repeated."""
        if work.repeatable:
            return None if self._settings.may_repeat else f"{work.operation} {FORBIDDEN}"
        why = work.unsafe or Reason.UNSAFE.value
        return f"{why}{work.cure}" if work.unsafe and self._settings.may_repeat else why


def _is_refused(verdict: Verdict, error: Exception, work: SentCommands) -> bool:
    """Return whether nothing of the work was executed: that is proven, or the server has refused its one command."""
    if verdict.kind in (Kind.NOT_EXECUTED, Kind.CONFLICT):
        return True
    is_one = work.atomic and not work.scripted and len(work.nodes) <= 1
    return is_one and verdict.kind is Kind.PERMANENT and response_of(error) is not None


def _has_errors(value: object) -> bool:
    return isinstance(value, list) and any(isinstance(each, Exception) for each in cast("list[object]", value))


def hide_arguments(text: str) -> str:
    """Return the text of an error without the command's arguments, which the libraries quote; linear in its length."""
    start, end = text.find(_COMMAND), text.rfind(_CAUSED)
    opened = text.find("(", start) + 1
    if start < 0 or not 0 < opened <= end:
        return text
    name = text[opened : min(end, opened + _LONGEST_NAME)].split(maxsplit=1)[:1]
    return text[:opened] + "".join(name) + text[end:]
