"""Cloud Storage: which operation of its JSON, XML and gRPC APIs a request is, and the meaning of its responses.

An HTTP request that is none of the operations is a read or a mutation by its method. An unknown mutation is never
repeated, not even a PUT or DELETE: the service is known, and that operation is not. An unknown RPC is never repeated.
"""

from collections.abc import Mapping
from functools import cache
from pathlib import Path

from forbear.core import check
from forbear.core.record import Record
from forbear.core.service import Judgement, TableEntry
from forbear.core.verdict import TRANSIENT, Safety, Verdict
from forbear.grpc import codes
from forbear.grpc import status as grpc_status
from forbear.grpc.call import GrpcCall, Metadata
from forbear.http import preconditions
from forbear.http import status as http_status
from forbear.http.request import READS, Request, method_overrides
from forbear.http.status import TRANSIENT_STATUSES
from forbear.services.cloud_storage import hosts, json_api, xml_api
from forbear.services.cloud_storage.json_api import NAME, JsonApi, choose
from forbear.services.cloud_storage.xml_api import XmlApi
from forbear.tables import google_apis
from forbear.tables.google_apis import ReadBody
from forbear.tables.operations import RpcOperation, rpc_operation
from forbear.tables.table import Row, entries, load

_REDIRECTS = frozenset({
    "google.storage.v2.BidiReadObjectRedirectedError", "google.storage.v2.BidiWriteObjectRedirectedError",
})  # fmt: skip


_READ = Judgement(NAME, None, Safety.ALWAYS, repeatable=True, mutation=False)
_UNKNOWN = Judgement(NAME, None, Safety.NEVER)

DOCUMENTED_STATUSES = frozenset({408, 429, *range(500, 600)})
"""The statuses that the retry page calls retryable."""


class CloudStorage(Record):
    """The service Cloud Storage: it judges requests, RPCs and responses. By default the tables' own rules apply.

    - `documented` follows the retry page to the letter. An operation of the tables that the page does not name is never
      repeated. ETags count where the page names them. The start of a resumable session needs the condition of the
      upload. Every 5xx is transient.
    - `disputed` adds conditions that some source accepts and others reject. The first is an If-Match header on updates,
      which the server may ignore. The others are the metageneration header for ACLs of the XML API, and an etag inside
      a bucket or object of the gRPC API.
    - `statuses` replaces the transient statuses (408, 429, 500, 502, 503 and 504; with `documented` 408, 429 and every
      5xx).

    Raises ValueError for `documented` and `disputed` together.

    >>> from forbear.http.request import Request
    >>> delete = Request("DELETE", "storage.googleapis.com", "/storage/v1/b/my-bucket/o/a?ifGenerationMatch=7")
    >>> judgement = CloudStorage().classify(delete)
    >>> judgement.operation, judgement.met, judgement.repeatable
    ('storage.objects.delete', 'ifGenerationMatch=', True)
    """

    __slots__ = ("disputed", "documented", "statuses")

    name: str = NAME
    disputed: bool
    documented: bool
    statuses: frozenset[int]

    def __init__(
        self, *, disputed: bool = False, documented: bool = False, statuses: frozenset[int] | None = None
    ) -> None:
        check.flag("disputed", disputed)
        check.flag("documented", documented)
        if disputed and documented:
            raise ValueError("`disputed` must be False with `documented`, which decides disputed conditions, got True")
        if statuses is None:
            statuses = DOCUMENTED_STATUSES if documented else TRANSIENT_STATUSES
        self._set(disputed=disputed, documented=documented, statuses=google_apis.check_statuses(statuses))

    @property
    def token_header(self) -> str:
        """The header by which the service may drop duplicates, as no document says; it makes nothing safe."""
        return "x-goog-gcs-idempotency-token"

    def tables(self) -> Mapping[str, tuple[TableEntry, ...]]:
        return {
            "cloud_storage.json": entries(json_api.operations()),
            "cloud_storage.xml": entries(xml_api.operations()),
            "cloud_storage.grpc": entries(rpc_operations()),
        }

    def classify(self, request: Request) -> Judgement:
        """Return the judgement on a request by its operation; an unknown one may be repeated only if it is a read."""
        path, query = preconditions.split(request.target)
        overrides = method_overrides(request.headers)
        overridden = bool(overrides) and set(overrides) != {request.method}
        known = unknown = None
        if not preconditions.is_cut(request.target):
            kind = hosts.kind_of(request.host)
            if kind in (hosts.HostKind.XML, hosts.HostKind.BUCKET) or not json_api.is_json_path(path):
                if not overridden and kind is not hosts.HostKind.SHARED:
                    xml = _xml(self.disputed, self.documented)
                    in_bucket = kind is hosts.HostKind.BUCKET
                    known = xml.judge(request, path, query, in_bucket=in_bucket)
                    unknown = None if in_bucket else xml_api.explain_unknown(path)
            elif overridden:
                known = _json(self.disputed, self.documented).judge_overridden(overrides, request, path, query)
            else:
                known = _json(self.disputed, self.documented).judge(request, path, query)
        if known is not None:
            return known
        if request.method in READS and not overridden:
            return _READ
        return _UNKNOWN if unknown is None else _UNKNOWN.replace(unknown=unknown)

    def verdict(
        self, judgement: Judgement, status: int, headers: Mapping[str, str], body: ReadBody = None
    ) -> Verdict | None:
        """Return the verdict on a response, None for a success: below 400, or a 499 that confirms a cancellation.

        `statuses` are transient, all others permanent; with `documented` also a 429 on a chunk of a resumable session.
        """
        if json_api.is_cancelled(judgement, status):
            return None
        if self.documented and status == 429 and json_api.is_chunk(judgement):
            return http_status.verdict(status, ())
        return http_status.verdict(status, self.statuses)

    def classify_call(self, call: GrpcCall) -> Judgement:
        operation = _grpc(self.disputed, self.documented).get(call.name)
        return _UNKNOWN if operation is None else operation.judge(call.message)

    def call_verdict(self, judgement: Judgement, code: int, metadata: Metadata = ()) -> Verdict | None:
        """Return the verdict on the end of a call by its gRPC status code, None for OK.

        The rules are those of `TableService`, but ABORTED is transient where its details only redirect a stream. The
        retry page is about HTTP, so the 5xx for which UNKNOWN, DATA_LOSS and UNIMPLEMENTED stand change nothing.
        """
        if is_redirect(code, metadata):
            return TRANSIENT
        return grpc_status.verdict(code, codes.codes_for(self.statuses), read=not judgement.mutation)


@cache
def rpc_operations() -> tuple[Row, ...]:
    """Return the rows of the gRPC APIs' table; `where` is the side that sends a stream, or "unary"."""
    return load(Path(__file__).with_name("grpc.csv"), ("stream",))


def is_redirect(code: int, metadata: Metadata) -> bool:
    """Return whether a stream was ended only so that the client opens it again elsewhere, as its details say."""
    return code == codes.ABORTED and any(kind in _REDIRECTS for kind, _ in grpc_status.details(metadata))


_json, _xml = cache(JsonApi), cache(XmlApi)


@cache
def _grpc(disputed: bool, documented: bool) -> dict[str, RpcOperation]:
    return {
        row.id: rpc_operation(NAME, row.id, row, choose(row, disputed=disputed, documented=documented))
        for row in rpc_operations()
    }


RECOMMENDED = CloudStorage()
"""The service with its recommended rules."""

DOCUMENTED = CloudStorage(documented=True)
