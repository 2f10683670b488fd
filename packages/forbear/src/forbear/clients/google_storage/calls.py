"""Find the request that a call of google-cloud-storage sends or sent, and judge it and its errors.

A request is taken from the arguments of the call, from the failed attempt's error, or from the function that sends an
upload. Nothing is guessed from the name of a method. A failed chunk of a resumable upload is never sent again blindly:
forbear queries the session for the bytes it has, and sends only the rest. A function that keeps its request elsewhere
is not continued.
"""

import json
from collections.abc import Callable, Mapping
from inspect import getclosurevars, isfunction
from typing import Any
from urllib.parse import urlencode, urlsplit

from requests.structures import CaseInsensitiveDict

from forbear.core.chain import chain
from forbear.core.service import Judgement
from forbear.core.verdict import Safety, Verdict
from forbear.exchange.http.send import ChunkSession, Variation
from forbear.http.request import Request, join_headers
from forbear.services import errors
from forbear.services.cloud_storage.service import RECOMMENDED
from forbear.services.errors import ErrorVerdicts, verdict_of_one_request

VERDICTS = ErrorVerdicts(RECOMMENDED)

_READ = Judgement(RECOMMENDED.name, None, Safety.ALWAYS, repeatable=True, mutation=False)
_UNKNOWN = Judgement(RECOMMENDED.name, None, Safety.NEVER)
_CHUNK = "a chunk may have arrived and must not be sent again before a query of its session"


def verdict_of(error: Exception) -> Verdict:
    """Return the verdict on an error of a call of the client, which is always a single request.

    An error with an HTTP status or a gRPC code is judged by the rules of Cloud Storage. Any other is TRANSIENT (outcome
    unknown) if it is one of the connection, otherwise PERMANENT. It is NOT_EXECUTED if no connection was made for a
    write, or if the credentials could not be fetched.
    """
    if errors.status_of(error) is None and errors.code_of(error) is None:
        return verdict_of_one_request(error)
    return VERDICTS(error)


def judgement_of(request: Request | None, *, read: bool) -> Judgement:
    """Return the judgement on a call that sent `request`; of an unknown one (None), only a `read` is safe."""
    if request is None:
        return _READ if read else _UNKNOWN
    judgement = RECOMMENDED.classify(request)
    return judgement.replace(refused=_CHUNK) if judgement.session and not judgement.repeatable else judgement


def request_of_call(arguments: Mapping[str, Any]) -> Request:
    """Return the request that the client makes from `arguments`, those of its `api_request` by name."""
    query: Any = arguments.get("query_params") or ()
    headers: Mapping[str, str] = arguments.get("headers") or {}
    data = arguments.get("data")
    target = f"/storage/v1{arguments['path']}?{urlencode(query, doseq=True)}"
    body = b"" if data is None else (data if isinstance(data, str) else json.dumps(data)).encode()
    return Request(arguments["method"], "storage.googleapis.com", target, join_headers(headers), body)


def request_of_error(error: BaseException) -> Request | None:
    """Return the request that a failed attempt sent, read from `error` or its causes; None if they do not have it."""
    for cause in chain(error):
        for place in (cause, getattr(cause, "response", None)):
            request: Any = getattr(place, "request", None)
            if isinstance(getattr(request, "url", None), str):
                return request_of(request)
    return None


def request_of_upload(method: str, address: str, headers: Mapping[str, Any], content: bytes | None) -> Request:
    """Return the request with this method, URL (`address`), headers and body; `content` None is an unknown body."""
    url = urlsplit(address)
    target = url._replace(scheme="", netloc="", fragment="").geturl()
    return Request(method, url.netloc, target, join_headers(headers), content, url.scheme)


def request_of(request: Any) -> Request:
    """Return a prepared request of requests as a Request, whose body is None if it is not in memory."""
    body = request.body.encode() if isinstance(request.body, str) else request.body
    content = b"" if body is None else body if isinstance(body, bytes) else None
    return request_of_upload(request.method, request.url, request.headers, content)


_HASH = "x-goog-hash"  # the hash of the whole object, which a status query does not complete


def sending_of(function: Callable[..., Any]) -> "Sending | None":
    """Return the request in the variables of `function`, one of the client's uploads of bytes; None for any other."""
    if not isfunction(function):
        return None
    names: Mapping[str, Any] = getclosurevars(function).nonlocals
    if not {"self", "transport", "method", "url", "payload", "headers", "timeout"} <= names.keys():
        return None
    payload = names["payload"]
    return None if payload is not None and not isinstance(payload, bytes) else Sending(names)


class Sending:
    """One request of an upload, read from the variables of the function that sends it (`names`, by name)."""

    __slots__ = ("_names", "_session", "request")

    def __init__(self, names: Mapping[str, Any]) -> None:
        self._names = names
        self._session: ChunkSession | None = None
        self.request: Request = request_of_upload(
            names["method"], names["url"], names["headers"], names["payload"] or b""
        )

    def can_resume(self) -> bool:
        """Return whether the request is a chunk of a resumable upload whose headers say which bytes it has."""
        if self._session is None:
            resumes = hasattr(self._names["self"], "_process_resumable_response")
            self._session = ChunkSession.of(self.request) if resumes else None
        return self._session is not None

    def has_progressed(self) -> bool:
        """Return whether the session received more bytes since this method was last called; False before any query."""
        return self._session is not None and self._session.has_progressed()

    def resume(self) -> Any:
        """Query the session for the bytes it has, send the missing rest of the chunk, and return the last response.

        The response has the client's own type; the client's upload object has processed it, and may raise for its
        status.
        """
        session: Any = self._session
        response = self._send(session.ask(RECOMMENDED, self.request))
        headers = {name.lower(): value for name, value in response.headers.items()}
        rest = session.responded(response.status_code, headers)
        if rest is not None:
            response = self._send(rest)
        self._names["self"]._process_resumable_response(response, len(self._names["payload"]))
        return response

    def _send(self, variation: Variation) -> Any:
        names = self._names
        headers: CaseInsensitiveDict[Any] = CaseInsensitiveDict(names["headers"])
        variation.adjust(headers)
        headers.pop("content-length", None)  # the session of requests counts it
        if variation.skip is None:
            headers.pop(_HASH, None)
        body = b"" if variation.skip is None else names["payload"][variation.skip :]
        return names["transport"].request(
            names["method"], names["url"], data=body, headers=headers, timeout=names["timeout"]
        )


_REPLACES = "pass if_generation_match=0 for a new object, or the generation that is to be replaced"
_POLICY = "pass the policy that get_iam_policy() returned, which has an etag"

CURES = {
    "storage.buckets.patch": "pass if_metageneration_match=bucket.metageneration",
    "storage.buckets.setIamPolicy": _POLICY,
    "storage.buckets.update": "pass if_metageneration_match=bucket.metageneration",
    "storage.objects.compose": _REPLACES,
    "storage.objects.copy": _REPLACES,
    "storage.objects.delete": "pass if_generation_match=blob.generation",
    "storage.objects.insert": _REPLACES,
    "storage.objects.move": _REPLACES,
    "storage.objects.patch": "pass if_metageneration_match=blob.metageneration",
    "storage.objects.restore": _REPLACES,
    "storage.objects.rewrite": _REPLACES,
    "storage.objects.setIamPolicy": _POLICY,
    "storage.objects.update": "pass if_metageneration_match=blob.metageneration",
}
"""The cures by operation; other operations have no argument of the client that would help."""


def cure_of(judgement: Judgement) -> str | None:
    """Return what a caller must pass so that a call with this judgement may be repeated, None if nothing helps."""
    if judgement.repeatable or judgement.refused is not None:
        return None
    return CURES.get(judgement.operation or "")
