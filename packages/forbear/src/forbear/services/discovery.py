"""The service of Google's APIs that no table knows: RFC 9110, and what a method's path in its discovery document says.

Gmail, Drive and Calendar have no protos. A POST creates, unless the caller chose the id; a DELETE removes one thing if
its path ends with the name of it.
"""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from forbear.core.check import is_mapping
from forbear.core.service import Judgement
from forbear.core.verdict import Safety, Verdict
from forbear.http import preconditions
from forbear.http.request import READS, Request
from forbear.services.rfc9110 import Rfc9110
from forbear.tables.google_apis import ReadBody

_NAME = "rfc9110"
_IDS = ("drive.files.create", "calendar.events.insert")
"""The methods whose resource may have an `id` of the caller's; a second request with it finds 409."""
_ONE = re.compile(r".*/\{\+?\w+\}")
_MANY = "its path does not end with the name of one resource"
_LIMITED = b'ateLimitExceeded"'
"""The end of the reasons of a 403 that asks for fewer requests: rateLimitExceeded and userRateLimitExceeded."""


class Discovered(Rfc9110):
    """The service of one method of an API: its id ("drive.files.create"), and `verb` and `path` of its description."""

    __slots__ = ("method_id", "verb", "path")

    method_id: str | None
    verb: str
    path: str

    def __init__(self, method_id: str | None, verb: str = "", path: str = "") -> None:
        self._set(method_id=method_id, verb=verb, path=path)

    def classify(self, request: Request) -> Judgement:
        """Return the judgement on a request of the method."""
        if request.headers.get("content-type", "").startswith("multipart/mixed"):
            return Judgement(_NAME, None, Safety.NEVER, refused="it is a batch, of which a part may have been executed")
        return self._judge(request, super().classify(request)).replace(operation=self.method_id)

    def _judge(self, request: Request, known: Judgement) -> Judgement:
        query = preconditions.split(request.target)[1]
        if known.unknown is not None or request.method in READS:
            return known
        if self.verb == request.headers.get("x-http-method-override") == "GET":
            return _READ  # its URL would be too long
        if preconditions.value(query, "upload_id") or "content-range" in request.headers:
            if request.headers.get("content-range", "").startswith("bytes */"):
                return _STATUS
            return _CHUNK
        if preconditions.value(query, "uploadType") == "resumable":
            return _START
        if request.method == "POST" and self.method_id in _IDS and _has_id(request.body):
            return _WITH_ID
        if request.method == "DELETE" and _ONE.fullmatch(self.path) is None:
            return known.replace(safety=Safety.NEVER, repeatable=False, maybe_done=(), unknown=_MANY)
        return known

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
        yield Discovered(method["id"], method["httpMethod"], method["path"])
    for inner in document.get("resources", {}).values():
        yield from list_methods(inner)
