"""What a listener is told of a run: frozen events, emitted before each wait."""

from forbear.core.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from forbear.core.report import Attempt, Report
    from forbear.core.verdict import Verdict


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
        self._set(
            operation=operation, attempt=attempt, elapsed=elapsed, error=error, text=text, verdict=verdict, name=name
        )


class Scheduled(Record):
    """After a wait of `delay` seconds, attempt number `attempt` will start; `failure` is the attempt before it."""

    __slots__ = ("operation", "attempt", "elapsed", "delay", "failure")

    operation: str
    attempt: int
    elapsed: float
    delay: float
    failure: "Attempt"

    def __init__(self, operation: str, attempt: int, elapsed: float, delay: float, failure: "Attempt") -> None:
        self._set(operation=operation, attempt=attempt, elapsed=elapsed, delay=delay, failure=failure)


class Recovered(Record):
    """The run succeeded on attempt number `attempt`; `failures` are the attempts before it."""

    __slots__ = ("operation", "attempt", "elapsed", "failures")

    operation: str
    attempt: int
    elapsed: float
    failures: "tuple[Attempt, ...]"

    def __init__(self, operation: str, attempt: int, elapsed: float, failures: "tuple[Attempt, ...]") -> None:
        self._set(operation=operation, attempt=attempt, elapsed=elapsed, failures=failures)


class GaveUp(Record):
    """The run ended without success; `report` says why and what was tried."""

    __slots__ = ("operation", "report")

    operation: str
    report: "Report"

    def __init__(self, operation: str, report: "Report") -> None:
        self._set(operation=operation, report=report)


Event = Failed | Scheduled | Recovered | GaveUp
