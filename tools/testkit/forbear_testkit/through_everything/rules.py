"""The decision table of the README as data, and what a server must see where it holds. It knows no client."""

from dataclasses import dataclass
from enum import Enum
from typing import Protocol

from forbear.policy import Policy
from forbear.services import cloud_storage, rfc9110

ATTEMPTS = 3
"""The limit of every policy in these tests."""


class Row(Enum):
    """The rows of the decision table, one of which a fault proves, and responses that mean success."""

    NOT_EXECUTED = "no byte of the request reached a server, or the protocol says that it was refused"
    UNKNOWN = "the request may have been executed"
    DONE = "the status said that it was executed, then the response broke"
    PERMANENT = "no other attempt can help"


class Column(Enum):
    """The columns of the decision table, by what an operation tolerates."""

    ALWAYS = "always"
    CONDITION = "conditional, with its condition"
    NO_CONDITION = "conditional, without it"
    NEVER = "never"


REPEATED = {
    Row.NOT_EXECUTED: {*Column},
    Row.UNKNOWN: {Column.ALWAYS, Column.CONDITION},
    Row.DONE: {Column.ALWAYS},  # a condition that was met once cannot be met again
    Row.PERMANENT: set[Column](),
}
"""The columns in which a request is sent again."""


@dataclass(frozen=True)
class Operation:
    """A request, and its column. The server refuses it the second time (412) where it has a condition."""

    name: str
    column: Column
    policy: Policy
    method: str
    target: str
    header: tuple[str, str] | None = None
    """The header that the condition is in, for clients that see headers."""

    @property
    def body(self) -> bytes | None:
        """The content of the request."""
        return None if self.method == "GET" else b"ten euros"


_INSERT = "/upload/storage/v1/b/bkt/o?uploadType=media&name=n"

OPERATIONS = (
    Operation("payment", Column.NEVER, rfc9110.policy, "POST", "/pay"),
    Operation("read", Column.ALWAYS, rfc9110.policy, "GET", "/thing"),
    Operation("insert", Column.NO_CONDITION, cloud_storage.policy, "POST", _INSERT),
    Operation("insert if new", Column.CONDITION, cloud_storage.policy, "POST", _INSERT + "&ifGenerationMatch=0"),
    Operation("change if same", Column.CONDITION, rfc9110.policy, "PATCH", "/thing", ("If-Match", '"1"')),
)


class Sees(Protocol):
    """The facts that a client library shows to its adapter."""

    @property
    def trusts_headers(self) -> bool:
        """Return whether a condition in a header counts."""
        ...

    @property
    def broken(self) -> Row:
        """Return what a response that breaks after its status means."""
        ...


@dataclass(frozen=True)
class Expected:
    """The expected outcome: the number of attempts, the executions, and how the call ends."""

    attempts: int
    executed: int
    """The number of executions by the server, refusals by the condition included."""
    changed: int
    """The number of executions that take effect."""
    status: int | None
    """The status that the caller gets; None for the end of the fault: its error, or its response."""
    unsafe: bool
    """True if the report must say that a repeat could do harm."""


def expected(row: Row, executes: bool, lasts: bool, times: int, operation: Operation, seen: Sees) -> Expected:
    """Derive what must happen from the table.

    The fault proves `row` and `executes` the request or not; it `lasts`, or happens so many `times`.
    """
    column = operation.column
    if operation.header is not None and not seen.trusts_headers:
        column = Column.NEVER
    if row is Row.DONE:
        row = seen.broken
    again = column in REPEATED[row]
    faulty = (ATTEMPTS if lasts else times) if again else 1
    good = int(again and not lasts)
    executed = faulty * executes + good
    changed = min(executed, 1) if operation.column is Column.CONDITION else executed
    refused = changed < executed
    return Expected(
        attempts=faulty + good,
        executed=executed,
        changed=changed,
        status=(412 if refused else 200) if good else None,
        unsafe=not again and row is not Row.PERMANENT,
    )
