"""Reads by POST at origins that an Api names: what is one, and that clients and functions agree."""

import contextlib
import json
import pickle

import httpx
import pytest

import forbear
from forbear.clients.httpx import RetryTransport
from forbear.http.request import Request
from forbear.services import registry
from forbear.services.posts import REVIEWS, SEARCHES, SERVICES, list_definitions
from forbear.testing import virtual_time
from forbear_testkit.clients.wire import Wire, reply


def is_read(service: str, target: str, body: bytes | None = b"{}", method: str = "POST") -> bool:
    """Return whether a service calls a request a read."""
    judgement = SERVICES[service].classify(Request(method, "api.example.com", target, {}, body))
    return judgement.repeatable and not judgement.mutation


@pytest.mark.parametrize(
    ("service", "target", "expected"),
    [
        *(("elasticsearch", f"/logs/{name}?pretty", True) for name in SEARCHES if name != "_query"),
        ("elasticsearch", "/_query?format=json", True),
        ("elasticsearch", "/logs/_query", False),
        ("elasticsearch", "/_search", True),
        ("elasticsearch", "/logs/_search?scroll=1m", False),
        ("elasticsearch", "/_search/scroll", False),
        ("elasticsearch", "/logs/_doc/_search", False),
        ("elasticsearch", "/logs/_doc", False),
        ("elasticsearch", "/logs/_update_by_query", False),
        ("elasticsearch", "/logs/_async_search", False),
        ("elasticsearch", "/logs/_pit", False),
        ("elasticsearch", "/_bulk", False),
        ("slack", "/api/conversations.history", True),
        ("slack", "/api/users.list?limit=9", True),
        ("slack", "/api/chat.postMessage", False),
        ("slack", "/api/users.profile.set", False),
        ("slack", "/users.list", False),
        *(("kubernetes", f"/apis/{name.replace('/', '/v1/')}", True) for name in REVIEWS),
        ("kubernetes", "/apis/authorization.k8s.io/v1/namespaces/n/localsubjectaccessreviews", True),
        ("kubernetes", "/apis/authorization.k8s.io/v1/other/n/localsubjectaccessreviews", False),
        ("kubernetes", "/apis/example.com/v1/tokenreviews", False),
        ("kubernetes", "/api/v1/namespaces/n/serviceaccounts/s/token", False),
        ("kubernetes", "/api/v1/namespaces/n/pods/p/eviction", False),
    ],
)
def test_paths(service: str, target: str, expected: bool) -> None:
    """The closed lists, and what only looks alike."""
    assert is_read(service, target) is expected
    assert not is_read(service, target, method="PATCH")


def test_puts_of_elasticsearch() -> None:
    """A bulk may create documents, by PUT, too; what must not exist yet is in conflict with itself."""
    put = {
        target: SERVICES["elasticsearch"].classify(Request("PUT", "api.example.com", target, {}, b"{}"))
        for target in ("/_bulk", "/logs/_bulk?refresh", "/logs/_create/1", "/logs/_doc/1")
    }
    assert [each.repeatable for each in put.values()] == [False, False, True, True]
    assert [409 in each.maybe_done for each in put.values()] == [False, False, True, False]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (b"grant_type=client_credentials&scope=a", True),
        (b"grant_type=refresh_token&refresh_token=r", False),
        (b"grant_type=authorization_code&code=c", False),
        (b"grant_type=client_credentials&grant_type=refresh_token", False),
        (b"\xff", False),
        (b"", False),
        (None, False),
    ],
)
def test_oauth(body: bytes | None, expected: bool) -> None:
    """Only client credentials: a refresh token is spent by its use."""
    assert is_read("oauth", "/token", body) is expected


@pytest.mark.parametrize(
    ("document", "kinds"),
    [
        ("{ a }", {"query"}),
        ("query A($b: In = {c: 1}) @d { e }", {"query"}),
        ("query A { ...f } fragment f on T { g }", {"query", "fragment"}),
        ("mutation { a }", {"mutation"}),
        ("query A { a } mutation B { b }", {"query", "mutation"}),
        ("# query\nmutation { a }", {"mutation"}),
        ('{ a(b: "}mutation {") }', {"query"}),
        ('{ a(b: "\\"}") } mutation { c }', {"query", "mutation"}),
        ('{ a(b: """} \\""" { """) } subscription { c }', {"query", "subscription"}),
        ("\ufeffquery { a }", {"query"}),
        ("query", set[str]()),
        ("{ a", set[str]()),
        ("} mutation {", set[str]()),
        ('{ a(b: "', set[str]()),
        ('{ a(b: """', set[str]()),
        ("", set[str]()),
    ],
)
def test_documents(document: str, kinds: set[str]) -> None:
    """The definitions at the top of a document, whatever texts and comments hold."""
    assert list_definitions(document) == kinds


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ({"query": "{ a }", "variables": {}}, True),
        ([{"query": "{ a }"}, {"query": "query B { b }"}], True),
        ([{"query": "{ a }"}, {"query": "mutation { b }"}], False),
        ({"query": "mutation { a }"}, False),
        ({"query": "fragment f on T { a }"}, False),
        ({"query": "{ a }", "extensions": {"persistedQuery": {}}}, False),
        ({"id": "stored"}, False),
        ({"query": 1}, False),
        ([], False),
        ("text", False),
    ],
    ids=str,
)
def test_graphql(body: object, expected: bool) -> None:
    """A body is a read if all its operations are queries that it holds itself."""
    assert is_read("graphql", "/graphql", json.dumps(body).encode()) is expected


def test_bodies_that_cannot_be_read() -> None:
    """A name that stands twice, what is no JSON, and a body that is not known."""
    for body in (b'{"query": "mutation { a }", "query": "{ a }"}', b"{", None, b"[" * 100_000):
        assert not is_read("graphql", "/graphql", body)


def test_client_and_function_agree() -> None:
    """At the Api's origin a client repeats a query, and so does a function; a mutation is sent once."""
    for document, sent in (("{ a }", 2), ("mutation { a }", 1)):
        for by in ("client", "function"):
            with Wire(reply(503), reply(200, b"{}")) as wire, virtual_time():
                api = forbear.Api(wire.url, graphql="/graphql")
                inner = httpx.HTTPTransport(verify=False)
                transport = RetryTransport(transport=inner, apis=api) if by == "client" else inner
                policy = forbear.retry(on=httpx.HTTPError, apis=[api])

                def ask(transport: httpx.BaseTransport = transport, url: str = wire.url, text: str = document) -> None:
                    with httpx.Client(transport=transport) as client:
                        client.post(f"{url}/graphql?v=1", json={"query": text}).raise_for_status()

                run = ask if by == "client" else policy(ask)
                with contextlib.suppress(httpx.HTTPStatusError):
                    run()
            assert len(wire.seen) == sent


def test_names() -> None:
    """Each is a service that an Api may name, and no other place offers it."""
    for name in SERVICES:
        assert registry.service(name) == SERVICES[name] == pickle.loads(pickle.dumps(SERVICES[name]))
        assert registry.policy(name) is None
        assert name in registry.names_for_apis()
        assert name not in registry.names()
        RetryTransport(apis=forbear.Api("https://api.example.com", service=name))
    with pytest.raises(ValueError, match="`graphql` must be a path"):
        forbear.Api("https://api.example.com", graphql="graphql")
