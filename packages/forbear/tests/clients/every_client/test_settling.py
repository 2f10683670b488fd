"""`settle=`: a write that an attempt finds done is answered by reading back, through each client."""

import asyncio
import gzip
import json
import logging
import pickle
from collections.abc import Callable, Mapping
from contextlib import suppress
from contextvars import copy_context
from dataclasses import dataclass, field
from typing import Any

import aiohttp
import httpx
import pytest
import requests

import forbear
from forbear.clients.aiohttp import RetryMiddleware
from forbear.clients.httpx import RetryTransport
from forbear.clients.requests import RetryAdapter
from forbear.http.request import Request
from forbear.services import cloud_storage
from forbear.testing import virtual_time
from forbear_cloud import Cloud, Fault
from forbear_testkit.clients.flavours import Flavour

OBJECT = "/storage/v1/b/bkt/o/o"
PATCH = f"{OBJECT}?ifMetagenerationMatch=1"
BODY = {"metadata": {"a": "b"}}
LOST = Fault.reset(when="after", operation="storage.objects.patch")


@dataclass
class Got:
    """The response of a caller: status, JSON and headers; and the report and the events of the run."""

    status: int
    body: Any
    headers: Mapping[str, str]
    report: forbear.events.Report | None
    events: list[forbear.events.Event] = field(default_factory=list)


Send = Callable[..., Got]


def parse(content: bytes) -> Any:
    """JSON, or None for no content."""
    return json.loads(content) if content else None


def by_httpx(url: str, method: str, target: str, body: Any, headers: Mapping[str, str], options: Any) -> Got:
    """httpx, with room for one connection."""
    inner = httpx.HTTPTransport(verify=False, limits=httpx.Limits(max_connections=1))
    with httpx.Client(transport=RetryTransport(transport=inner, **options)) as client:
        response = client.request(method, url + target, json=body, headers=headers)
        assert (response.request.method, response.request.url.raw_path) == (method, target.encode())
        assert bytes(response.extensions.get("reason_phrase", b"")) != b"Precondition Failed" or response.is_error
        return Got(response.status_code, parse(response.content), response.headers, forbear.report(response))


def by_requests(url: str, method: str, target: str, body: Any, headers: Mapping[str, str], options: Any) -> Got:
    """requests."""
    with requests.Session() as session:
        session.mount("http://", RetryAdapter(**options))
        response = session.request(method, url + target, json=body, headers=dict(headers))
        assert (response.request.method, response.url) == (method, url + target)
        assert response.ok is (response.reason in ("OK", "No Content"))
        return Got(response.status_code, parse(response.content), response.headers, forbear.report(response))


def by_requests_stream(url: str, method: str, target: str, body: Any, headers: Mapping[str, str], options: Any) -> Got:
    """requests, where the caller reads the body in pieces."""
    with requests.Session() as session:
        session.mount("http://", RetryAdapter(**options))
        response = session.request(method, url + target, json=body, headers=dict(headers), stream=True)
        content = b"".join(response.iter_content(7))
        return Got(response.status_code, parse(content), response.headers, forbear.report(response))


def by_aiohttp(url: str, method: str, target: str, body: Any, headers: Mapping[str, str], options: Any) -> Got:
    """aiohttp, with room for one connection."""

    async def main() -> Got:
        connector = aiohttp.TCPConnector(limit=1)
        async with aiohttp.ClientSession(connector=connector, middlewares=(RetryMiddleware(**options),)) as session:
            async with session.request(method, url + target, json=body, headers=headers) as response:
                content = await response.read()
            assert (response.method, response.request_info.method) == (method, method)
            assert response.ok is (response.reason in ("OK", "No Content"))
            return Got(response.status, parse(content), response.headers, forbear.report(response))

    with asyncio.Runner() as runner:
        return runner.run(main(), context=copy_context())


CLIENTS: tuple[Send, ...] = (by_httpx, by_requests, by_requests_stream, by_aiohttp)
each_client = pytest.mark.parametrize("send", CLIENTS, ids=lambda send: send.__name__)


def made(send: Send, cloud: Cloud, settle: Any, method: str = "PATCH", target: str = PATCH, **more: Any) -> Got:
    """Send one request, with the events of its run."""
    events: list[forbear.events.Event] = []
    policy = more.pop("policy", cloud_storage.policy)
    options = {"policy": policy.with_on_event(events.append), "settle": settle}
    with virtual_time(seed=7):
        got = send(cloud.url, method, target, more.get("body", BODY), more.get("headers", {}), options)
    got.events = events
    return got


@pytest.fixture
def cloud(cloud: Cloud) -> Cloud:
    """The cloud with an object whose metageneration is 1."""
    cloud.store.put("bkt", "o", b"x")
    cloud.store.create_bucket("empty")
    return cloud


@each_client
def test_a_write_that_was_done_gets_the_resource_as_it_is_read(
    send: Send, cloud: Cloud, caplog: pytest.LogCaptureFixture
) -> None:
    """It is done once, and report, log line and event say that a read settled it."""
    cloud.fault(LOST)
    with caplog.at_level(logging.INFO, logger="forbear"):
        got = made(send, cloud, True)
    said = caplog.records[-1]
    assert ": settled after " in said.getMessage()
    assert said.getMessage().endswith(": a read showed that an attempt before the last had worked")
    assert vars(said)["forbear"]["settled"] is True
    assert (got.status, got.body["metadata"], got.body["metageneration"]) == (200, {"a": "b"}, "2")
    assert got.headers["content-type"].startswith("application/json")
    assert cloud.effects.count("storage.objects.patch") == 1
    assert got.report is not None
    assert (got.report.settled, got.report.maybe_done, got.report.count) == (True, False, 2)
    assert got.report.note.startswith("forbear: settled after 2 attempts in ")
    assert got.report.note.endswith(": a read showed that an earlier attempt had worked [settled]")
    last = got.events[-1]
    assert isinstance(last, forbear.events.Recovered)
    assert (last.settled, last.attempt, [each.error for each in last.failures][1]) == (True, 2, "HTTP 412")


@each_client
def test_a_delete_that_was_done_has_no_content(send: Send, cloud: Cloud) -> None:
    """Its 404 becomes a 204, and the connection serves the next request."""
    cloud.fault(Fault.reset(when="after", operation="storage.buckets.delete"))
    got = made(send, cloud, True, "DELETE", "/storage/v1/b/empty", body=None)
    assert (got.status, got.body) == (204, None)
    assert cloud.effects.total == 1


@each_client
def test_without_the_option_the_conflict_is_handed_out(send: Send, cloud: Cloud) -> None:
    """That is the default, and the note names the option."""
    cloud.fault(LOST)
    got = made(send, cloud, False)
    assert got.status == 412
    assert got.report is not None
    assert got.report.maybe_done
    assert "an earlier attempt may have worked (settle= reads back whether it did) [permanent]" in got.report.note
    assert [request.operation for request in cloud.requests] == ["storage.objects.patch"] * 2


def test_through_every_flavour_of_httpx(flavour: Flavour, cloud: Cloud) -> None:
    """Sync, on asyncio and on trio."""
    cloud.fault(LOST)
    transport = flavour.transport(cloud_storage.policy, settle=True)
    result = flavour.call(transport, "PATCH", cloud.url + PATCH, json=BODY)
    assert (result.status, result.report.settled, json.loads(result.content)["metadata"]) == (200, True, {"a": "b"})


def covers_nothing(request: Request) -> bool:
    """No request."""
    return request.method == "POST"


def covers_patches(request: Request) -> bool:
    """These requests."""
    return request.method == "PATCH"


def is_mine(sent: Any, read: Any) -> bool:
    """The mark that was sent is there."""
    return bool(sent["metadata"]["a"] == read["metadata"]["a"])


def has_another_mark(sent: Any, read: Any) -> bool:
    """It never is."""
    return bool(read["metadata"] == {"a": "c"})


def forget(sent: Any, read: Any) -> None:
    """No answer."""


NOTHING: tuple[Fault, ...] = ()
LEFT: dict[str, tuple[tuple[Fault, ...], dict[str, Any]]] = {
    "a read that is refused": ((Fault.status(403, operation="storage.objects.get"),), {}),
    "a read that fails": ((Fault.status(503, operation="storage.objects.get"),), {}),
    "a read that breaks": ((Fault.reset(operation="storage.objects.get"),), {}),
    "a body that breaks": ((Fault.truncate(9, operation="storage.objects.get"),), {}),
    "a body that is no JSON": ((Fault.status(300, body="x", operation="storage.objects.get"),), {}),
    "other requests": (NOTHING, {"settle": "PATCH https://storage.googleapis.com/storage/v1/b/*/o/*?*"}),
    "a function that does not cover it": (NOTHING, {"settle": covers_nothing}),
    "a mark that is not there": (NOTHING, {"settle": has_another_mark}),
    "a signed URL": (NOTHING, {"target": f"{PATCH}&X-Goog-Signature=0"}),
    "a parameter that is not known": (NOTHING, {"target": f"{PATCH}&predefinedAcl=private"}),
}


@pytest.mark.parametrize("case", LEFT)
def test_what_is_not_proven_stays_a_conflict(cloud: Cloud, case: str) -> None:
    """One attempt to read is made at most, and its result leaves the response as it is."""
    faults, options = LEFT[case]
    for fault in (LOST, *faults):
        cloud.fault(fault)
    more = {name: value for name, value in options.items() if name != "settle"}
    got = made(by_httpx, cloud, options.get("settle", True), **more)
    assert got.status == 412
    assert got.report is not None
    assert got.report.maybe_done
    assert sum(request.method == "GET" for request in cloud.requests) <= 1


@each_client
def test_another_state_stays_a_conflict(send: Send, cloud: Cloud) -> None:
    """The first attempt was not executed, and somebody else changed the object in between: the caller gets the 412."""
    cloud.fault(Fault.reset(operation="storage.objects.patch"))
    cloud.store.touch(cloud.store.object("bkt", "o"))
    got = made(send, cloud, True)
    assert (got.status, got.body["error"]["code"]) == (412, 412)
    assert got.report is not None
    assert (got.report.maybe_done, "settle=" in got.report.note) == (True, False)
    assert cloud.effects.total == 0


@pytest.mark.parametrize(
    "settle",
    [
        "PATCH {url}/storage/v1/b/*/o/*?*",
        covers_patches,
        is_mine,
    ],
    ids=["pattern", "request", "mine"],
)
def test_the_user_says_what_counts(cloud: Cloud, settle: Any) -> None:
    """A pattern and a function of the request let the state count, a function of two resources decides itself."""
    cloud.fault(LOST)
    word = settle.format(url=cloud.url) if isinstance(settle, str) else settle
    assert made(by_httpx, cloud, word).status == 200


def test_a_first_conflict_is_left_to_the_caller(cloud: Cloud) -> None:
    """No attempt was in doubt: R1, a lock that somebody else holds, with the very content."""
    cloud.store.object("bkt", "o").fields.update(BODY)
    cloud.store.touch(cloud.store.object("bkt", "o"))
    got = made(by_httpx, cloud, True)
    assert (got.status, got.report) == (412, None)
    assert cloud.requests.total == 1


def test_an_attempt_that_was_not_executed_leaves_no_doubt(cloud: Cloud) -> None:
    """A connection that was refused has done nothing, so the conflict is somebody else's."""
    sent = []

    class Refused(httpx.HTTPTransport):
        def handle_request(self, request: httpx.Request) -> httpx.Response:
            sent.append(request)
            if len(sent) == 1:
                raise httpx.ConnectError("refused")
            return super().handle_request(request)

    cloud.store.object("bkt", "o").fields.update(BODY)
    cloud.store.touch(cloud.store.object("bkt", "o"))
    transport = RetryTransport(cloud_storage.policy, transport=Refused(verify=False), settle=True)
    with virtual_time(), httpx.Client(transport=transport) as client:
        assert client.patch(cloud.url + PATCH, json=BODY).status_code == 412
    assert [request.method for request in sent] == ["PATCH", "PATCH"]


def test_the_read_has_the_caller_s_credentials_and_nothing_of_the_write(cloud: Cloud) -> None:
    """Conditions, hashes, overrides, the token and the body belong to the write alone."""
    seen: list[httpx.Request] = []

    class Watched(httpx.HTTPTransport):
        def handle_request(self, request: httpx.Request) -> httpx.Response:
            seen.append(request)
            return super().handle_request(request)

    cloud.fault(LOST)
    headers = {"Authorization": "Bearer t", "X-Goog-User-Project": "u", "If-Match": "*", "X-Upload-Content-Type": "x"}
    transport = RetryTransport(cloud_storage.policy, transport=Watched(verify=False), settle=True)
    with virtual_time(), httpx.Client(transport=transport) as client:
        target = f"{PATCH}&userProject=u&fields=name"
        assert client.patch(cloud.url + target, json=BODY, headers=headers).status_code == 200
    read, of_the_write = seen[-1], {"if-match", "x-upload-content-type", "content-type", "content-length"}
    assert (read.method, read.url.raw_path, read.content) == ("GET", f"{OBJECT}?userProject=u".encode(), b"")
    assert (read.headers["authorization"], read.headers["x-goog-user-project"]) == ("Bearer t", "u")
    assert {*of_the_write, "x-goog-gcs-idempotency-token"}.isdisjoint(read.headers)


def test_no_read_begins_after_the_timeout(cloud: Cloud) -> None:
    """The read, too, has only the rest of the policy's timeout."""
    cloud.fault(LOST)

    class Late(httpx.HTTPTransport):
        def handle_request(self, request: httpx.Request) -> httpx.Response:
            response = super().handle_request(request)
            if response.status_code == 412:
                time.advance(5)
            return response

    policy = cloud_storage.policy.with_timeout(4).with_backoff(forbear.Constant(1))
    transport = RetryTransport(policy, transport=Late(verify=False), settle=True)
    with virtual_time() as time, httpx.Client(transport=transport) as client:
        assert client.patch(cloud.url + PATCH, json=BODY).status_code == 412
    assert all(request.method == "PATCH" for request in cloud.requests)


def test_writes_of_update_are_left_to_mine(cloud: Cloud) -> None:
    """Its own function decides: with `settle=True` too, the cycle reads again and asks `mine`."""
    cloud.fault(LOST)
    asked: list[Any] = []

    def mine(found: Any) -> bool:
        asked.append(found)
        return bool(found["metadata"] == {"n": "1"})

    transport = RetryTransport(cloud_storage.policy, transport=httpx.HTTPTransport(verify=False), settle=True)
    with virtual_time(), httpx.Client(transport=transport, base_url=cloud.url) as client:
        stored = forbear.update(
            read=lambda: client.get(OBJECT).raise_for_status().json(),
            modify=lambda found: {**found, "metadata": {"n": "1"}},
            write=lambda found: client.patch(
                OBJECT, params={"ifMetagenerationMatch": found["metageneration"]}, json={"metadata": found["metadata"]}
            ).raise_for_status(),
            conflict=cloud_storage.is_conflict,
            mine=mine,
        )
    assert (stored["metadata"], len(asked)) == ({"n": "1"}, 1)
    assert cloud.effects.count("storage.objects.patch") == 1


def test_a_long_or_coded_resource(cloud: Cloud) -> None:
    """A coded response is decoded; one above 1 MiB is not read to its end."""
    for size, status in ((1000, 200), (2 << 20, 412)):
        resource = json.dumps({"metadata": {"a": "b"}, "more": "x" * size}).encode()
        replies = [
            httpx.Response(503),
            httpx.Response(412, json={}),
            httpx.Response(200, content=gzip.compress(resource), headers={"content-encoding": "gzip"}),
        ]
        inner = httpx.MockTransport(lambda request, replies=replies: replies.pop(0))
        transport = RetryTransport(cloud_storage.policy, transport=inner, settle=True)
        with virtual_time(), httpx.Client(transport=transport) as client:
            response = client.patch("https://storage.googleapis.com" + PATCH, json=BODY)
        assert (response.status_code, replies) == (status, [])
        if status == 200:
            assert response.json()["more"] == "x" * size


def test_a_function_that_fails_raises_its_error(cloud: Cloud) -> None:
    """It is a mistake of the user's, and hides no conflict that nobody looks at."""
    cloud.fault(LOST)
    with pytest.raises(TypeError, match="`settle` must return True or False, got None"):
        made(by_httpx, cloud, settle=forget)


def test_the_word_is_pickled_with_the_adapter(cloud: Cloud) -> None:
    """As a session is for another process; a request may be sent there."""
    cloud.fault(LOST)
    with requests.Session() as session:
        session.mount("http://", RetryAdapter(cloud_storage.policy, settle=is_mine))
        copy = pickle.loads(pickle.dumps(session))
    with copy, virtual_time():
        assert copy.patch(cloud.url + PATCH, json=BODY).status_code == 200


@pytest.mark.parametrize("kind", [RetryTransport, RetryAdapter, RetryMiddleware])
def test_a_wrong_word_is_refused(kind: Any) -> None:
    """When the adapter is made, with what to write."""

    async def later(sent: object, read: object) -> bool:
        return True

    for wrong in (7, later, dict, print, "PATCH /somewhere", [7]):
        with pytest.raises((TypeError, ValueError), match="`settle`"):
            kind(settle=wrong)
    assert "settle='PATCH http://localhost/a?*'" in repr(kind(settle="PATCH http://localhost/a?*"))
    assert "settle" not in repr(kind())
    with suppress(AttributeError):
        kind(settle=True).close()
