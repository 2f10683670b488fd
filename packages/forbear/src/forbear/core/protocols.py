"""Types for annotations: `Backoff`, `On`, the answers of `on`, `BudgetRule` and more; loaded when a user names one."""

from collections.abc import Callable
from datetime import timedelta
from typing import Protocol

from forbear.core.verdict import Verdict

Answer = bool | float | timedelta | Verdict
"""The answer of a function in `on` or `on_result`: whether to retry, the exact wait in seconds, or a verdict."""

On = type[Exception] | tuple[type[Exception] | Callable[[Exception], Answer], ...] | Callable[[Exception], Answer]
"""The type of `on`: an exception type, a function of the error, or a tuple of these."""


class Backoff(Protocol):
    """The protocol of a backoff: any object whose `delay` method returns the seconds to wait before each retry.

    >>> from forbear.testing import Script, virtual_time
    >>> class Linear:
    ...     def delay(self, retry, u, previous):
    ...         return retry + 1.0
    >>> with virtual_time() as time:
    ...     forbear.retry(OSError, backoff=Linear()).call(Script(OSError, OSError, "done"))
    'done'
    >>> time.slept
    [1.0, 2.0]
    """

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
    retry, right after `take`: it is sent in `delay` seconds. The docstrings of our own rules say only what is special.

    >>> from forbear.budgets import Budget
    >>> Budget().rule
    TokenBucket()
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
