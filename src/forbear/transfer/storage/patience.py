"""Patience: how long one transfer goes on after failures; every bit of progress starts it anew. It sends nothing."""

from forbear.core.report import text_of
from forbear.core.verdict import Verdict
from forbear.policy import Policy
from forbear.run.runtime import current
from forbear.run.state import Run, granted


class Patience:
    """The patience of a policy with what is asked for as often as it takes: data from a byte on, or the state of it."""

    def __init__(self, policy: Policy, operation: str) -> None:
        self._policy = policy
        self._operation = operation
        self._run: Run | None = None

    def progressed(self) -> None:
        """Something came across: what fails next is the first failure again, and the policy's budget has earned."""
        run, self._run = self._run, None
        if run is not None:
            run.succeeded()
        elif self._policy.budget is not None:
            self._policy.budget.put(retried=False)

    async def after(self, error: Exception, verdict: Verdict) -> None:
        """Wait for as long as the policy says, then return; raises `error`, with a report, if it allows no more."""
        runtime = current.get()
        if self._run is None:
            self._run = Run(self._policy, self._operation, runtime, runtime.monotonic(), awaits=True)
        name, text = type(error).__qualname__, text_of(error)
        delay = await granted(self._run.after(verdict, error, name, text, repeatable=True))
        if delay is None:
            raise error
        await runtime.asleep(delay)
