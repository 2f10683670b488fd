"""What a listener is told of a run: frozen events, emitted before each wait."""

from forbear.core.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Self

    from forbear.core.report import Attempt, Report
    from forbear.core.verdict import Verdict


class Operation(str):
    """The name of a request to a host that no service knows, such as "GET example.com".

    `label` is the part of which there are few ("GET"): metrics would grow without end by the names of hosts.
    """

    __slots__ = ("label",)

    label: str

    def __new__(cls, name: str, label: str) -> "Self":
        """Make the name; `label` is any short form of it."""
        operation = super().__new__(cls, name)
        operation.label = label
        return operation

    def __reduce__(self) -> "tuple[type[Operation], tuple[str, str]]":
        return type(self), (str(self), self.label)


def label_of(operation: str) -> str:
    """Return the name of an operation for metrics, which keep each one that they have seen."""
    return operation.label if isinstance(operation, Operation) else operation


class Failed(Record):
    """Attempt number `attempt` of `operation` failed, `elapsed` seconds into the run.

    `error` is its exception, None where a value was refused (`on_result=`) or a response came back. `name` says what
    failed in a word (the exception's type, "HTTP 503") and `text` in words, without secrets; what `error` itself says
    may hold some.
    """

    __slots__ = ("operation", "attempt", "elapsed", "error", "text", "verdict", "name")

    operation: str
    attempt: int
    elapsed: float
    error: BaseException | None
    text: str
    verdict: "Verdict"
    name: str

    def __init__(
        self,
        operation: str,
        attempt: int,
        elapsed: float,
        error: BaseException | None,
        text: str,
        verdict: "Verdict",
        name: str,
    ) -> None:
        store = object.__setattr__
        store(self, "operation", operation)
        store(self, "attempt", attempt)
        store(self, "elapsed", elapsed)
        store(self, "error", error)
        store(self, "text", text)
        store(self, "verdict", verdict)
        store(self, "name", name)


class Scheduled(Record):
    """After a wait of `delay` seconds, attempt number `attempt` will start; `failure` is the attempt before it."""

    __slots__ = ("operation", "attempt", "elapsed", "delay", "failure")

    operation: str
    attempt: int
    elapsed: float
    delay: float
    failure: "Attempt"

    def __init__(self, operation: str, attempt: int, elapsed: float, delay: float, failure: "Attempt") -> None:
        store = object.__setattr__
        store(self, "operation", operation)
        store(self, "attempt", attempt)
        store(self, "elapsed", elapsed)
        store(self, "delay", delay)
        store(self, "failure", failure)


class Recovered(Record):
    """The run succeeded on attempt number `attempt`; `failures` came before it (of very many, the first and last)."""

    __slots__ = ("operation", "attempt", "elapsed", "failures")

    operation: str
    attempt: int
    elapsed: float
    failures: "tuple[Attempt, ...]"

    def __init__(self, operation: str, attempt: int, elapsed: float, failures: "tuple[Attempt, ...]") -> None:
        store = object.__setattr__
        store(self, "operation", operation)
        store(self, "attempt", attempt)
        store(self, "elapsed", elapsed)
        store(self, "failures", failures)


class GaveUp(Record):
    """The run ended without success; `report` says why and what was tried."""

    __slots__ = ("operation", "report")

    operation: str
    report: "Report"

    def __init__(self, operation: str, report: "Report") -> None:
        self._set(operation=operation, report=report)


Event = Failed | Scheduled | Recovered | GaveUp
