"""IAM: its APIs, its two policies, and read-modify-write of allow policies.

The APIs are those of accounts, keys, roles and pools (v1), deny policies (v2), bindings (v3) and credentials. The IAM
methods of other APIs, such as `setIamPolicy` of a topic, follow three rows for all of them, unless a service of their
own knows them.
"""

from collections.abc import Callable, Mapping
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, ClassVar

from forbear.core import check
from forbear.core.check import is_mapping
from forbear.core.limits import Limits
from forbear.core.service import Judgement, TableEntry
from forbear.core.verdict import TRANSIENT, Verdict
from forbear.grpc import codes
from forbear.grpc.call import GrpcCall, Metadata
from forbear.http import preconditions
from forbear.http.request import Request, method_overrides
from forbear.http.status import TRANSIENT_STATUSES
from forbear.policy import Policy
from forbear.services import errors
from forbear.services.errors import DOCUMENTED_WAITS, RECOMMENDED_WAITS, policy_of
from forbear.services.iam import any_api
from forbear.tables import google_apis
from forbear.tables.google_apis import ReadBody
from forbear.tables.operations import HttpOperation, RpcOperation, http_operation, rpc_operation
from forbear.tables.service import TableService
from forbear.tables.table import entries

DOCUMENTED_STATUSES = frozenset({500, 502, 503, 504})
"""The statuses that the retry page of IAM calls retryable."""


class AccessService(TableService):
    """The base of the services that the retry page of IAM covers: IAM and Resource Manager.

    - `documented` follows the page, which excepts no request: updates and switches that set a state are repeated
      although there is no precondition for them. A repeat may undo the newer change of another client.
    - `statuses` replaces the transient statuses (408, 429, 500, 502, 503 and 504; with `documented` 500, 502, 503 and
      504).
    - `retry_not_found` makes 404 transient, too. Reads are eventually consistent, so a new resource may not be found
      yet. A 404 that may mean that an earlier attempt worked, as for a delete, stays permanent.
    """

    __slots__ = ("documented", "retry_not_found")

    documented: bool
    retry_not_found: bool

    def __init__(
        self, *, documented: bool = False, statuses: frozenset[int] | None = None, retry_not_found: bool = False
    ) -> None:
        check.flag("documented", documented)
        check.flag("retry_not_found", retry_not_found)
        if statuses is None:
            statuses = DOCUMENTED_STATUSES if documented else TRANSIENT_STATUSES
        super().__init__(statuses=statuses)
        self._set(documented=documented, retry_not_found=retry_not_found)

    def verdict(
        self, judgement: Judgement, status: int, headers: Mapping[str, str], body: ReadBody = None
    ) -> Verdict | None:
        if status == 404 and self._may_appear(judgement, 404):
            return TRANSIENT
        return super().verdict(judgement, status, headers, body)

    def call_verdict(self, judgement: Judgement, code: int, metadata: Metadata = ()) -> Verdict | None:
        if code == codes.NOT_FOUND and self._may_appear(judgement, code):
            return TRANSIENT
        return super().call_verdict(judgement, code, metadata)

    def _may_appear(self, judgement: Judgement, not_found: int) -> bool:
        return self.retry_not_found and not_found not in judgement.maybe_done


class Iam(AccessService):
    """The service IAM: it judges requests, RPCs and responses, by the options of `AccessService`.

    >>> from forbear.http.request import Request
    >>> create = Request("POST", "iam.googleapis.com", "/v1/projects/my-project/roles", body=b'{"roleId": "r"}')
    >>> judgement = Iam().classify(create)
    >>> judgement.operation, judgement.repeatable
    ('iam.projects.roles.create', True)
    """

    __slots__ = ()

    name = "iam"
    folder = Path(__file__).parent
    files: ClassVar = {"iam": ("v1", "v2", "v3"), "iamcredentials": ("credentials",)}

    def tables(self) -> Mapping[str, tuple[TableEntry, ...]]:
        others = entries(self.rows_of(_EVERYWHERE))
        return {name: (*listed, *others) for name, listed in super().tables().items()}

    def classify(self, request: Request) -> Judgement:
        """Return the judgement on a request; one that the tables lack may be an IAM method of another API.

        Its `getIamPolicy` and `testIamPermissions` are reads, and `setIamPolicy` may be repeated with an etag in its
        policy.
        """
        judgement = super().classify(request)
        if judgement.operation is not None or google_apis.api(request.host) in self.files:
            return judgement
        path, query = preconditions.split(request.target)
        name = any_api.method_of(path)
        usual = ("GET", "POST") if name == "getIamPolicy" else ("POST",)
        if name is None or request.method not in usual or any_api.is_storage(request.host):
            return judgement
        if preconditions.is_cut(request.target) or set(method_overrides(request.headers)) - {request.method}:
            return judgement
        return _everywhere()[name].judge(request, query)

    def classify_call(self, call: GrpcCall) -> Judgement:
        judgement = super().classify_call(call)
        name = any_api.rpc_method_of(call.method) if judgement.operation is None else None
        return judgement if name is None else _rpc(call.name, name).judge(call.message)


_EVERYWHERE = "everywhere"


@cache
def _everywhere() -> Mapping[str, HttpOperation]:
    return {row.id.rpartition(".")[2]: http_operation(Iam.name, row) for row in Iam.rows_of(_EVERYWHERE)}


@lru_cache(maxsize=256)
def _rpc(rpc: str, method: str) -> RpcOperation:
    """Return the RPC with the full name `rpc`, which is the IAM method `method` of some API."""
    row = next(row for row in Iam.rows_of(_EVERYWHERE) if row.id.endswith(f".{method}"))
    return rpc_operation(Iam.name, rpc, row)


RECOMMENDED = Iam()
"""The service with its recommended rules."""

DOCUMENTED = Iam(documented=True)


_LIMITS = Limits(attempts=None, timeout=300)


@cache
def documented() -> Policy:
    """Return a policy that follows the retry page of IAM to the letter.

    Waits are `min(2**n + up to 1 s, 64 s)` (the page offers 32 or 64), for five minutes in all as in its example,
    without a limit on attempts. Transient are 500, 502, 503 and 504. 404 is optional on the page:
    `documented.with_retry_not_found()`. A 409 with the status ABORTED calls for a new read-modify-write, as
    `forbear.update` does it with `is_conflict`. The page names no operation that must not be repeated. Here, too, the
    table decides, but writes that set a state are repeated: the update of a service account, `:enable` and `:disable`.

    Warning: these have no precondition. After a lost response a repeat undoes what another client changed in between.
    `policy` does not repeat them.

    One departure: the page lists no transport errors. Here they are transient, around functions too: a lost connection
    says no less than a 503, and a request that may have been executed is not repeated blindly after either.
    """
    return policy_of(DOCUMENTED, _LIMITS, DOCUMENTED_WAITS)


@cache
def policy() -> Policy:
    """Return the recommended policy for IAM.

    It differs from `documented` as follows:

    - Jitter covers half of every wait: retry n waits 2**n to 2**(n+1) s, and 32 to 64 s at the cap. The documented
      formula has no jitter at the cap, so clients that failed together keep coming back together.
    - 429 is transient: the page warns of quotas, and a quota comes back with time.
    - 408 is transient: the server says that it did not receive the whole request.
    - A write without a precondition is not repeated if it may have been executed: a repeat would undo what another
      client changed in between. This concerns the update of a service account, `:enable` and `:disable`.
    """
    return policy_of(RECOMMENDED, _LIMITS, RECOMMENDED_WAITS)


_CONDITION = ("title", "description", "expression")


def is_conflict(error: BaseException) -> bool:
    """Return whether a write failed because another client had changed the resource: read it again and start over.

    True for a 409 whose body has the status ABORTED, for a 412, and for the gRPC code ABORTED; FAILED_PRECONDITION is
    for IAM a state of the system that another read does not change.

    >>> from google.api_core.exceptions import Aborted, NotFound
    >>> is_conflict(Aborted("concurrent policy changes")), is_conflict(NotFound("no such role"))
    (True, False)
    """
    if errors.code_of(error) == codes.ABORTED:
        return True
    status = errors.status_of(error)
    return status == 412 or (status == 409 and google_apis.error_status(errors.body_of(error)) == "ABORTED")


def has_member(role: str, member: str, condition: Mapping[str, str] | None = None) -> Callable[[object], bool]:
    """Return a function that tells whether an allow policy grants `role` to `member`, for `mine` of `forbear.update`.

    The grant must have exactly `condition`: a title, an expression and perhaps a description; None means no condition.
    The policy is a mapping or an object of Google's library.

    >>> mine = has_member("roles/viewer", "user:ana@example.com")
    >>> mine({"bindings": [{"role": "roles/viewer", "members": ["user:ana@example.com"]}]}), mine({})
    (True, False)
    """
    wanted = role, _plain(condition)

    def is_granted(policy: object) -> bool:
        return any(
            (_get(binding, "role"), _plain(_get(binding, "condition"))) == wanted
            and member in (_get(binding, "members") or ())
            for binding in _get(policy, "bindings") or ()
        )

    return is_granted


def _plain(condition: Any) -> tuple[str, ...]:
    return tuple(str(_get(condition, name) or "") for name in _CONDITION)


def _get(thing: Any, name: str) -> Any:
    # The library's Policy is also a mapping, of roles to members, which says nothing of conditions.
    return thing.get(name) if is_mapping(thing) and not hasattr(thing, name) else getattr(thing, name, None)
