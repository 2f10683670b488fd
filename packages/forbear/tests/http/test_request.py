"""Requests: their origin, and what RFC 9110 says of their methods."""

import pickle
from typing import Any

import pytest

from forbear.http import request
from forbear.http.request import Request, find_similar_method, join_headers


def test_a_request_has_defaults() -> None:
    """Without headers and body, a request has none; a body of None is one that is not at hand."""
    described = Request("GET", "example.com", "/x")
    assert described == Request("GET", "example.com", "/x", {}, b"")
    assert described != described.replace(body=None)


def test_a_request_keeps_what_it_is_given() -> None:
    """The headers are not copied: an adapter's own mapping will do."""
    headers = {"a": "b"}
    described = Request("PUT", "h", "/t", headers, b"x")
    assert (described.method, described.host, described.target, described.body) == ("PUT", "h", "/t", b"x")
    assert described.headers is headers


class _Lines(dict[object, object]):
    """A mapping that yields a name more than once, as those of some clients do."""

    def items(self) -> Any:
        return [("If-Match", "*"), (b"X-A", b"\xe9"), ("if-match", '"b"'), (b"IF-MATCH", b'"c"'), ("X-N", 7)]


def test_all_lines_of_a_header_are_joined() -> None:
    """Names in any case, of text or bytes, are one header, and its values stand in order."""
    assert join_headers(_Lines()) == {"if-match": '*, "b", "c"', "x-a": "\xe9", "x-n": "7"}


def test_a_request_can_be_pickled() -> None:
    """It is a plain value."""
    described = Request("GET", "h", "/t", {"a": "b"}, None, "http", 8080)
    assert pickle.loads(pickle.dumps(described)) == described


@pytest.mark.parametrize(
    ("scheme", "host", "port", "origin"),
    [
        ("https", "example.com", None, ("https", "example.com", 443)),
        ("http", "example.com", None, ("http", "example.com", 80)),
        ("HTTP", "Example.COM", 8080, ("http", "example.com", 8080)),
        ("https", "example.com:8443", None, ("https", "example.com", 8443)),
        ("https", "example.com:8443", 443, ("https", "example.com", 443)),
        ("https", "example.com:", None, ("https", "example.com", 443)),
        ("https", "::1", None, ("https", "::1", 443)),
        ("http", "::1", 8080, ("http", "::1", 8080)),
        ("https", "[::1]", None, ("https", "::1", 443)),
        ("https", "[2001:DB8::1]:8443", None, ("https", "2001:db8::1", 8443)),
        ("http", "[::1]:", None, ("http", "::1", 80)),
        ("https", "xn--bcher-kva.example", None, ("https", "xn--bcher-kva.example", 443)),
        ("https", "b\u00fccher.example", None, ("https", "b\u00fccher.example", 443)),
        ("https", "", None, ("https", "", 443)),
        ("https", "example.com:https", None, ("https", "example.com:https", 443)),
        ("https", "example.com:-1", None, ("https", "example.com:-1", 443)),
        ("https", "example.com:" + "4" * 5000, None, ("https", "example.com:" + "4" * 5000, 443)),
    ],
)
def test_the_origin(scheme: str, host: str, port: int | None, origin: tuple[str, str, int]) -> None:
    """The port is the request's own, that of its host, or the scheme's default; IPv6 addresses lose their brackets."""
    assert Request("GET", host, "/x", scheme=scheme, port=port).origin == origin


@pytest.mark.parametrize(
    ("scheme", "host", "port", "authority"),
    [
        ("https", "Example.com", None, "example.com"),
        ("http", "example.com:80", None, "example.com"),
        ("https", "example.com:443", None, "example.com"),
        ("http", "example.com", 4443, "example.com:4443"),
        ("http", "localhost:8080", None, "localhost:8080"),
    ],
)
def test_the_authority(scheme: str, host: str, port: int | None, authority: str) -> None:
    """It has the port, unless that is a usual one."""
    assert Request("GET", host, "/x", scheme=scheme, port=port).authority == authority


def test_the_origin_is_that_of_https_by_default() -> None:
    """A service's own requests need to name neither scheme nor port."""
    assert Request("GET", "storage.googleapis.com", "/x").origin == ("https", "storage.googleapis.com", 443)


@pytest.mark.parametrize(
    ("name", "danger"),
    [
        ("GET", 0), ("HEAD", 0), ("OPTIONS", 0), ("TRACE", 0), ("PUT", 1), ("DELETE", 1), ("PATCH", 2),
        ("POST", 3), ("CONNECT", 3), ("PROPFIND", 3), ("get", 3), ("Put", 3), ("patch", 3), ("", 3), ("GET ", 3),
    ],
)  # fmt: skip
def test_methods_have_the_danger_of_rfc_9110(name: str, danger: int) -> None:
    """Reads are harmless, PUT and DELETE may be executed twice, a PATCH can be guarded, all else is unknown."""
    assert request.danger(name) == danger


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({}, []),
        ({"x-http-method": "patch"}, ["PATCH"]),
        ({"x-method-override": " delete "}, ["DELETE"]),
        ({"x-http-method-override": ""}, [""]),
        ({"x-method-override": "GET", "x-http-method-override": "PUT", "x-other": "POST"}, ["PUT", "GET"]),
    ],
)
def test_each_override_header_counts(headers: dict[str, str], expected: list[str]) -> None:
    """Each of the three override headers counts, upper-cased and stripped, even an empty one."""
    assert request.method_overrides(headers) == expected


@pytest.mark.parametrize(
    ("name", "short"), [("GET", "GET"), ("PATCH", "PATCH"), ("get", "_OTHER"), ("PURGE", "_OTHER"), ("", "_OTHER")]
)
def test_metrics_have_few_labels(name: str, short: str) -> None:
    """Metrics have few labels, whatever methods there are."""
    assert request.method_label(name) == short


def test_the_repr_shows_no_secret() -> None:
    """A traceback with variables shows the method and the URL: no query, header, body or secret path."""
    headers = {"authorization": "Bearer s3cr3t"}
    request = Request("POST", "hooks.example.com", "/x/s3cr3t?key=s3cr3t", headers, b"s3cr3t")
    assert repr(request) == "Request('POST', 'https://hooks.example.com/[redacted]')"


@pytest.mark.parametrize(
    ("target", "authorization", "signed"),
    [
        ("/a", "", False),
        ("/a", "Bearer x", False),
        ("/a", "BASIC x", False),
        ("/a", "GOOG4-RSA-SHA256 Credential=x", True),
        ("/a", "AWS x:y", True),
        ("/a?X-Goog-Signature=1", "", True),
        ("/a?signature=1", "Bearer x", True),
    ],
)
def test_signatures(target: str, authorization: str, signed: bool) -> None:
    """A URL is signed by its query, a request by an unknown scheme of its header."""
    assert request.is_signed(target, authorization) is signed


def _send(body: bytes | None = b"x", target: str = "/t", method: str = "POST", **headers: str) -> Request:
    return Request(method, "h", target, {name.replace("_", "-"): text for name, text in headers.items()}, body)


@pytest.mark.parametrize(
    "other",
    [
        _send(b"y"),
        _send(target="/u"),
        _send(method="PUT"),
        _send(if_match='"1"'),
        _send(x_goog_if_generation_match="1"),
        _send(None),
    ],
)
def test_requests_that_are_not_the_same(other: Request) -> None:
    """Method, URL, conditions and body count; without a body at hand nothing is the same."""
    assert request.identify(other) != request.identify(_send())


def test_requests_that_are_the_same() -> None:
    """Other headers do not count, nor does the boundary of a multipart body, which is drawn anew; its parts do."""
    assert request.identify(_send(date="now")) == request.identify(_send())
    assert request.identify(_send(None)) is None

    def form(boundary: str, part: str) -> object:
        body = f"--{boundary}\r\n\r\n{part}\r\n--{boundary}--".encode()
        return request.identify(_send(body, content_type=f'multipart/form-data; boundary="{boundary}"'))

    assert form("a1b2", "tea") == form("c3d4", "tea")
    assert form("a1b2", "tea") != form("a1b2", "milk")
    assert form("a", "tea") != form("a", "te"), "a boundary is taken out where it is one, not within a part"


@pytest.mark.parametrize(
    ("url", "origin", "folder"),
    [
        ("https://H.example/a/b?c=d", ("https", "h.example", 443), "/a/b/"),
        ("http://h.example/a/", ("http", "h.example", 80), "/a/"),
        ("https://h.example:8443", ("https", "h.example", 8443), "/"),
        ("https://h.example:none/a", ("", None, None), "/"),
    ],
)
def test_the_place_of_a_url(url: str, origin: tuple[str, str | None, int | None], folder: str) -> None:
    """A place is an origin and a folder; a URL that nobody can send is the place of nothing."""
    place = request.Place.of(url)
    assert (place.origin, place.folder) == (origin, folder)


@pytest.mark.parametrize(
    ("method", "meant"),
    [
        ("POTS", "POST"), ("GTE", "GET"), ("PTU", "PUT"), ("DELET", "DELETE"), ("PATHC", "PATCH"), ("GETT", "GET"),
        ("POST", None), ("LIST", None), ("PURGE", None), ("INVOKE", None), ("FETCH", None),
    ],
)  # fmt: skip
def test_a_misspelt_method(method: str, meant: str | None) -> None:
    """The usual method that is meant is found; known methods and new ones are none."""
    assert find_similar_method(method) == meant
