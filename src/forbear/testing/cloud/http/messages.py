"""HTTP requests and responses, and JSON, as plain values."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias
from urllib.parse import parse_qsl

from forbear.testing.cloud.http.content import NOTHING, Content

Json: TypeAlias = "bool | int | float | str | Sequence[Json] | Mapping[str, Json] | None"
JsonObject: TypeAlias = "dict[str, Json]"
Headers: TypeAlias = "tuple[tuple[str, str], ...]"


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """A request as the client sent it.

    `path` is still percent-encoded, and header names are in lower case. `query` has the first value of each parameter;
    `query_text` is the whole query as sent. `host` is the Host header, or the server's own address without one.
    """

    method: str
    path: str
    query: Mapping[str, str] = field(default_factory=dict[str, str])
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    content: Content = NOTHING
    host: str = "127.0.0.1"
    query_text: str = ""

    @property
    def body(self) -> bytes:
        """Return the content as one bytes object, which copies it if it came in several pieces."""
        return bytes(self.content)

    @property
    def target(self) -> str:
        """Return the path with its query, as in the request line."""
        return f"{self.path}?{self.query_text}" if self.query_text else self.path

    def all(self, name: str) -> list[str]:
        """Return every value of a query parameter that may be repeated."""
        return [value for key, value in parse_qsl(self.query_text, keep_blank_values=True) if key == name]


@dataclass(frozen=True, slots=True)
class HttpResponse:
    """A response without the headers that frame it (Content-Length, Date), which are added when it is sent.

    With `measured=False` the response does not state the length of its body, and is sent in chunks.
    """

    status: int
    headers: Headers = ()
    body: bytes | Content = b""
    measured: bool = True


def read_request(method: str, target: str, headers: Mapping[str, str], content: Content, host: str) -> HttpRequest:
    """Return the request that these parts describe; `host` is the default for a missing Host header.

    The header `X-HTTP-Method-Override` of a POST replaces its method.
    """
    path, _, query_text = target.partition("?")
    if "://" in path and not path.startswith("/"):
        path = "/" + path.split("://", 1)[1].partition("/")[2]
    if method == "POST" and headers.get("x-http-method-override"):
        method = headers["x-http-method-override"].strip().upper()
    # Reversed, so that the first value of a repeated parameter wins, as in the real service.
    query = dict(reversed(parse_qsl(query_text, keep_blank_values=True)))
    return HttpRequest(method, path, query, headers, content, headers.get("host") or host, query_text)


def json_response(value: Json, status: int = 200, headers: Headers = ()) -> HttpResponse:
    """Return a response whose body is `value` as JSON."""
    return HttpResponse(
        status, (("Content-Type", "application/json; charset=UTF-8"), *headers), json.dumps(value).encode()
    )


NO_CONTENT = HttpResponse(204)

Request = HttpRequest
Reply = HttpResponse
json_reply = json_response
