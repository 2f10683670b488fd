"""`Spending`: the part of one run in its retry budget, and `Throttled`, the error of a refused first attempt."""

from forbear.core.verdict import NOT_EXECUTED
from forbear.run.budget import Budget, refuse_per_host
from forbear.run.switch import ever_off, is_off

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Protocol

    from forbear.core.verdict import Verdict
    from forbear.run.plan import RetryPlan
    from forbear.run.protocols import RunState
    from forbear.run.runtime import Runtime

    class SpendingRun(RunState, Protocol):
        """The protocol of a run that spends from a budget, if it has one."""

        spending: "Spending | None"

        def refuse(self, error: Exception) -> None: ...
        def succeeded(self) -> None: ...


REFUSED = "the retry budget refused the first attempt"


class Throttled(Exception):
    """The budget refused the first attempt, so nothing was sent: the service refuses too many requests.

    It has a report with the reason BUDGET.

    >>> forbear.Throttled("the budget refused it").verdict.kind.value
    'not executed'
    """

    verdict: "Verdict" = NOT_EXECUTED
    """The verdict on the attempt: it was not executed."""


class Spending:
    """The part of one run in `budget`: the attempt under way, and the cost of the last retry, in micro-tokens.

    Report the first attempt (`begin`), each failure (`failed`), each request to retry (`take`) and the success
    (`succeeded`). `end` is for an attempt that was cancelled. Without it, the attempt ends when this object is dropped.
    Raises TypeError for a budget per host, which has none of its own counters.

    >>> from forbear.budgets import Budget, TokenBucket
    >>> from forbear.verdicts import TRANSIENT
    >>> policy = forbear.retry(OSError, budget=Budget(TokenBucket(capacity=1)))
    >>> spending, runtime = Spending(policy.budget), current_runtime()
    >>> admit(spending, runtime, lambda: Run(policy, "load", runtime, runtime.monotonic()))
    >>> spending.take(TRANSIENT), spending.take(TRANSIENT)
    (True, False)
    """

    __slots__ = ("_active", "_cost", "budget", "refused")

    def __init__(self, budget: Budget) -> None:
        self.budget = budget
        self.refused = False
        self._cost = 0
        self._active = False
        refuse_per_host(budget)

    def begin(self, u: float) -> bool:
        """Count the first attempt and return whether it may be sent; `u` is a random number, uniform in [0, 1)."""
        budget = self.budget
        if budget._admit is not None and not budget._call(budget._admit, u):
            self.refused = True
            return False
        self._active = budget._release is not None
        return True

    def admits(self, runtime: "Runtime") -> bool:
        """Count the first attempt and return whether it may be sent; while retries are off, count nothing."""
        budget = self.budget
        if (budget._admit is None and budget._release is None) or (ever_off[0] and is_off()):
            return True
        return self.begin(runtime.random())

    def failed(self, verdict: "Verdict", error: Exception | None) -> "Verdict":
        """Count the end of an attempt, and its failure with `verdict`, which is returned.

        It gets `timed_out` if `error` is a timeout: if its class, or a base of it, has "Timeout" in its name.
        """
        if error is not None and any("Timeout" in kind.__name__ for kind in type(error).__mro__):
            verdict = verdict.replace(timed_out=True)
        self.end()
        if self.budget._failed is not None:
            self.budget._call(self.budget._failed, verdict)
        return verdict

    def take(self, verdict: "Verdict", delay: float = 0.0) -> bool:
        """Count a request to retry after `verdict` and `delay` seconds; return whether the budget grants the retry."""
        if self.budget.is_custom:
            return self.budget.take()
        cost = self.budget._call(self.budget._counts.take, verdict)
        if cost is None:
            return False
        self._cost, self._active = cost, self.budget._release is not None
        if self.budget._wait is not None:
            self.budget._call(self.budget._wait, delay)
        return True

    def succeeded(self, *, retried: bool) -> None:
        """Count the end of an attempt and its success; `retried` says whether it took more than one attempt."""
        self.end()
        if self.budget.is_custom:
            self.budget.put(retried=retried)
        else:
            self.budget._call(self.budget._counts.succeeded, self._cost)
            self._cost = 0  # a transfer goes on with this object

    def end(self) -> None:
        """Count the end of the attempt under way, or of the retry that waits; do nothing if there is none."""
        if self._active:
            self._active = False
            self.budget._call(self.budget._release, self._cost)

    def __del__(self) -> None:
        self.end()


def begin(run: "SpendingRun") -> None:
    """Raise Throttled, with a report, if the budget of `run` does not admit the first attempt."""
    if run.spending is not None:
        admit(run.spending, run.runtime, lambda: run)


def admit(spending: Spending, runtime: "Runtime", run: "Callable[[], SpendingRun]") -> None:
    """Count a first attempt. If the budget does not admit it, raise Throttled, with a report by the run of `run()`.

    The clients call it before they send a request. They need no run before the first failure. Example: see `Spending`.
    """
    if spending.admits(runtime):
        return
    try:
        _throttled()
    except Throttled as error:
        run().refuse(error)
        raise


def succeeded(run: "SpendingRun | None", plan: "RetryPlan", spending: Spending | None = None) -> None:
    """Count a success in the budget, and notify the listeners if it took more than one attempt.

    `run` is None if no attempt had failed: then only `spending` counts it, or without one the budget of `plan`, if any.

    >>> from forbear.budgets import Budget, TokenBucket
    >>> policy = forbear.retry(OSError, budget=Budget(TokenBucket(capacity=1, deposit=1)))
    >>> policy.budget.take(), policy.budget.take()
    (True, False)
    >>> count_success(None, policy)
    >>> policy.budget.take()
    True
    """
    if run is not None:
        run.succeeded()
    elif spending is not None:
        spending.succeeded(retried=False)
    elif plan.budget is not None:
        plan.budget.put(retried=False)


def _throttled(*_: "Any", **__: "Any") -> "Any":
    """Raise Throttled, in place of the first attempt."""
    raise Throttled(f"{REFUSED}, because the service refuses too many requests; nothing was sent")
