"""Descriptions of APIs: origins, what their responses mean, and which values are refused."""

import itertools
import pickle
from typing import Any

import pytest

from forbear.core.service import OperationSet
from forbear.core.verdict import CONFLICT, PERMANENT, TRANSIENT, Kind, Verdict
from forbear.http.api import Api, IdempotencyKey, check_apis
from forbear.http.patterns import covers
from forbear.http.request import Request

ORIGIN = "https://api.example.com"
THROTTLED = Verdict(Kind.TRANSIENT, throttled=True)
GITHUB = Api(ORIGIN, throttles=[403])
SDK = Api(ORIGIN, transient=[409, 529], retry_headers="X-Should-Retry")
REFUSES = Api(ORIGIN, not_executed=[429, 404], transient=[429])


@pytest.mark.parametrize(
    ("origin", "request_", "expected"),
    [
        (ORIGIN, Request("POST", "api.example.com", "/"), True),
        (f"{ORIGIN}/", Request("POST", "API.example.com:443", "/a?b"), True),
        (ORIGIN, Request("POST", "api.example.com", "/", scheme="http"), False),
        (ORIGIN, Request("POST", "api.example.com:8443", "/"), False),
        (ORIGIN, Request("POST", "b.api.example.com", "/"), False),
        ("http://api.example.com:8443", Request("POST", "api.EXAMPLE.com", "/", scheme="http", port=8443), True),
        ("https://[::1]:8080", Request("POST", "[::1]:8080", "/"), True),
        ("https://*.example.com", Request("POST", "api.example.com", "/"), True),
        ("https://*.example.com", Request("POST", "a.b.example.com", "/"), False),
        ("https://*.example.com", Request("POST", "example.com", "/"), False),
        ("https://*.example.com", Request("POST", "api.example.com", "/", scheme="http"), False),
    ],
)
def test_an_api_is_at_one_origin(origin: str, request_: Request, expected: bool) -> None:
    """Scheme, host and port must agree; a star stands for the first label of the host."""
    assert Api(origin).is_for(request_.origin) is expected


@pytest.mark.parametrize(
    ("api", "verdict", "status", "headers", "has_wait", "expected"),
    [
        (SDK, PERMANENT, 409, {}, False, TRANSIENT),
        (SDK, PERMANENT, 529, {}, False, THROTTLED),
        (SDK, PERMANENT, 400, {}, False, PERMANENT),
        (SDK, PERMANENT, 400, {"x-should-retry": "true"}, False, TRANSIENT),
        (SDK, TRANSIENT, 500, {"x-should-retry": "False"}, False, PERMANENT),
        (SDK, TRANSIENT, 500, {"x-should-retry": "true"}, False, TRANSIENT),
        (SDK, PERMANENT, 409, {"x-should-retry": "false"}, False, PERMANENT),
        (SDK, CONFLICT, 409, {}, False, CONFLICT),
        (GITHUB, PERMANENT, 403, {}, False, PERMANENT),
        (GITHUB, PERMANENT, 403, {}, True, THROTTLED),
        (REFUSES, THROTTLED, 429, {}, False, THROTTLED.replace(kind=Kind.NOT_EXECUTED)),
        (REFUSES, PERMANENT, 404, {}, False, Verdict(Kind.NOT_EXECUTED)),
        (REFUSES, TRANSIENT, 500, {}, False, TRANSIENT),
    ],
    ids=itertools.count(),
)
def test_responses(
    api: Api, verdict: Verdict, status: int, headers: dict[str, str], has_wait: bool, expected: Verdict
) -> None:
    """A status means what the API says, and the header that asks for no retry goes before all else."""
    assert api.refine(verdict, status, headers, has_wait=has_wait) == expected


def test_a_batch_is_never_refused_as_a_whole() -> None:
    """No status proves that nothing was executed where a part may have been."""
    assert REFUSES.refine(THROTTLED, 429, {}, has_wait=False, may_refuse=False) == THROTTLED
    assert REFUSES.refine(PERMANENT, 404, {}, has_wait=False, may_refuse=False) is PERMANENT


def test_the_user_s_words_join_ours() -> None:
    """Statuses and headers of both count; where both know a header, the user's unit does."""
    mine = Api(ORIGIN, transient=[409], wait_headers={"x-a": "epoch"}, key=IdempotencyKey("Key"))
    ours = Api(ORIGIN, transient=[529], wait_headers={"X-A": "seconds", "x-b": "rfc3339"}, retry_headers="x-r")
    joined = mine.join(ours)
    assert joined.transient == {409, 529}
    assert joined.wait_headers == {"x-a": "epoch", "x-b": "rfc3339"}
    assert (joined.retry_headers, joined.key) == (("x-r",), mine.key)


def test_an_api_is_a_value() -> None:
    """It compares by what the user said, pickles, and is hashable."""
    api = Api(ORIGIN, safe="POST /search*", key=IdempotencyKey("Key", hours=24), wait_headers=["retry-after-ms"])
    assert pickle.loads(pickle.dumps(api)) == api != api.replace(transient=[409])
    assert len({api, pickle.loads(pickle.dumps(api))}) == 1
    assert api.wait_headers == {"retry-after-ms": "milliseconds"}
    assert [pattern.text for pattern in api.patterns] == [f"POST {ORIGIN}/search*"]


def test_the_span_of_a_key() -> None:
    """A key counts for 90 % of the time that the API remembers it: of 5 minutes if that is not known (K6)."""
    assert IdempotencyKey("Key").span == 270
    assert IdempotencyKey("Key", hours=24).span == 0.9 * 86400


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Api(7), "`origin` must be a scheme and a host.*got the origin 7"),  # type: ignore[arg-type]
        (lambda: Api("api.example.com"), "`origin` must .*got the origin 'api.example.com'"),
        (lambda: Api(f"{ORIGIN}/v1"), "`origin` must .*without a path"),
        (lambda: Api("https://a.*.example.com"), "`origin` must"),
        (lambda: Api(ORIGIN, safe=f"POST {ORIGIN}/search"), "`safe` must hold methods and paths without the origin"),
        (lambda: Api(ORIGIN, safe="POST"), "`safe` must hold methods and paths"),
        (lambda: Api(ORIGIN, safe=7), "`safe` must be a text such as .*got 7"),  # type: ignore[arg-type]
        (lambda: Api(ORIGIN, safe=[7]), r"`safe` must be a text such as .*got \[7\]"),  # type: ignore[list-item]
        (lambda: Api("https://*.example.com", safe="POST /x"), "`safe` needs one host; write the `origin` out"),
        (lambda: Api(ORIGIN, service=7), "`service` must be the name of a service"),  # type: ignore[arg-type]
        (lambda: Api(ORIGIN, service="iam", safe="POST /x"), "`service` decides what is safe"),
        (lambda: Api(ORIGIN, key="Key"), "`key` must be an IdempotencyKey"),  # type: ignore[arg-type]
        (lambda: Api(ORIGIN, not_executed=[200]), "`not_executed` must hold statuses from 400 to 599.*got 200"),
        (lambda: Api(ORIGIN, not_executed=429), "`not_executed` must hold statuses"),  # type: ignore[arg-type]
        (lambda: Api(ORIGIN, transient=[True]), "`transient` must hold statuses.*got True"),
        (lambda: Api(ORIGIN, throttles="403"), "`throttles` must hold statuses"),  # type: ignore[arg-type]
        (lambda: Api(ORIGIN, wait_headers=["x-reset"]), "`wait_headers` must map .*got 'x-reset' without a unit"),
        (lambda: Api(ORIGIN, wait_headers={"x-reset": "days"}), "`wait_headers` must map .*got 'x-reset': 'days'"),
        (lambda: Api(ORIGIN, wait_headers={"x reset": "epoch"}), "`wait_headers` must map"),
        (lambda: Api(ORIGIN, retry_headers="x retry"), "`retry_headers` must hold names of headers"),
        (lambda: IdempotencyKey("a b"), "`header` must be the name of a header"),
        (lambda: IdempotencyKey(None), "`header` must be the name of a header"),  # type: ignore[arg-type]
        (lambda: IdempotencyKey("Key", hours=0), "`hours` must be positive"),
        (lambda: IdempotencyKey("Key", hours="1"), "`hours` must be a number of hours"),  # type: ignore[arg-type]
        (lambda: IdempotencyKey("Key", add=1), "`add` must be True or False"),  # type: ignore[arg-type]
        (lambda: check_apis([7]), "`apis` must be one forbear.Api or several.*got 7"),
        (lambda: check_apis(ORIGIN), "`apis` must be one forbear.Api or several"),
        (lambda: check_apis([Api(ORIGIN), Api(ORIGIN)]), "`apis` must name each host once"),
        (lambda: check_apis([Api("https://*.example.com"), Api(ORIGIN)]), "`apis` must name each host once"),
        (lambda: Api("https://user:secret@example.com"), r"`origin` must .*got the origin '\[redacted\]@example.com'$"),
        (lambda: check_apis([Api(ORIGIN), Api("http://api.example.com")]), "`apis` must name each host once, by one"),
    ],
    ids=itertools.count(),
)
def test_wrong_values(make: Any, words: str) -> None:
    """The error names the parameter, the rule and the value."""
    with pytest.raises((TypeError, ValueError), match=words):
        make()


def test_two_ports_of_a_host_are_two_apis() -> None:
    """Each may be described."""
    assert len(check_apis([Api("http://localhost:8000"), Api("http://localhost:8001"), Api("http://localhost")])) == 3


@pytest.mark.parametrize(("origin", "host"), [(ORIGIN, "api.example.com"), ("https://*.example.com", "*.example.com")])
def test_the_host_is_shown_as_it_was_written(origin: str, host: str) -> None:
    """The star stays a star."""
    assert Api(origin).shown_host == host


class _Everything(OperationSet):
    """A named set that holds every request of the origins that it was bound to."""

    def __call__(self, call: object) -> bool:
        """Return whether the request goes to that origin."""
        return isinstance(call, Request) and str(self).endswith(call.host)

    def bind(self, origin: str) -> OperationSet:
        """Return the set for one origin."""
        return _Everything(f"everything at {origin}")


def test_a_named_set_is_bound_to_the_origin() -> None:
    """A set among the patterns of an API covers requests to its origin alone, also beside patterns."""
    api = Api(ORIGIN, safe=[_Everything("everything"), "POST /search"])
    assert covers(api.patterns, Request("POST", "api.example.com", "/orders"))
    assert not covers(api.patterns, Request("POST", "other.example.com", "/orders"))
    assert covers([_Everything("at b.org")], Request("GET", "b.org", "/"))


@pytest.mark.parametrize(("path", "service"), [("/graphql", "graphql"), ("/graphql?a=b", "graphql"), ("/other", None)])
def test_the_path_of_graphql_has_a_service(path: str, service: str | None) -> None:
    """A query after the path does not matter; other paths have the service of the API, here none."""
    assert Api(ORIGIN, graphql="/graphql").find_service(path) == service


def test_the_path_of_graphql_must_be_one() -> None:
    """The error names the parameter, the rule and the value."""
    with pytest.raises(ValueError, match="`graphql` must be a path, such as \"/graphql\"; got 'graphql'"):
        Api(ORIGIN, graphql="graphql")


@pytest.mark.parametrize(("seconds", "span"), [(None, 3240), (4000, 3240), (3240, 3240), (100, 100)])
def test_a_key_that_was_used_before_has_a_shorter_span(seconds: float | None, span: float) -> None:
    """A span never grows: 90 % of the hours, or what is left since the first use."""
    key = IdempotencyKey("Idempotency-Key", hours=1)
    assert key.shorten(seconds).span == pytest.approx(span)
