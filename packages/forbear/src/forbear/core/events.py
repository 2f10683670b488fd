"""The events of a run, as frozen values; a run emits them when an attempt failed, before each wait and at its end.

A run whose first attempt succeeds or fails permanently emits none. The two events of shared budgets belong to no run.
"""

from forbear.core.dataclass import dataclass
from forbear.core.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Self

    from forbear.core.attempt import Attempt
    from forbear.core.report import Report
    from forbear.core.verdict import Verdict


class Operation(str):
    """A string that names a request to a host that no service knows, such as "GET example.com".

    `label` is a short form for metrics ("GET"), which would have endless labels with the names of hosts.
    """

    __slots__ = ("label",)

    label: str

    def __new__(cls, name: str, label: str) -> "Self":
        """Make an operation whose text is `name` and whose short form for metrics is `label`."""
        operation = super().__new__(cls, name)
        operation.label = label
        return operation

    def __reduce__(self) -> "tuple[type[Operation], tuple[str, str]]":
        return type(self), (str(self), self.label)


def label_of(operation: str) -> str:
    """Return the name of an operation for metrics: the `label` of an `Operation`, any other name as it is."""
    return operation.label if isinstance(operation, Operation) else operation


@dataclass(frozen=True, slots=True)
class Failed(Record):
    """Attempt number `attempt` of `operation` failed, `elapsed` seconds into the run.

    `error` is its exception, None if a value was refused (`on_result=`) or a response arrived. `name` is the type of
    the failure ("ConnectionError", "HTTP 503") and `text` its message without secrets; `error` itself may contain some.
    `verdict` says what the failure means.

    >>> from forbear.testing import Script
    >>> seen = []
    >>> forbear.retry(OSError, on_event=seen.append).call(Script(TimeoutError("slow"), "done"))
    'done'
    >>> [type(event).__name__ for event in seen]
    ['Failed', 'Scheduled', 'Recovered']
    >>> seen[0].attempt, seen[0].name, seen[0].text
    (1, 'TimeoutError', 'slow')
    """

    operation: str
    attempt: int
    elapsed: float
    error: BaseException | None
    text: str
    verdict: "Verdict"
    name: str


@dataclass(frozen=True, slots=True)
class Scheduled(Record):
    """After a wait of `delay` seconds, attempt number `attempt` will start; `failure` is the failed attempt before it.

    `elapsed` is the time since the run began, in seconds, before that wait. `vouched` is true once only the user's word
    allowed a retry of this run. `wait_from` is the header or field by which the server asked for a wait, None if it
    asked for none. Example: see `Failed`.
    """

    operation: str
    attempt: int
    elapsed: float
    delay: float
    failure: "Attempt"
    vouched: bool = False
    wait_from: str | None = None


@dataclass(frozen=True, slots=True)
class Recovered(Record):
    """The run succeeded on attempt number `attempt`, after at least one failure, `elapsed` seconds into the run.

    `failures` are the attempts before it; of more than 32, the first 16 and the last 16. `maybe_done` is True if an
    earlier attempt may have worked, and a conflict that the function handled may have been with that one. `settled` is
    True if the last attempt met what an earlier one had done, as a read showed; then `failures` has that attempt, too.
    `billed` is True if an earlier attempt may have cost money, as calls of language models do. Example: see `Failed`.
    """

    operation: str
    attempt: int
    elapsed: float
    failures: "tuple[Attempt, ...]"
    maybe_done: bool = False
    settled: bool = False
    billed: bool = False


@dataclass(frozen=True, slots=True)
class GaveUp(Record):
    """The run gave up; `report` has the reason and the attempts.

    A run that makes no report emits no such event, as after a permanent error of the first attempt. Example: see
    `Failed`.
    """

    operation: str
    report: "Report"


@dataclass(frozen=True, slots=True)
class Succeeded(Record):
    """The run succeeded on attempt number `attempt`, `elapsed` seconds after it began; for `on_success` only.

    Other listeners get `Recovered` instead, and nothing for a success at once. Example: see `Failed`.
    """

    operation: str
    attempt: int
    elapsed: float


@dataclass(frozen=True, slots=True)
class WouldStop(Record):
    """Attempt number `attempt` would have ended the run, as `text` says, but the policy has `enforce="warn"`.

    The attempt may have been executed, and a repeat could do harm. It is repeated all the same. Example: see `Failed`.
    """

    operation: str
    attempt: int
    elapsed: float
    text: str


@dataclass(frozen=True, slots=True)
class BudgetDegraded(Record):
    """A shared budget cannot ask its server, as `text` says (without secrets), and lives on the process's own credit.

    `operation` is "shared budget" and the name of the budget. The next ask is in `pause` seconds, or later. No further
    such event comes before the server is back. Example: see `Failed`.
    """

    operation: str
    text: str
    pause: float


@dataclass(frozen=True, slots=True)
class BudgetRestored(Record):
    """The server of a shared budget answers again, after `elapsed` seconds; `operation` is as for `BudgetDegraded`.

    Example: see `Failed`.
    """

    operation: str
    elapsed: float


Event = Failed | Scheduled | Recovered | GaveUp | WouldStop | BudgetDegraded | BudgetRestored
"""The type of what `on_event` functions and listeners get."""
