"""A JSON and gRPC API that tables describe completely. It knows no API; a subclass names its tables.

What is in no table is a read or not by its method; as a mutation it is never repeated, not even a PUT or DELETE: this
API is known and that call is not. Method overrides are documented for none of these APIs, so they are not trusted.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping

from forbear.core.record import Record
from forbear.core.verdict import CONFLICT, Safety, Verdict
from forbear.http import method as _method
from forbear.http import preconditions
from forbear.http.request import Judgement, Request
from forbear.http.status import TRANSIENT_STATUSES
from forbear.services import codes, googleapis, grpc_status, replies
from forbear.services.api import Api
from forbear.services.rpc import GrpcCall, Metadata

BATCH = "a batch holds many calls that cannot be judged or repeated one by one; send each of them alone"
"""Why a batch is never repeated."""


class Described(Record, ABC):
    """What is known of an API; `statuses` are those worth another try (408, 429, 500, 502, 503 and 504)."""

    __slots__ = ("statuses",)

    statuses: frozenset[int]

    def __init__(self, *, statuses: frozenset[int] = TRANSIENT_STATUSES) -> None:
        self._set(statuses=replies.checked(statuses))

    @property
    @abstractmethod
    def name(self) -> str:
        """The name in judgements and reports."""

    @property
    def token_header(self) -> None:
        """There is no header by which these APIs drop duplicates."""

    @abstractmethod
    def apis(self) -> Mapping[str, Api]:
        """The compiled tables by the name of the API in the host name."""

    def classify(self, request: Request) -> Judgement:
        """The operation that a request asks for and whether it may be executed twice.

        On a host that is none of Google's, an emulator, all tables are asked, and the stricter answer counts.
        """
        path, query = preconditions.split(request.target)
        overrides = _method.overrides(request.headers)
        overridden = bool(overrides) and set(overrides) != {request.method}
        known = None if overridden or preconditions.is_cut(request.target) else self._known(request, path, query)
        if known is not None:
            return known
        if path == "/batch" or path.startswith("/batch/"):
            return Judgement(self.name, None, Safety.NEVER, refused=BATCH)
        if request.method in _method.READS and not overridden:
            return Judgement(self.name, None, Safety.ALWAYS, repeatable=True, mutation=False)
        return Judgement(self.name, None, Safety.NEVER)

    def verdict(
        self,
        judgement: Judgement,
        status: int,
        headers: Mapping[str, str],
        body: Callable[[], bytes] | None = None,
    ) -> Verdict | None:
        """What a reply means, None where it is a success.

        A 409 whose body says ABORTED is a conflict: another client was quicker, and only a new read can help; a read
        is that itself, and worth another try. Where the body is not at hand, a 409 is final.
        """
        if status == 409 and body is not None and replies.error_status(body()) == "ABORTED":
            return CONFLICT if judgement.mutation else replies.verdict(status, headers, (409,))
        return replies.verdict(status, headers, self.statuses)

    def classify_call(self, call: GrpcCall) -> Judgement:
        """The RPC that a call is of and whether it may be executed twice; an unknown one never is."""
        found = [known for api in self.apis().values() if (known := api.call(call))]
        return min(found, key=_repeatable) if found else Judgement(self.name, None, Safety.NEVER)

    def call_verdict(self, judgement: Judgement, code: int, metadata: Metadata = ()) -> Verdict | None:
        """What the end of a call means, None where it is a success; ABORTED is a conflict, except on a read.

        RESOURCE_EXHAUSTED, INTERNAL, UNAVAILABLE and DEADLINE_EXCEEDED are worth another try where `statuses` has 429,
        500, 503 and 504. UNKNOWN, DATA_LOSS and UNIMPLEMENTED never are, though HTTP maps them to statuses of 5xx.
        """
        return grpc_status.verdict(code, metadata, codes.among(self.statuses), read=not judgement.mutation)

    def _known(self, request: Request, path: str, query: str) -> Judgement | None:
        apis, named = self.apis(), googleapis.api(request.host)
        if named is not None:
            return apis[named].request(request, path, query) if named in apis else None
        found = [known for api in apis.values() if (known := api.request(request, path, query))]
        return min(found, key=_repeatable) if found else None


def _repeatable(judgement: Judgement) -> bool:
    return judgement.repeatable
