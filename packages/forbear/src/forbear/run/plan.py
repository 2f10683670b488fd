"""Types for annotations: `RetryPlan`, what a run reads of a policy, `Subject`, the request, and `RunState`, the run."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any, Protocol

from forbear.core.decide import Limits
from forbear.core.events import Event, Failed, Succeeded
from forbear.core.protocols import Backoff
from forbear.core.report import Report
from forbear.core.verdict import Verdict
from forbear.run.budget import Budget
from forbear.run.runtime import Runtime


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


class RunState(Protocol):
    """The protocol of a `Run`, as the modules below it read one."""

    plan: RetryPlan
    operation: str
    runtime: Runtime
    started: float
    reports: int
    awaits: bool
    attempt: int
    report: Report | None

    @property
    def began(self) -> float: ...
    def refuse(self, error: Exception) -> None: ...
    def succeeded(self) -> None: ...
