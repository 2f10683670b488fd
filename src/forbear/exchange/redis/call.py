"""Call: the state of one command (or of several sent together) on its way through as many attempts as it takes."""

from forbear.core.report import Report, text_of
from forbear.core.verdict import Kind, Verdict
from forbear.exchange.redis.settings import Settings
from forbear.exchange.redis.verdicts import verdict_of
from forbear.exchange.redis.work import Work
from forbear.policy import Policy
from forbear.run.runtime import AttemptTimeout, Runtime, current_runtime
from forbear.run.state import Run

_COMMAND, _CAUSED = "Command # ", ") of pipeline caused error: "
"""Matches the command that both libraries quote in errors of pipelines: its arguments may be secrets."""

_LONGEST_NAME = 100
_LONGEST_TEXT = 4096


class Call:
    """One run under a policy; made when an attempt has failed, or has to be told to a budget.

    `started` is the time before the first attempt and `reports` the number of reports made by then (default: now).
    """

    __slots__ = ("_policy", "_run", "_settings", "_work", "runtime")

    def __init__(
        self,
        settings: Settings,
        policy: Policy,
        work: Work,
        runtime: Runtime | None = None,
        started: float | None = None,
        reports: int | None = None,
    ) -> None:
        self.runtime: Runtime = current_runtime() if runtime is None else runtime
        self._settings = settings
        self._policy = policy
        self._work = work
        started = self.runtime.monotonic() if started is None else started
        self._run = Run(policy, policy.name or work.operation, self.runtime, started, reports)

    @property
    def report(self) -> Report | None:
        """The report, once the call was given up."""
        return self._run.report

    def failed(self, error: Exception) -> float | None:
        """Seconds to wait before the next attempt, None to let `error` out."""
        return self.after(self.judged(error, verdict_of(error, self._work)), error)

    def judged(self, error: Exception, verdict: Verdict) -> Verdict:
        """What an error means; a policy for errors in general has the last word on all but conflicts."""
        if self._settings.tables or verdict.kind is Kind.CONFLICT or type(error) is AttemptTimeout:
            return verdict
        asked = self._policy.judge_error(error)
        if asked.kind is Kind.TRANSIENT and verdict.kind is Kind.NOT_EXECUTED:
            return verdict.replace(retry_after=asked.retry_after, delay=asked.delay, throttled=asked.throttled)
        return asked

    def after(self, verdict: Verdict, error: Exception, work: Work | None = None) -> float | None:
        """Seconds to wait after `error`, which means `verdict` for the work, or for other `work` that it stands for."""
        work = work or self._work
        text = without_arguments(text_of(error))[:_LONGEST_TEXT]
        return self._run.after(
            verdict,
            error,
            type(error).__qualname__,
            text,
            repeatable=work.repeatable and self._settings.may_repeat,
            maybe_done=work.is_maybe_done(text),
            unsafe=work.unsafe or None,
        )

    def succeeded(self) -> None:
        """Tell the budget and the listener of a success."""
        self._run.succeeded()

    def returned(self, value: object) -> float | None:
        """Seconds to wait after a reply that the policy's `on_result` refuses, None to hand it out."""
        verdict = self._policy.judge_value(value)
        if verdict is None:
            self._run.succeeded()
            return None
        kind = type(value).__qualname__
        return self._run.after(
            verdict,
            None,
            kind,
            f"on_result refused a value of type {kind}",
            repeatable=self._work.repeatable and self._settings.may_repeat,
            unsafe=self._work.unsafe or None,
        )

    def attempt_limit(self) -> float | None:
        """Seconds that the attempt which starts now may take, None without an attempt timeout."""
        return self._run.attempt_limit()


def without_arguments(text: str) -> str:
    """Return the text of an error without the arguments of commands that the libraries put into it, in linear time."""
    start, end = text.find(_COMMAND), text.rfind(_CAUSED)
    opened = text.find("(", start) + 1
    if start < 0 or not 0 < opened <= end:
        return text
    name = text[opened : min(end, opened + _LONGEST_NAME)].split(maxsplit=1)[:1]
    return text[:opened] + "".join(name) + text[end:]
