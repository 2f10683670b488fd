"""`Spending`: the part of one run in its retry budget, and `Throttled`, the error of a refused first attempt."""

from forbear.core.verdict import NOT_EXECUTED
from forbear.run.budget import Budget
from forbear.run.switch import ever_off, is_off

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from forbear.core.verdict import Verdict
    from forbear.run.state import Run

REFUSED = "the retry budget refused the first attempt"


class Throttled(Exception):
    """The budget refused the first attempt, so nothing was sent: the service refuses too many requests.

    It has a report with the reason BUDGET.
    """

    verdict: "Verdict" = NOT_EXECUTED
    """The verdict on the attempt: it was not executed."""


class Spending:
    """The part of one run in `budget`: the attempt under way, and the cost of the last retry, in micro-tokens.

    Report the first attempt (`begin`), each failure (`failed`), each request to retry (`take`) and the success
    (`succeeded`). An attempt whose end is not reported, as it was cancelled, ends when this object is dropped.
    """

    __slots__ = ("_active", "_cost", "budget", "refused")

    def __init__(self, budget: Budget) -> None:
        self.budget = budget
        self.refused = False
        self._cost = 0
        self._active = False

    def begin(self, u: float) -> bool:
        """Count the first attempt and return whether it may be sent; `u` is a random number, uniform in [0, 1)."""
        budget = self.budget
        if budget._admit is not None and not budget._call(budget._admit, u):
            self.refused = True
            return False
        self._active = budget._release is not None
        return True

    def failed(self, verdict: "Verdict", error: Exception | None) -> "Verdict":
        """Count the end of an attempt, and its failure with `verdict`, which is returned.

        It gets `timed_out` if `error` is a timeout: if its class, or a base of it, has "Timeout" in its name.
        """
        if error is not None and any("Timeout" in kind.__name__ for kind in type(error).__mro__):
            verdict = verdict.replace(timed_out=True)
        self._end()
        if self.budget._failed is not None:
            self.budget._call(self.budget._failed, verdict)
        return verdict

    def take(self, verdict: "Verdict") -> bool:
        """Count a request to retry after `verdict`, and return whether the budget grants the retry."""
        if self.budget._is_custom:
            return self.budget.take()
        cost = self.budget._take(verdict)
        if cost is None:
            return False
        self._cost, self._active = cost, self.budget._release is not None
        return True

    def succeeded(self, *, retried: bool) -> None:
        """Count the end of an attempt and its success; `retried` says whether it took more than one attempt."""
        if self.budget._is_custom:
            self.budget.put(retried=retried)
        else:
            self._end()
            self.budget._succeeded(self._cost)

    def _end(self) -> None:
        if self._active:
            self._active = False
            self.budget._call(self.budget._release, self._cost)

    def __del__(self) -> None:
        self._end()


def gate(run: "Run", function: "Callable[..., Any]") -> "Callable[..., Any]":
    """Return `function` if the budget of `run` admits the first attempt, else a function that raises Throttled.

    While retries are off, nothing is refused or counted.
    """
    spending = run.spending
    if spending is None or (spending.budget._admit is None and spending.budget._release is None):
        return function
    if (ever_off[0] and is_off()) or spending.begin(run.runtime.random()):
        return function
    return _throttled


def begin(run: "Run") -> None:
    """Raise Throttled, with a report, if the budget of `run` does not admit the first attempt: `gate` for blocks."""
    try:
        gate(run, _admitted)()
    except Throttled as error:
        run.failed(error)
        raise


def _admitted() -> None:
    """Do nothing."""


def _throttled(*_: "Any", **__: "Any") -> "Any":
    """Raise Throttled, in place of the first attempt."""
    raise Throttled(f"{REFUSED}, because the service refuses too many requests; nothing was sent")
