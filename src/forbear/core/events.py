"""What a listener is told of a run: frozen events, emitted before each wait."""

from forbear.core.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from forbear.core.report import Report
    from forbear.core.verdict import Verdict


class Failed(Record):
    """Attempt number `attempt` of `operation` failed, `elapsed` seconds into the run.

    `error` is its exception, None where a value was refused (`on_result=`) or a response came back; `text` says what
    failed.
    """

    __slots__ = ("operation", "attempt", "elapsed", "error", "text", "verdict")

    operation: str
    attempt: int
    elapsed: float
    error: BaseException | None
    text: str
    verdict: "Verdict"

    def __init__(
        self,
        operation: str,
        attempt: int,
        elapsed: float,
        error: BaseException | None,
        text: str,
        verdict: "Verdict",
    ) -> None:
        self._set(operation=operation, attempt=attempt, elapsed=elapsed, error=error, text=text, verdict=verdict)


class Scheduled(Record):
    """After a wait of `delay` seconds, attempt number `attempt` will start."""

    __slots__ = ("operation", "attempt", "elapsed", "delay")

    operation: str
    attempt: int
    elapsed: float
    delay: float

    def __init__(self, operation: str, attempt: int, elapsed: float, delay: float) -> None:
        self._set(operation=operation, attempt=attempt, elapsed=elapsed, delay=delay)


class Recovered(Record):
    """The run succeeded on attempt number `attempt`, after at least one failure."""

    __slots__ = ("operation", "attempt", "elapsed")

    operation: str
    attempt: int
    elapsed: float

    def __init__(self, operation: str, attempt: int, elapsed: float) -> None:
        self._set(operation=operation, attempt=attempt, elapsed=elapsed)


class GaveUp(Record):
    """The run ended without success; `report` says why and what was tried."""

    __slots__ = ("operation", "report")

    operation: str
    report: "Report"

    def __init__(self, operation: str, report: "Report") -> None:
        self._set(operation=operation, report=report)


Event = Failed | Scheduled | Recovered | GaveUp
