"""Request and Judgement: what services are shown and what they answer."""

import pickle

import pytest

from forbear.core.service import Judgement
from forbear.core.verdict import Safety
from forbear.http.request import Request


def test_a_request_has_defaults() -> None:
    """Without headers and body, a request has none; a body of None is one that is not at hand."""
    request = Request("GET", "example.com", "/x")
    assert request == Request("GET", "example.com", "/x", {}, b"")
    assert request != request.replace(body=None)


def test_a_request_keeps_what_it_is_given() -> None:
    """The headers are not copied: an adapter's own mapping will do."""
    headers = {"a": "b"}
    request = Request("PUT", "h", "/t", headers, b"x")
    assert (request.method, request.host, request.target, request.body) == ("PUT", "h", "/t", b"x")
    assert request.headers is headers


def test_a_judgement_is_cautious_by_default() -> None:
    """What nobody vouches for is a mutation that must not be repeated."""
    judgement = Judgement("s", None, Safety.NEVER)
    assert judgement == Judgement("s", None, Safety.NEVER, (), None, False, (), True, False, None)
    assert judgement.mutation
    assert not judgement.repeatable


@pytest.mark.parametrize(
    "value",
    [
        Request("GET", "h", "/t", {"a": "b"}, None),
        Judgement("s", "o", Safety.CONDITIONAL, ("c",), "c", True, (412,), False, True, "r"),
    ],
)
def test_values_can_be_pickled(value: Request | Judgement) -> None:
    """Both are plain values."""
    assert pickle.loads(pickle.dumps(value)) == value


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
    ],
)
def test_the_origin(scheme: str, host: str, port: int | None, origin: tuple[str, str, int]) -> None:
    """The port is the request's own, that of its host, or the scheme's default; IPv6 addresses lose their brackets."""
    assert Request("GET", host, "/x", scheme=scheme, port=port).origin == origin


def test_the_origin_is_that_of_https_by_default() -> None:
    """A service's own requests need to name neither scheme nor port."""
    assert Request("GET", "storage.googleapis.com", "/x").origin == ("https", "storage.googleapis.com", 443)
