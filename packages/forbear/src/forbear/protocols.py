"""Types for annotations: `Backoff`, `On`, the answers of `on`, `BudgetRule` and more; loaded when a user names one."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any, Protocol

from forbear.core.decide import Limits
from forbear.core.events import Event, Failed, Succeeded
from forbear.core.verdict import Verdict
from forbear.run.budget import Budget

Answer = bool | float | timedelta | Verdict
"""The answer of a function in `on` or `on_result`: whether to retry, the exact wait in seconds, or a verdict."""

On = type[Exception] | tuple[type[Exception], ...] | Callable[[Exception], Answer]
"""The type of `on`: an exception type, a tuple of them, or a function of the error."""


class Backoff(Protocol):
    """The protocol of a backoff: any object whose `delay` method returns the seconds to wait before each retry."""

    def delay(self, n: int, u: float, previous: float | None, /) -> float:
        """Return the seconds to wait before retry `n`, counted from 0.

        `u` is a random number, uniform in [0, 1). `previous` is the delay before the last retry, None before the first.
        """
        ...


class BudgetRule(Protocol):
    """The protocol of the rule by which a budget counts: TokenBucket, Throttle, Ratio or one of the user's.

    The counters are a list of ints, `state`, which the methods change in place. `now` is monotonic time in seconds,
    `cost` a number of micro-tokens. A rule may have four more methods. `admit(state, now, u) -> bool` counts a
    first attempt and returns whether it may be sent; `u` is a random number, uniform in [0, 1). `release(state,
    now, cost)` counts the end of an attempt, which took `cost` (0 for a first one). `failed(state, now, verdict)`
    counts a failure, after `release` and whether or not a retry follows. `wait(state, now, delay)` counts a granted
    retry, right after `take`: it is sent in `delay` seconds.
    """

    def start(self) -> list[int]:
        """Return the counters of a new budget, a list of ints."""
        ...

    def take(self, state: list[int], now: float, verdict: Verdict) -> int | None:
        """Count a request to retry after `verdict` in `state`: return the retry's cost, None to refuse it."""
        ...

    def succeeded(self, state: list[int], now: float, cost: int) -> None:
        """Count a success in `state`; `cost` is what its last retry took, 0 for a success at the first attempt."""
        ...


class EarlierRule(Protocol):
    """The protocol of a rule before rules knew verdicts and costs; a budget still takes one."""

    def start(self) -> list[int]:
        """Return the counters of a new budget, a list of ints."""
        ...

    def put(self, state: list[int], now: float, *, retried: bool) -> None:
        """Count a success in the counters `state`; `retried` says whether it took more than one attempt."""
        ...

    def take(self, state: list[int], now: float) -> bool:
        """Count a request to retry in the counters `state` and return whether the retry is granted."""
        ...


class RetryPlan(Protocol):
    """The protocol of a policy: the attributes and methods that a run reads."""

    @property
    def limits(self) -> Limits: ...
    @property
    def backoff(self) -> Backoff: ...
    @property
    def budget(self) -> Budget | None: ...
    @property
    def attempt_timeout(self) -> float | None: ...
    @property
    def repeatable(self) -> bool | None: ...
    @property
    def repeats_calls(self) -> bool: ...
    @property
    def retry_exhausted(self) -> bool: ...
    @property
    def checks_values(self) -> bool: ...
    @property
    def on_result(self) -> Callable[[Any], Any] | None: ...
    @property
    def on_event(self) -> Callable[[Event], object] | None: ...
    @property
    def delay(self) -> Callable[[Any], float | timedelta | None] | None: ...
    @property
    def on_give_up(self) -> Any: ...
    @property
    def raise_unsatisfied(self) -> bool: ...
    @property
    def others(self) -> tuple[Any, ...]: ...
    def rule_of(self, error: Exception) -> Any: ...
    @property
    def on_success(self) -> Callable[[Succeeded], object] | None: ...
    @property
    def stop(self) -> Callable[[Failed], bool | str | None] | None: ...
    def verdict_of_error(self, error: Exception) -> Verdict: ...
    def verdict_of_value(self, value: object) -> Verdict | None: ...


class Subject(Protocol):
    """The protocol of what a run sends, as reports name it."""

    @property
    def method(self) -> str: ...
    @property
    def resource(self) -> str | None: ...
