"""Find the operation of a request or call, and judge it: rows of tables, compiled.

All possible judgements are made beforehand. Operations are found by method and raw path, in microseconds. Path segments
are compared as they are sent: `o/a%2Fb` is one object, `o/a/b` another route. A literal segment must match exactly.
`{name}` matches any segment that is neither empty nor a dot segment, which servers may remove. Where a template ends in
`{name}:verb`, the text after the last colon of the last segment is a verb for all its siblings.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Generic, ParamSpec, TypeAlias, TypeVar

from forbear.core.service import Judgement
from forbear.core.verdict import Safety
from forbear.grpc import codes
from forbear.grpc.call import GrpcCall
from forbear.http.request import Request
from forbear.tables.conditions import Condition, compile_fields, compile_http
from forbear.tables.table import Row, Rule, load

P = ParamSpec("P")
T = TypeVar("T")


class TableOperation(Generic[P]):
    """One operation, made of a row of a table: a request of an HTTP API with its query, or the message of an RPC."""

    __slots__ = ("_met", "_unmet")

    def __init__(
        self,
        service: str,
        id: str,
        row: Row,
        rule: Rule,
        conditions: Sequence[Condition[Callable[P, bool]]],
        maybe_done: tuple[int, ...],
    ) -> None:
        self._unmet = Judgement(
            service,
            id,
            rule.safety,
            conditions=tuple(condition.text for condition in conditions),
            repeatable=rule.safety is Safety.ALWAYS,
            maybe_done=maybe_done,
            mutation=not row.is_read,
        )
        self._met = tuple((each.holds, self._unmet.replace(met=each.text, repeatable=True)) for each in conditions)

    def judge(self, *request: P.args, **named: P.kwargs) -> Judgement:
        """Return the judgement on a request: by the first condition that it meets."""
        for holds, judgement in self._met:
            if holds(*request, **named):
                return judgement
        return self._unmet


HttpOperation: TypeAlias = TableOperation[[Request, str]]
RpcOperation: TypeAlias = TableOperation[[object]]


def http_operation(service: str, row: Row, rule: Rule | None = None) -> HttpOperation:
    """Return the operation of an HTTP API in a row; `rule` replaces the rule of the row."""
    rule = rule or row.rule
    return TableOperation(service, row.id, row, rule, compile_http(rule.conditions), codes.statuses(row.maybe_done))


def rpc_operation(service: str, name: str, row: Row, rule: Rule | None = None) -> RpcOperation:
    """Return the RPC in a row, with a name without slash at its beginning; `rule` replaces the rule of the row."""
    rule = rule or row.rule
    return TableOperation(service, name, row, rule, compile_fields(rule.conditions), codes.numbers(row.maybe_done))


COLUMNS = ("method", "path", "rpc")
"""The own columns of a table for HTTP and gRPC. "|" joins several paths; `rpc` is empty if there is none."""


@cache
def rows(path: Path) -> tuple[Row, ...]:
    """Return the rows of a table in a CSV file with the own columns `COLUMNS`; ValueError if it breaks the schema."""
    return load(path, COLUMNS[:2], COLUMNS[2:])


class ApiTable:
    """The operations in the rows of some tables, found by method and path or by RPC.

    With `documented` the rule of the service's own page replaces that of a row. Raises ValueError for two operations
    with one method and path, and for rows of one RPC that disagree.
    """

    __slots__ = ("_matcher", "_procedures")

    def __init__(self, service: str, rows: Iterable[Row], *, documented: bool = False) -> None:
        self._matcher: Matcher[HttpOperation] = Matcher()
        self._procedures: dict[str, RpcOperation] = {}
        known: dict[str, object] = {}
        for row in rows:
            method, paths, rpc = row.where
            rule = row.documented if documented else None
            operation = http_operation(service, row, rule)
            for path in paths.split("|"):
                self._matcher.add(method, path, operation)
            if rpc:
                facts = (row.rule, row.documented, row.maybe_done, row.effect)
                if known.setdefault(rpc, facts) != facts:
                    raise ValueError(f"rows of one RPC must agree, got {row.id} for {rpc}")
                self._procedures[rpc] = rpc_operation(service, rpc, row, rule)

    def request(self, request: Request, path: str, query: str) -> Judgement | None:
        """Return the judgement on a request whose target has this path and query, None for an unknown operation."""
        operation = self._matcher.find(request.method, path)
        return None if operation is None else operation.judge(request, query)

    def call(self, call: GrpcCall) -> Judgement | None:
        """Return the judgement on a gRPC call by its RPC and its message, None for an unknown RPC."""
        procedure = self._procedures.get(call.name)
        return None if procedure is None else procedure.judge(call.message)


_DOT_SEGMENTS = frozenset(
    spelling for dot in (".", "%2e", "%2E") for spelling in (dot, *(dot + other for other in (".", "%2e", "%2E")))
)


class Matcher(Generic[T]):
    """A set of path templates such as `/storage/v1/b/{bucket}`, each with an operation for each of its HTTP methods.

    It has the operations of the path up to here, and a matcher for each segment that may follow.
    """

    __slots__ = ("_any", "_literals", "_operations", "_verbs")

    def __init__(self) -> None:
        self._literals: dict[str, Matcher[T]] = {}
        self._any: Matcher[T] | None = None
        self._operations: dict[str, T] = {}
        self._verbs: dict[str, Matcher[T]] = {}

    def add(self, method: str, template: str, operation: T) -> None:
        """Add one operation for requests with this method and a path of this template; ValueError if it is there."""
        node = self
        for segment in template.split("/"):
            if segment[:1] == "{":
                node._any = node = node._any or Matcher()
                verb = segment.partition("}:")[2]
                if verb:
                    node = node._verbs.setdefault(verb, Matcher())
            else:
                node = node._literals.setdefault(segment, Matcher())
        if method in node._operations:
            raise ValueError(f"two operations must not share a method and a path, got {method} {template} twice")
        node._operations[method] = operation

    def find(self, method: str, path: str) -> T | None:
        """Return the operation for a method and a raw path; a literal segment is preferred to a placeholder."""
        return self._find(method, path.split("/"), 0)

    def _find(self, method: str, segments: list[str], index: int) -> T | None:
        if index == len(segments):
            return self._operations.get(method)
        segment = segments[index]
        literal = self._literals.get(segment)
        if literal is not None:
            match = literal._find(method, segments, index + 1)
            if match is not None:
                return match
        if self._any is None or not segment or segment in _DOT_SEGMENTS:
            return None
        if ":" in segment and self._any._verbs and index + 1 == len(segments):
            name, _, verb = segment.rpartition(":")
            known = self._any._verbs.get(verb)
            return None if known is None or not name or name in _DOT_SEGMENTS else known._operations.get(method)
        return self._any._find(method, segments, index + 1)
