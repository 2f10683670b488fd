"""The port of requests: the object by which forbear's retry loop sends one request, with its timeouts and its body."""

from collections.abc import Callable, Iterator, Mapping
from io import BytesIO
from typing import Any
from urllib.parse import urlsplit
from weakref import ref

import requests
import urllib3
from requests.structures import CaseInsensitiveDict

from forbear.clients._urllib3 import verdict_of
from forbear.clients.requests.response import copy_response, keep, pieces
from forbear.core.verdict import Verdict
from forbear.evidence.sent import MOST_BODY
from forbear.exchange.http.drive import Port
from forbear.exchange.http.options import HttpOptions
from forbear.exchange.http.send import Body, Variation, body_of_file
from forbear.http.status import reason

Timeout = float | tuple[float | None, float | None] | urllib3.Timeout | None


def limit_timeout(timeout: Timeout, limit: float | None) -> Timeout:
    """Return the timeouts of an attempt: the caller's `timeout`, but at most `limit` seconds for each part.

    Of a urllib3.Timeout only the total is limited. A missing timeout becomes `limit`; `limit` None changes nothing.
    """
    if limit is None:
        return timeout
    if isinstance(timeout, urllib3.Timeout):
        shorter = timeout.clone()
        shorter.total = _least(timeout.total, limit)
        return shorter
    connect, read = timeout if isinstance(timeout, tuple) else (timeout, timeout)
    return _least(connect, limit), _least(read, limit)


def _least(own: object, limit: float) -> float:
    return min(own, limit) if isinstance(own, int | float) else limit


_WRAPPING = (requests.ConnectionError, requests.Timeout, requests.exceptions.ChunkedEncodingError)


class RequestsPort(Port[requests.Response]):
    """The port of requests: it sends one request, varied or not, by `send` (the adapter's own method)."""

    __slots__ = ("raw", "_request", "_send", "_timeout")

    can_read_back = True

    raw: "ref[Any] | None"  # of the response whose body is continued

    def __init__(
        self,
        options: HttpOptions,
        send: Callable[..., requests.Response],
        request: requests.PreparedRequest,
        timeout: Timeout,
    ) -> None:
        self.raw = None
        self._send = send
        self._request = request
        self._timeout = timeout
        plain = request.body is None or isinstance(request.body, bytes | str)
        super().__init__(options, str(request.method), plain=plain)

    def _mark(self) -> object:
        return self._request.url

    def _is_small(self) -> bool:
        return len(self._request.body or b"") <= MOST_BODY

    def _target(self) -> tuple[str, str]:
        return urlsplit(str(self._request.url)).hostname or "", self._request.path_url

    def _scheme_and_port(self) -> tuple[str, int | None]:
        url = urlsplit(str(self._request.url))
        return url.scheme, url.port

    def _headers(self) -> Mapping[Any, Any]:
        return self._request.headers

    def _read_body(self) -> Body:
        return body_of_file(self._request.body, self._options.buffer)

    def first(self) -> requests.Response:
        return self._send(self._request, timeout=self._timeout)

    def send(self, variation: Variation, limit: float | None) -> requests.Response:
        response = self._send(self._next(variation), timeout=limit_timeout(self._timeout, limit))
        response.request = self._request
        return response

    def adopt(self, seen: Mapping[str, str], response: requests.Response) -> None:
        super().adopt(seen, response)
        raw = None if self.raw is None else self.raw()
        if raw is not None:
            raw.length_remaining = response.raw.length_remaining

    def chunks(self, response: requests.Response) -> Iterator[bytes]:
        return pieces(response)

    def keep(self, response: requests.Response, content: bytes, rest: Iterator[bytes] | None = None) -> None:
        if rest is None:
            response.close()
        keep(response, content, rest)

    def copy(self, response: requests.Response, content: bytes) -> requests.Response:
        copy = copy_response(response)
        keep(copy, content)
        return copy

    def read_back(self, target: str, headers: Mapping[str, str], limit: float) -> requests.Response:
        read: Any = self._request.copy()
        read.method, read.body = "GET", None
        read.headers = CaseInsensitiveDict(headers)
        url = urlsplit(str(self._request.url))
        read.url = f"{url.scheme}://{url.netloc}{target}"
        return self._send(read, timeout=limit_timeout(self._timeout, limit))

    def answer(self, response: requests.Response, status: int, headers: Mapping[str, str], content: bytes) -> None:
        known: Any = response
        known.status_code, known.reason = status, reason(status).partition(" ")[2]
        known.headers = CaseInsensitiveDict(headers)
        known.raw = urllib3.HTTPResponse(
            BytesIO(content), headers, status, reason=known.reason, preload_content=False,
            original_response=getattr(known.raw, "_original_response", None),
        )  # fmt: skip
        known._content, known._content_consumed = False, False

    def close(self, response: requests.Response) -> None:
        response.close()

    def verdict(self, error: Exception) -> Verdict:
        return verdict_of(error, *_WRAPPING)

    def broken(self, text: str) -> Exception:
        return requests.exceptions.ChunkedEncodingError(urllib3.exceptions.ProtocolError(text))

    def _next(self, variation: Variation) -> requests.PreparedRequest:
        request, body = self._request, self._body
        if variation.is_original and self._token is None and not body.once:
            return request
        varied: Any = request.copy()
        for name in [name for name in varied.headers if isinstance(name, bytes)]:  # `_adjust` finds only text
            varied.headers[name.decode("latin-1")] = varied.headers.pop(name)
        if variation.skip is None:
            varied.body = None
        elif variation.skip or body.once:
            varied.body = body.chunks(variation.skip)
        if variation.query:
            parts = urlsplit(str(varied.url))
            varied.url = parts._replace(query="&".join(filter(None, (parts.query, variation.query)))).geturl()
        self._adjust(varied.headers, variation)
        return varied  # type: ignore[no-any-return]
