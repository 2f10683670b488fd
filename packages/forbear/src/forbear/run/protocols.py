"""Types for annotations: `Subject`, the request that a run sends, and `RunState`, the run for modules below it."""

from typing import Any, Protocol

from forbear.core.decide import Stop
from forbear.core.report import Report
from forbear.run.failure import Failure
from forbear.run.runtime import Runtime


class Subject(Protocol):
    """The protocol of what a run sends, as reports name it."""

    @property
    def method(self) -> str: ...
    @property
    def resource(self) -> str | None: ...


class RunState(Protocol):
    """The protocol of a `Run`, as the modules below it read one."""

    plan: Any  # the RetryPlan, which reads the endings that read this protocol
    operation: str
    runtime: Runtime
    started: float
    reports: int
    awaits: bool
    attempt: int
    maybe_done: bool
    billed: int
    report: Report | None

    @property
    def began(self) -> float: ...
    def notify_would_stop(self, why: str) -> None: ...
    def withdraw(self, stop: Stop, failure: Failure) -> None: ...
