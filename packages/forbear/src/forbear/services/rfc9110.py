"""The service of unknown hosts: RFC 9110 alone decides, by method and precondition.

Reads, PUT and DELETE may be repeated (§9.2.2). PATCH may be repeated only under a precondition that cannot hold twice.
Other methods are never repeated: they may change something other than the target whose version the precondition names.
APIs of Google have exceptions: a write that notifies people, and a GET that acts, are never repeated, and the rules for
RPCs judge a PUT or DELETE that stands for one. Azure Storage has PUTs that append, count or make a snapshot. If a
header overrides the method, the more dangerous of the two methods counts, because not every server obeys it.
"""

import re
from collections.abc import Mapping

from forbear.core.record import Record
from forbear.core.service import Judgement, TableEntry
from forbear.core.verdict import Safety, Verdict
from forbear.grpc import codes
from forbear.http import preconditions
from forbear.http import status as http_status
from forbear.http.request import IDEMPOTENT, READS, Request, danger, method_overrides
from forbear.policy import Policy
from forbear.services.errors import ErrorVerdicts
from forbear.tables import google_apis
from forbear.tables.google_apis import ReadBody

_NAME = "rfc9110"
_READ = Judgement(_NAME, None, Safety.ALWAYS, repeatable=True, mutation=False)
# A 412 answers only a request with a precondition, which the caller's own first attempt may have broken.
_PUT = Judgement(_NAME, None, Safety.ALWAYS, repeatable=True, maybe_done=(412,))
DELETE = Judgement(_NAME, None, Safety.ALWAYS, repeatable=True, maybe_done=(404, 410, 412))
_NEVER = Judgement(_NAME, None, Safety.NEVER)
_IF_MATCH = Judgement(
    _NAME, None, Safety.CONDITIONAL, conditions=("If-Match:",), met="If-Match:", repeatable=True, maybe_done=(412,)
)
_IF_NONE = _IF_MATCH.replace(conditions=("If-Match:", "If-None-Match: *"), met="If-None-Match: *")


class Rfc9110(Record):
    """The service that judges requests to any host, and responses, by RFC 9110 alone; it has no operations.

    >>> from forbear.http.request import Request
    >>> [Rfc9110().classify(Request(method, "api.example.com", "/orders/7")).repeatable for method in ("PUT", "POST")]
    [True, False]
    """

    __slots__ = ()

    name: str = _NAME
    token_header: None = None
    """None: there is no header by which every API drops duplicates."""

    def tables(self) -> Mapping[str, tuple[TableEntry, ...]]:
        return {}

    def classify(self, request: Request) -> Judgement:
        """Return the judgement by method and preconditions; of several methods the most dangerous counts."""
        overrides = method_overrides(request.headers)
        verb = max(request.method, *overrides, key=danger) if overrides else request.method
        if google_apis.is_google(request.host):
            why = _find_exception(request)
            if why is not None:
                return _NEVER.replace(unknown=why)
            if verb in ("PUT", "DELETE"):
                return _judge_as_rpc(request) if {request.method}.issuperset(overrides) else _NEVER
        if verb in READS:
            return _READ
        if verb in IDEMPOTENT:
            if verb == "DELETE":
                return DELETE
            is_azure = _AZURE in request.headers or request.host.endswith(_AZURE_HOSTS)
            return _judge_azure(request) if is_azure else _PUT
        # A PATCH changes its target; a POST may create something elsewhere, and leave the target's version as it is.
        if verb == "PATCH":
            if preconditions.has_strong_tag(request.headers):
                return _IF_MATCH
            if request.headers.get("if-none-match", "").strip() == "*":
                return _IF_NONE
        return _NEVER

    def verdict(
        self, judgement: Judgement, status: int, headers: Mapping[str, str], body: ReadBody = None
    ) -> Verdict | None:
        return http_status.verdict(status)


_AZURE = "x-ms-version"
"""The header of each request to Azure Storage; learn.microsoft.com/rest/api/storageservices has a page for each."""
_AZURE_HOSTS = ".core.windows.net"  # a signed URL names the version in its query
_AT = "x-ms-blob-condition-appendpos:"
_APPENDS_AT = _IF_MATCH.replace(conditions=(_AT,), met=_AT)
_APPENDS = _NEVER.replace(safety=Safety.CONDITIONAL, conditions=(_AT,))
_COUNTS = _NEVER.replace(unknown="it would count twice")
_SNAPSHOT = _NEVER.replace(unknown="it would make a second snapshot")
_LEASES = _PUT.replace(maybe_done=(409, 412))
_RENAMES = _PUT.replace(maybe_done=(404, 412))


def _judge_azure(request: Request) -> Judgement:
    """Return the judgement on a PUT to Azure Storage: some add to what is there."""
    parts = preconditions.values(preconditions.split(request.target)[1], "comp")
    headers = request.headers
    if "appendblock" in parts:
        return _APPENDS_AT if _AT[:-1] in headers else _APPENDS
    if "snapshot" in parts:
        return _SNAPSHOT
    if "lease" in parts:
        return _LEASES
    if headers.get("x-ms-sequence-number-action", "").lower() == "increment":
        return _COUNTS
    return _RENAMES if "x-ms-rename-source" in headers else _PUT


_NOTIFIES = ("sendUpdates", "sendNotifications", "sendNotificationEmail")
_SILENT = frozenset({"", "none", "false"})
_ACCESS = re.compile(r"/calendar/v3/calendars/[^/]+/acl/.+")
"""Rules of access to calendars: a PUT tells people of it by mail, unless it has `sendNotifications=false`."""
_MAILS = "without sendNotifications=false it would send mail twice"
# services/rpcs/rows.csv has their RPCs; /v0/ is Firebase Storage, whose paths end with names that users choose
_ACTING = re.compile(r"/v[1-9]\w*/[^?]*:(?:collect|restore|startOAuthFlow|finishOAuthFlow)")


def _find_exception(request: Request) -> str | None:
    """Return why a request to an API of Google is never repeated although its method is harmless, None if it is not."""
    path, query = preconditions.split(request.target)
    if request.method in READS:
        return "this GET acts, as its RPC does" if _ACTING.fullmatch(path) else None
    name = next((name for name in _NOTIFIES if not _SILENT.issuperset(preconditions.values(query, name))), None)
    if name is not None:
        return f"with {name}= it would send its notifications twice"
    is_silent = request.method != "PUT" or preconditions.value(query, "sendNotifications") == "false"
    return None if is_silent or _ACCESS.fullmatch(path) is None else _MAILS


def _judge_as_rpc(request: Request) -> Judgement:
    """Return the judgement on a PUT or DELETE to an API of Google: that on its RPC, or by RFC 9110 for one without."""
    from forbear.services.rpcs import RpcJudgement, rules  # reads a long list

    known = _PUT if request.method == "PUT" else DELETE
    ruled = rules.judge_json(request.host, request.method, request.target)
    if ruled is None:
        return known
    if not ruled.repeatable:
        why = ruled.why if isinstance(ruled, RpcJudgement) and not ruled.conditions else None
        return _NEVER.replace(safety=ruled.safety, conditions=ruled.conditions, unknown=why)
    met = re.sub("_(.)", lambda match: match[1].upper(), ruled.met or "")
    done = codes.to_http(ruled.maybe_done)
    return known.replace(met=f"{met}=" if met in ("etag", "uid", "requestId") else None, maybe_done=(*done, 412))


RECOMMENDED = RFC9110 = Rfc9110()

policy = Policy(ErrorVerdicts(RFC9110), service=RFC9110)
"""The policy for unknown HTTP APIs: at most 5 attempts within 60 s, full jitter under 1, 2, 4 … s."""
