"""What a call of google-cloud-storage asked for and what its error means, read off by their shapes. It imports nothing.

The rule: a request is told only where it is seen; nothing is guessed from the name of a method.
"""

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode, urlsplit

from forbear.core.verdict import Safety, Verdict
from forbear.http.request import Judgement, Request
from forbear.services import shapes
from forbear.services.cloud_storage.service import RECOMMENDED
from forbear.services.failures import Failures, of_one_request

JUDGE = Failures(RECOMMENDED)

_READ = Judgement(RECOMMENDED.name, None, Safety.ALWAYS, repeatable=True, mutation=False)
_UNKNOWN = Judgement(RECOMMENDED.name, None, Safety.NEVER)
_CHUNK = "a chunk may have arrived and must not be sent again before its session was asked what it has"


def verdict_on(error: Exception) -> Verdict:
    """Judge an error of the client, each of whose calls is one request."""
    return of_one_request(error) if shapes.status(error) is None and shapes.code(error) is None else JUDGE(error)


def judged_as(request: Request | None, *, read: bool) -> Judgement:
    """What is known of a call that made `request`; where that is None, only whether it was a `read`."""
    if request is None:
        return _READ if read else _UNKNOWN
    judgement = RECOMMENDED.classify(request)
    return judgement.replace(refused=_CHUNK) if judgement.session and not judgement.repeatable else judgement


def asked(arguments: Mapping[str, Any]) -> Request:
    """The request that the client makes of the arguments of its `api_request`."""
    query: Any = arguments.get("query_params") or ()
    headers: Mapping[str, str] = arguments.get("headers") or {}
    data = arguments.get("data")
    target = f"/storage/v1{arguments['path']}?{urlencode(query, doseq=True)}"
    lowered = {name.lower(): value for name, value in headers.items()}
    body = b"" if data is None else (data if isinstance(data, str) else json.dumps(data)).encode()
    return Request(arguments["method"], "storage.googleapis.com", target, lowered, body)


def sent(error: Exception) -> Request | None:
    """The request that a failed attempt sent, None where its error does not carry it."""
    for cause in shapes.causes(error):
        for place in (cause, getattr(cause, "response", None)):
            request: Any = getattr(place, "request", None)
            if isinstance(getattr(request, "url", None), str):
                return _read(request)
    return None


def of_upload(method: str, address: str, headers: Mapping[str, Any], content: bytes | None) -> Request:
    """Return the request that a function of the client sends; `content` is None where it is not at hand."""
    url = urlsplit(address)
    lowered = {name.lower(): str(value) for name, value in headers.items()}
    return Request(method, url.netloc, url._replace(scheme="", netloc="", fragment="").geturl(), lowered, content)


def _read(request: Any) -> Request:
    body = request.body.encode() if isinstance(request.body, str) else request.body
    content = b"" if body is None else body if isinstance(body, bytes) else None
    return of_upload(request.method, request.url, request.headers, content)
