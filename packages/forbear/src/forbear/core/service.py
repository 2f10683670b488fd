"""The contract of a service: it judges one request, call or command, and has tables of all its operations.

`forbear.http.request.HttpService` and `forbear.grpc.call.RpcService` extend `Service` with the requests they judge.
"""

from forbear.core.dataclass import dataclass
from forbear.core.record import Record
from forbear.core.verdict import Safety

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Protocol

    class Service(Protocol):
        """The protocol of a service, which knows one API: its name and the tables of its operations."""

        @property
        def name(self) -> str:
            """The service's name, such as "cloud_storage"."""
            ...

        def tables(self) -> Mapping[str, Sequence["TableEntry"]]:
            """Return the operations of each table by the table's name, such as "cloud_storage.json" or "iam"."""
            ...


@dataclass(frozen=True, slots=True)
class Judgement(Record):
    """The safety of one request, call or command, as its service judges it.

    - `service` is the name of the service, and `safety` that of the operation, whatever this request carries.
    - `operation` is the id of the operation ("storage.objects.insert"), None where the service does not know it.
    - `conditions` lists what would make a conditional operation repeatable (any one of them), each in the spelling of
      the request ("ifGenerationMatch=", "If-Match:", "etag in the body"). `met` is the one that this request carries,
      None without one.
    - `repeatable` says whether this very request may be executed twice.
    - `maybe_done` lists the statuses (for gRPC the numbers of codes) that, on a later attempt, may mean that an earlier
      attempt worked.
    - `mutation` is true for a write, false for a read.
    - `session` marks a request of an upload session (a chunk, a status query). After a failure, a query asks the
      session for the bytes it has; the request is never sent again blindly.
    - `refused` says why nothing can make a request repeatable (a batch), None otherwise.
    - `vouched` is true if only the user's word makes the request repeatable.
    - `unknown` says why a request is none of the operations (a wrong bucket name), None if nothing more is known.
    - `billed` is true if each execution costs money, and does nothing else: a call of a language model.

    >>> from forbear.services import find
    >>> request = Request("DELETE", "storage.googleapis.com", "/storage/v1/b/b/o/a")
    >>> judgement = find(request.host, request.target).classify(request)
    >>> judgement.repeatable, judgement.conditions
    (False, ('ifGenerationMatch=', 'generation='))
    """

    service: str
    operation: str | None
    safety: Safety
    conditions: tuple[str, ...] = ()
    met: str | None = None
    repeatable: bool = False
    maybe_done: tuple[int, ...] = ()
    mutation: bool = True
    session: bool = False
    refused: str | None = None
    vouched: bool = False
    unknown: str | None = None
    billed: bool = False

    def may_cost(self, status: object = None) -> bool:
        """Return whether an attempt that ended with this HTTP status may have cost money; one too many (429) did not.

        None is a lost response.
        """
        return self.billed and status != 429


@dataclass(frozen=True, slots=True)
class TableEntry(Record):
    """One row of a table, in the form that every service shares: one operation and its safety.

    - `id` is the operation's name. `rpc` is the name in gRPC, empty where there is none.
    - `conditions` make the operation safe (any one of them), in the spelling of an HTTP request or a command; `fields`
      in that of a gRPC message.
    - `disputed` are conditions that some source accepts and others reject.
    - `documented` are the conditions on the service's own page, None where the page does not name the operation. It is
      empty where the page says "always" or "never": `columns` has the word.
    - `maybe_done` lists responses that, on a later attempt, may mean that an earlier attempt worked.
    - `source`, `effect` and `note` say where the row is from, what a duplicate does, and more in words.
    - `columns` has the row as its file has it.
    """

    id: str
    safety: Safety
    source: str
    effect: str
    columns: "Mapping[str, str]"
    rpc: str = ""
    conditions: tuple[str, ...] = ()
    fields: tuple[str, ...] = ()
    disputed: tuple[str, ...] = ()
    documented: tuple[str, ...] | None = None
    maybe_done: tuple[str, ...] = ()
    is_read: bool = False
    note: str = ""


class OperationSet(str):
    """A named set of operations that users vouch for together, such as `forbear.at_least_once`, as an item of `safe`.

    As a text it is the name by which users write it. A call of it returns whether the set holds a request, an RPC or
    a call of AWS.
    """

    __slots__ = ("__dict__",)

    def __call__(self, call: object) -> bool:
        """Return whether the set holds what was sent."""
        raise NotImplementedError

    def bind(self, origin: str) -> "OperationSet":
        """Return the part of the set that is sent by HTTP to an origin, such as "https://api.example.com"."""
        raise NotImplementedError

    @property
    def text(self) -> str:
        """The set itself, as the text of a pattern is the pattern's."""
        return self

    def __repr__(self) -> str:
        return str(self)


def why_not(judgement: Judgement, unknown: str) -> str:
    """Return the reason why an operation may not be executed twice, with the conditions that would allow it, if any.

    `unknown` is the name to use for an operation that the judgement does not name.
    """
    if judgement.refused is not None:
        return judgement.refused
    name = judgement.operation or unknown
    if judgement.conditions and not judgement.repeatable:
        return f"{name} may have been executed; it may be repeated only with {' or '.join(judgement.conditions)}"
    why = "" if judgement.unknown is None else f" ({judgement.unknown})"
    return f"{name} may have been executed and must not be executed twice{why}"


def cure_for(judgement: Judgement, option: str | None) -> str:
    """Return words that say how to vouch for an operation, by an `option` such as `safe="INCR"`.

    They are "" without an option, and where a vouch does not help: for what is refused, belongs to a session or is
    repeatable already. Conditions that the operation knows are the better cure.
    """
    if option is None or judgement.repeatable or judgement.refused is not None or judgement.session:
        return ""
    return "" if judgement.conditions else f"; if that does no harm, vouch for it with {option}"
