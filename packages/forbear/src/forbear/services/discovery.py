"""The service of Google's APIs that no table knows: RFC 9110, and what the discovery document says of a method.

Gmail, Drive and Calendar have no protos. A POST creates, unless the caller chose the id; a DELETE removes one thing if
its path ends with a name, or it has an `id`. If the description of a PUT or DELETE names more, it is not repeated.
"""

import json
import re
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any

from forbear.core.check import is_mapping
from forbear.core.service import Judgement
from forbear.core.verdict import Safety, Verdict
from forbear.http import preconditions
from forbear.http.request import READS, Request
from forbear.services.rfc9110 import DELETE, Rfc9110
from forbear.services.rpcs.google import is_one
from forbear.services.rpcs.rules import NO_RULE
from forbear.tables.google_apis import ReadBody

_NAME = "rfc9110"
_IDS = ("drive.files.create", "calendar.events.insert")
"""The methods whose resource may have an `id` of the caller's; a second request with it finds 409."""
_ONE = re.compile(r".*/\{\+?\w+\}(?::\w+)?")
_MANY = "its path does not end with the name of one resource"
_ACTS = re.compile(
    r"re-?generate[sd]|generates? an|are appended|new revision|server-assigned version|be automatically recreated"
    r"|matching the URL|match an identifier|overlap|^Deletes? all (?!revisions)",
    re.IGNORECASE,
)
"""Words of descriptions: a second PUT makes something new, or a second DELETE hits what came since."""
_MORE = re.compile("(?:force|cascade|purge|recursive|permanent)=true")
_LIMITED = b'ateLimitExceeded"'
"""The end of the reasons of a 403 that asks for fewer requests: rateLimitExceeded and userRateLimitExceeded."""


class Discovered(Rfc9110):
    """The service of one method of an API: its id ("drive.files.create"), and its description in the document."""

    __slots__ = ("method_id", "described")

    method_id: str | None
    described: Mapping[str, Any]

    def __init__(self, method_id: str | None, described: Mapping[str, Any] = MappingProxyType({})) -> None:
        self._set(method_id=method_id, described=described)

    def classify(self, request: Request) -> Judgement:
        """Return the judgement on a request of the method."""
        if request.headers.get("content-type", "").startswith("multipart/mixed"):
            return Judgement(_NAME, None, Safety.NEVER, refused="it is a batch, of which a part may have been executed")
        return self._judge(request, super().classify(request)).replace(operation=self.method_id)

    def _judge(self, request: Request, known: Judgement) -> Judgement:
        path, query = preconditions.split(request.target)
        is_unruled = known.unknown == NO_RULE
        if (known.unknown is not None and not is_unruled) or request.method in READS:
            return known
        if self.described.get("httpMethod") == request.headers.get("x-http-method-override") == "GET":
            return _READ  # its URL would be too long
        if preconditions.value(query, "upload_id") or "content-range" in request.headers:
            if request.headers.get("content-range", "").startswith("bytes */"):
                return _STATUS
            return _CHUNK
        if preconditions.value(query, "uploadType") == "resumable":
            return _START
        if request.method == "POST" and self.method_id in _IDS and _has_id(request.body):
            return _WITH_ID
        if request.method in ("PUT", "DELETE"):
            why = self._find_harm(request.method)
            if why is not None:
                return known.replace(safety=Safety.NEVER, repeatable=False, maybe_done=(), unknown=why)
            if is_unruled and request.method == "DELETE" and is_one(path[1:]) and self._is_plain(query):
                return DELETE
        return known

    def _find_harm(self, method: str) -> str | None:
        """Return the harm that the description names, if a PUT or DELETE is sent twice; None if it names none."""
        if method == "DELETE" and _ONE.fullmatch(self.described.get("path", "")) is None:
            parameter = self._parameters.get("id", {})
            if not parameter.get("required") or parameter.get("repeated"):
                return _MANY
        harm = _ACTS.search(self.described.get("description", ""))
        return None if harm is None else f"its description has {harm[0]!r}"

    @property
    def _parameters(self) -> Mapping[str, Any]:
        found: Mapping[str, Any] = self.described.get("parameters", {})
        return found

    def _is_plain(self, query: str) -> bool:
        """Return whether a DELETE has the etag, if there is one, and deletes no more than the resource."""
        has_version = "etag" not in self._parameters or bool(preconditions.value(query, "etag"))
        return (self.method_id or "").endswith(".delete") and has_version and _MORE.search(query) is None

    def verdict(
        self, judgement: Judgement, status: int, headers: Mapping[str, str], body: ReadBody = None
    ) -> Verdict | None:
        """Return the verdict by status; a 403 may ask for fewer requests, as a 429 does."""
        if status == 403 and body is not None and _LIMITED in (body() or b""):
            status = 429
        return super().verdict(judgement, status, headers, body)


_READ = Judgement(_NAME, None, Safety.ALWAYS, repeatable=True, mutation=False)
_START = Judgement(_NAME, None, Safety.ALWAYS, repeatable=True)  # an upload that nobody continues creates nothing
_CHUNK = Judgement(_NAME, None, Safety.NEVER, session=True)
_STATUS = Judgement(_NAME, None, Safety.ALWAYS, repeatable=True, mutation=False, session=True)
_WITH_ID = Judgement(
    _NAME, None, Safety.CONDITIONAL, ("id in the body",), met="id in the body", repeatable=True, maybe_done=(409,)
)


def _has_id(body: bytes | None) -> bool:
    try:
        resource: Any = json.loads(body or b"")
    except ValueError:
        return False
    return is_mapping(resource) and isinstance(resource.get("id"), str) and resource["id"] != ""


def list_methods(document: Mapping[str, Any]) -> Iterator[Discovered]:
    """Yield the service of each method in a discovery document."""
    for method in document.get("methods", {}).values():
        yield Discovered(method["id"], method)
    for inner in document.get("resources", {}).values():
        yield from list_methods(inner)
