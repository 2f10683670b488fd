"""Types for annotations: `Backoff`, `On`, the answers of `on`, and `RetryPlan`; loaded only when a user names one."""

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
