"""The tables of one API, compiled: its requests by method and path, its calls by the name of the RPC. It knows none."""

from collections.abc import Iterable
from pathlib import Path

from forbear.http.request import Judgement, Request
from forbear.services.matcher import Matcher
from forbear.services.operation import Operation, Procedure
from forbear.services.rpc import GrpcCall
from forbear.services.table import Row, load


def rows(path: Path) -> tuple[Row, ...]:
    """A table whose own columns are `method` and `path`, and `rpc`, empty where there is none.

    Where an operation has several paths they are joined by "|".
    """
    return load(path, ("method", "path"), ("rpc",))


class Api:
    """What is known of the operations in some tables; `service` is its name in judgements."""

    __slots__ = ("_matcher", "_procedures")

    def __init__(self, service: str, rows: Iterable[Row]) -> None:
        self._matcher: Matcher[Operation] = Matcher()
        self._procedures: dict[str, Procedure] = {}
        said: dict[str, object] = {}
        for row in rows:
            method, paths, rpc = row.where
            operation = Operation(service, row)
            for path in paths.split("|"):
                self._matcher.add(method, path, operation)
            if rpc:
                says = (row.rule, row.maybe_done, row.effect)
                if said.setdefault(rpc, says) != says:
                    raise ValueError(f"rows of one RPC must agree, got {row.id} for {rpc}")
                self._procedures[rpc] = Procedure(service, rpc, row)

    def request(self, request: Request, path: str, query: str) -> Judgement | None:
        """The judgement on a request, whose target has this path and query; None where it is not known."""
        operation = self._matcher.find(request.method, path)
        return None if operation is None else operation.judge(request, query)

    def call(self, call: GrpcCall) -> Judgement | None:
        """The judgement on a call, None where its RPC is not known."""
        procedure = self._procedures.get(call.name)
        return None if procedure is None else procedure.judge(call.message)
