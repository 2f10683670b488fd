"""One row of a table, ready to judge requests or calls: all its answers are made beforehand. It knows no service."""

from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import TypeVar

from forbear.core.service import Judgement
from forbear.core.verdict import Safety
from forbear.grpc import codes
from forbear.grpc.call import GrpcCall
from forbear.http.request import Request
from forbear.tables.conditions import Condition, FieldTest, HttpTest, compiled, compiled_fields
from forbear.tables.matcher import Matcher
from forbear.tables.table import Row, Rule, load

T = TypeVar("T")


class HttpOperation:
    """What is known of one operation of an HTTP API; `rule` stands in for that of its row."""

    __slots__ = ("_met", "_unmet")

    def __init__(self, service: str, row: Row, rule: Rule | None = None) -> None:
        rule = rule or row.rule
        conditions = compiled(rule.conditions)
        self._unmet = _unmet(service, row.id, row, rule, conditions, codes.statuses(row.maybe_done))
        self._met: tuple[tuple[HttpTest, Judgement], ...] = _met(self._unmet, conditions)

    def judge(self, request: Request, query: str) -> Judgement:
        """The judgement on a request for this operation, whose target has the query `query`."""
        for holds, judgement in self._met:
            if holds(request, query):
                return judgement
        return self._unmet


class RpcOperation:
    """What is known of one RPC, `name` without the leading slash; `rule` stands in for that of its row."""

    __slots__ = ("_met", "_unmet")

    def __init__(self, service: str, name: str, row: Row, rule: Rule | None = None) -> None:
        rule = rule or row.rule
        conditions = compiled_fields(rule.conditions)
        self._unmet = _unmet(service, name, row, rule, conditions, codes.numbers(row.maybe_done))
        self._met: tuple[tuple[FieldTest, Judgement], ...] = _met(self._unmet, conditions)

    def judge(self, message: object) -> Judgement:
        """The judgement on a call with `message`."""
        for holds, judgement in self._met:
            if holds(message):
                return judgement
        return self._unmet


def _unmet(
    service: str, id: str, row: Row, rule: Rule, conditions: Sequence[Condition[T]], maybe_done: tuple[int, ...]
) -> Judgement:
    return Judgement(
        service,
        id,
        rule.safety,
        conditions=tuple(condition.text for condition in conditions),
        repeatable=rule.safety is Safety.ALWAYS,
        maybe_done=maybe_done,
        mutation=not row.is_read,
    )


def _met(unmet: Judgement, conditions: Sequence[Condition[T]]) -> tuple[tuple[T, Judgement], ...]:
    return tuple((condition.holds, unmet.replace(met=condition.text, repeatable=True)) for condition in conditions)


COLUMNS = ("method", "path", "rpc")
"""The own columns of such a table; several paths are joined by "|", and `rpc` is empty where there is none."""


@cache
def rows(path: Path) -> tuple[Row, ...]:
    """Return the rows of such a table. Raises ValueError for one that breaks the schema."""
    return load(path, COLUMNS[:2], COLUMNS[2:])


class Api:
    """What is known of the operations in some tables; `service` is its name in judgements."""

    __slots__ = ("_matcher", "_procedures")

    def __init__(self, service: str, rows: Iterable[Row]) -> None:
        self._matcher: Matcher[HttpOperation] = Matcher()
        self._procedures: dict[str, RpcOperation] = {}
        said: dict[str, object] = {}
        for row in rows:
            method, paths, rpc = row.where
            operation = HttpOperation(service, row)
            for path in paths.split("|"):
                self._matcher.add(method, path, operation)
            if rpc:
                says = (row.rule, row.maybe_done, row.effect)
                if said.setdefault(rpc, says) != says:
                    raise ValueError(f"rows of one RPC must agree, got {row.id} for {rpc}")
                self._procedures[rpc] = RpcOperation(service, rpc, row)

    def request(self, request: Request, path: str, query: str) -> Judgement | None:
        """The judgement on a request, whose target has this path and query; None where it is not known."""
        operation = self._matcher.find(request.method, path)
        return None if operation is None else operation.judge(request, query)

    def call(self, call: GrpcCall) -> Judgement | None:
        """The judgement on a call, None where its RPC is not known."""
        procedure = self._procedures.get(call.name)
        return None if procedure is None else procedure.judge(call.message)
