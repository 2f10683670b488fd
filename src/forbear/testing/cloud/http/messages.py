"""One request and one response as plain values; knows HTTP's words, but neither sockets nor what any path means."""

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
    """What the client asked: `path` is percent-encoded, header names are lower case, `host` is how it found us."""

    method: str
    path: str
    query: Mapping[str, str] = field(default_factory=dict[str, str])
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    content: Content = NOTHING
    host: str = "127.0.0.1"
    query_text: str = ""

    @property
    def body(self) -> bytes:
        """The content in one piece, for those who cannot do with less."""
        return bytes(self.content)

    @property
    def target(self) -> str:
        """The path with its query, as it stood in the request line."""
        return f"{self.path}?{self.query_text}" if self.query_text else self.path

    def all(self, name: str) -> list[str]:
        """Every value of a query parameter that may be repeated."""
        return [value for key, value in parse_qsl(self.query_text, keep_blank_values=True) if key == name]


@dataclass(frozen=True, slots=True)
class HttpResponse:
    """What the client is told; the framing (Content-Length, Date) is added when it is sent.

    `measured=False` is a body whose length is not told beforehand: it goes out in chunks.
    """

    status: int
    headers: Headers = ()
    body: bytes | Content = b""
    measured: bool = True


def read_request(method: str, target: str, headers: Mapping[str, str], content: Content, host: str) -> HttpRequest:
    """Build a Request from the parts of the wire, honouring `X-HTTP-Method-Override` on a POST."""
    path, _, query_text = target.partition("?")
    if "://" in path and not path.startswith("/"):
        path = "/" + path.split("://", 1)[1].partition("/")[2]
    if method == "POST" and headers.get("x-http-method-override"):
        method = headers["x-http-method-override"].strip().upper()
    # Reversed, so that the first of several equal names wins, as at the service.
    query = dict(reversed(parse_qsl(query_text, keep_blank_values=True)))
    return HttpRequest(method, path, query, headers, content, headers.get("host") or host, query_text)


def json_response(value: Json, status: int = 200, headers: Headers = ()) -> HttpResponse:
    """A response whose body is JSON."""
    return HttpResponse(
        status, (("Content-Type", "application/json; charset=UTF-8"), *headers), json.dumps(value).encode()
    )


NO_CONTENT = HttpResponse(204)

Request = HttpRequest
Reply = HttpResponse
json_reply = json_response
