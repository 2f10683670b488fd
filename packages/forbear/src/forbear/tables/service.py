"""A service whose JSON and gRPC APIs are described completely by tables.

An HTTP operation that is in no table is a read or a mutation by its method. An unknown mutation is never repeated, not
even a PUT or DELETE: the API is known, and that operation is not. These APIs document no method overrides, so a request
with one counts as unknown. An unknown RPC is never repeated.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

from forbear.core.record import Record
from forbear.core.service import Judgement, TableEntry
from forbear.core.verdict import CONFLICT, Safety, Verdict
from forbear.grpc import codes
from forbear.grpc import status as grpc_status
from forbear.grpc.call import GrpcCall, Metadata
from forbear.http import preconditions
from forbear.http import status as http_status
from forbear.http.request import READS, Request, method_overrides
from forbear.http.status import TRANSIENT_STATUSES
from forbear.tables import google_apis
from forbear.tables.google_apis import ReadBody
from forbear.tables.operations import ApiTable, rows
from forbear.tables.table import Row, entries

BATCH = "a batch holds many calls that cannot be judged or repeated one by one; send each of them alone"
"""The reason that judgements give for never repeating a batch."""


_COMPILED: dict[tuple[str, bool], Mapping[str, ApiTable]] = {}
"""The compiled tables by the name of their service and by `documented`, each compiled when it is first needed."""


class TableService(Record):
    """The base of services that judge requests, RPCs and responses by tables.

    `statuses` replaces the transient statuses (408, 429, 500, 502, 503 and 504). A subclass sets `name`, the name in
    judgements and reports, and the `folder` of its tables. `files` maps the name of each API in host names to the names
    of its tables, without `.csv`. A subclass whose `documented` is true judges by the rules of the service's page.
    """

    __slots__ = ("statuses",)

    statuses: frozenset[int]
    name: ClassVar[str]
    folder: ClassVar[Path]
    files: ClassVar[Mapping[str, tuple[str, ...]]]
    documented: bool = False
    token_header: None = None
    """None: these APIs have no header by which they drop duplicates."""

    def __init__(self, *, statuses: frozenset[int] = TRANSIENT_STATUSES) -> None:
        self._set(statuses=google_apis.check_statuses(statuses))

    @classmethod
    def rows_of(cls, file: str) -> tuple[Row, ...]:
        """Return the rows of the table `file`, a name without `.csv`, in the service's folder."""
        return rows(cls.folder / f"{file}.csv")

    def tables(self) -> Mapping[str, tuple[TableEntry, ...]]:
        listed = [row for files in self.files.values() for file in files for row in self.rows_of(file)]
        return {self.name: entries(listed)}

    def classify(self, request: Request) -> Judgement:
        """Return the judgement on a request by its operation in the tables of the API on its host.

        On a host that is none of Google's (an emulator) all tables are searched, and the strictest match counts.
        """
        path, query = preconditions.split(request.target)
        overrides = method_overrides(request.headers)
        overridden = bool(overrides) and set(overrides) != {request.method}
        known = None if overridden or preconditions.is_cut(request.target) else self._find(request, path, query)
        if known is not None:
            return known
        if path == "/batch" or path.startswith("/batch/"):
            return Judgement(self.name, None, Safety.NEVER, refused=BATCH)
        if request.method in READS and not overridden:
            return Judgement(self.name, None, Safety.ALWAYS, repeatable=True, mutation=False)
        return Judgement(self.name, None, Safety.NEVER)

    def verdict(
        self, judgement: Judgement, status: int, headers: Mapping[str, str], body: ReadBody = None
    ) -> Verdict | None:
        """Return the verdict on a response, None for a success (a status below 400).

        A 409 whose body says ABORTED is a conflict for a write, for only a new read helps, and transient for a read.
        Otherwise `statuses` are transient and all others permanent.
        """
        if status == 409 and body is not None and google_apis.error_status(body()) == "ABORTED":
            return CONFLICT if judgement.mutation else http_status.verdict(status, (409,))
        return http_status.verdict(status, self.statuses)

    def classify_call(self, call: GrpcCall) -> Judgement:
        matches = [match for api in self._apis().values() if (match := api.call(call))]
        return min(matches, key=_repeatable) if matches else Judgement(self.name, None, Safety.NEVER)

    def call_verdict(self, judgement: Judgement, code: int, metadata: Metadata = ()) -> Verdict | None:
        """Return the verdict on the end of a call by its gRPC status code, None for OK.

        ABORTED is a conflict for a write, and transient for a read. RESOURCE_EXHAUSTED, INTERNAL, UNAVAILABLE and
        DEADLINE_EXCEEDED are transient where `statuses` has 429, 500, 503 and 504. All others are permanent. That
        includes UNKNOWN, DATA_LOSS and UNIMPLEMENTED, although HTTP maps them to statuses of 5xx.
        """
        return grpc_status.verdict(code, codes.codes_for(self.statuses), read=not judgement.mutation)

    def _find(self, request: Request, path: str, query: str) -> Judgement | None:
        apis, name = self._apis(), google_apis.api(request.host)
        if name is not None:
            return apis[name].request(request, path, query) if name in apis else None
        matches = [match for api in apis.values() if (match := api.request(request, path, query))]
        return min(matches, key=_repeatable) if matches else None

    def _apis(self) -> Mapping[str, ApiTable]:
        """Return the compiled tables of this service, by the name of the API in host names ("iam")."""
        key = self.name, self.documented
        apis = _COMPILED.get(key)
        if apis is None:  # two threads may both compile; either result is whole
            listed = {api: [row for file in files for row in self.rows_of(file)] for api, files in self.files.items()}
            compiled = {api: ApiTable(self.name, rows, documented=self.documented) for api, rows in listed.items()}
            apis = _COMPILED[key] = compiled
        return apis


def _repeatable(judgement: Judgement) -> bool:
    return judgement.repeatable
