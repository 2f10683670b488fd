"""One call that is no HTTP request, through its attempts: an RPC, or a call of Google's clients.

The loop that repeats the call passes the call's judgement after each failure; the safety of the operation decides.
"""

from forbear.core.decide import Reason, Stop
from forbear.core.report import Report, reports_made, text_of
from forbear.core.service import Judgement
from forbear.core.verdict import Kind, Verdict
from forbear.policy import Policy
from forbear.run.runtime import current_runtime
from forbear.run.state import Run, succeeded


class Start:
    """The state recorded before the first attempt; a request that succeeds at once needs no more."""

    __slots__ = ("awaits", "reports", "runtime", "time")

    def __init__(self, *, awaits: bool = False) -> None:
        self.awaits = awaits  # as for `Run`
        self.runtime = runtime = current_runtime()
        self.time = runtime.monotonic()
        self.reports: int = reports_made[0]  # a report made later comes from an inner retry


class RetriedCall:
    """One call through its attempts; `start` is the moment before the first one.

    Report each attempt (`failed` or `succeeded`), and wait for the returned seconds before the next one.
    """

    __slots__ = ("_policy", "_run", "_start")

    def __init__(self, policy: Policy, start: Start) -> None:
        self._policy = policy
        self._start = start
        self._run: Run | None = None

    @property
    def report(self) -> Report | None:
        """The report, once the call was given up."""
        return None if self._run is None else self._run.report

    def failed(
        self,
        error: Exception,
        verdict: Verdict,
        judgement: Judgement,
        code: int | None = None,
        stuck: str | None = None,
    ) -> float | None:
        """Return the seconds to wait before the next attempt, None to raise `error`.

        `judgement` is the safety of the call. `code` is the status of the response, or the number of a gRPC call's
        code; None without a response. `stuck` says why another attempt is impossible, although the operation would
        allow it.
        """
        policy, start = self._policy, self._start
        if self._run is None:
            name = policy.name or judgement.operation or "the call"
            self._run = Run(policy, name, start.runtime, start.time, start.reports, awaits=start.awaits)
        return self._run.after(
            verdict,
            error,
            type(error).__qualname__,
            text_of(error),
            repeatable=judgement.repeatable and (policy.repeatable or policy.service is not None),
            maybe_done=code in judgement.maybe_done,
            blocked=None if stuck is None else Stop(Reason.BODY, stuck),
            unsafe=why_not(judgement, "the call"),
        )

    def succeeded(self) -> None:
        """Notify the policy's listener and the budget that an attempt succeeded."""
        succeeded(self._run, self._policy)

    def left(self, timeout: float | None) -> float | None:
        """Return the seconds left of the caller's own `timeout` for all attempts, None without one."""
        start = self._start
        return None if timeout is None else max(0.0, timeout - (start.runtime.monotonic() - start.time))

    def sleep(self, delay: float) -> None:
        """Wait before the next attempt."""
        self._start.runtime.sleep(delay)

    async def asleep(self, delay: float) -> None:
        """Wait before the next attempt, in async code."""
        await self._start.runtime.asleep(delay)


def with_proof(ruled: Verdict, verdict: Verdict) -> Verdict:
    """Return `ruled`, a policy's verdict; if it is transient, a proof in `verdict` of no execution stays."""
    proven = ruled.kind is Kind.TRANSIENT and verdict.kind is Kind.NOT_EXECUTED
    return ruled.replace(kind=Kind.NOT_EXECUTED) if proven else ruled


def why_not(judgement: Judgement, unknown: str) -> str:
    """Return why an operation may not be executed twice, with the cure; `unknown` names an unknown operation."""
    if judgement.refused is not None:
        return judgement.refused
    name = judgement.operation or unknown
    if judgement.conditions and not judgement.repeatable:
        return f"{name} may have been executed; it may be repeated only with {' or '.join(judgement.conditions)}"
    return f"{name} may have been executed and must not be executed twice"
