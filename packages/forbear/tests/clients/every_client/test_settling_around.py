"""`settle=` in a run around the request: an attempt of the function finds done what an earlier one had sent."""

import asyncio
import json
from base64 import b64encode
from contextvars import copy_context
from hashlib import md5
from typing import Any

import aiohttp
import httpx
import pytest

import forbear
from forbear.clients.aiohttp import RetryMiddleware
from forbear.clients.httpx import AsyncRetryTransport, RetryTransport
from forbear.run import doubt, keys
from forbear.run.open_runs import run_keys
from forbear.run.runtime import current
from forbear.services import cloud_storage
from forbear.testing import virtual_time
from forbear_cloud import Cloud, Fault

UPLOAD = "/upload/storage/v1/b/bkt/o?uploadType=media&name=o&ifGenerationMatch=0"
INSERT = "storage.objects.insert"
PATCH = "/storage/v1/b/bkt/o/o?ifMetagenerationMatch=1"
BODY = {"metadata": {"a": "b"}}
ONCE = cloud_storage.policy.with_attempts(1)
AROUND = forbear.retry(httpx.TransportError, attempts=3, retry_exhausted=True, backoff=forbear.Constant(1))


def client_of(cloud: Cloud, settle: Any = True, policy: Any = ONCE) -> httpx.Client:
    """A client that sends each request once."""
    transport = RetryTransport(policy, transport=httpx.HTTPTransport(verify=False), settle=settle)
    return httpx.Client(transport=transport, base_url=cloud.url)


def test_the_function_s_next_attempt_is_settled(cloud: Cloud) -> None:
    """The first attempt of the function ends in doubt, and its second finds the object: one read tells."""
    cloud.fault(Fault.reset(when="after", operation=INSERT))
    with virtual_time(), client_of(cloud) as client:
        response = AROUND(lambda: client.post(UPLOAD, content=b"x"))()
    report = forbear.report(response)
    assert report is not None
    assert (response.status_code, response.json()["size"], report.settled, report.count) == (200, "1", True, 1)
    assert cloud.effects.count(INSERT) == 1


@pytest.mark.parametrize("around", [False, True])
def test_without_a_run_around_nothing_is_known(cloud: Cloud, around: bool) -> None:
    """A second call of the user's own is no attempt of the first, and a second run none of the first run."""
    cloud.fault(Fault.reset(when="after", operation=INSERT))
    once = forbear.retry(httpx.TransportError, attempts=2, retry_exhausted=True, backoff=forbear.Constant(1))
    with virtual_time(), client_of(cloud) as client:

        def send() -> httpx.Response:
            return client.post(UPLOAD, content=b"x")

        with pytest.raises(httpx.ReadError):
            once.with_attempts(1)(send)() if around else send()
        response = once(send)() if around else send()
    assert (response.status_code, cloud.requests.total) == (412, 2)


def test_a_success_is_not_unknown(cloud: Cloud) -> None:
    """L3: the first attempt of the function wrote the object and failed later; its next one gets the conflict."""
    with virtual_time(), client_of(cloud) as client:
        statuses: list[int] = []

        def send() -> None:
            statuses.append(client.post(UPLOAD, content=b"x").status_code)
            raise httpx.ReadError("another request was lost")

        twice = forbear.retry(httpx.ReadError, attempts=2, repeatable=True, backoff=forbear.Constant(1))
        with pytest.raises(httpx.ReadError):
            twice(send)()
    assert (statuses, cloud.requests.total) == ([200, 412], 2)


@pytest.mark.parametrize("changed", ["body", "target"])
def test_another_request_is_not_the_same(cloud: Cloud, changed: str) -> None:
    """Only the very request whose outcome is unknown may be settled."""
    cloud.fault(Fault.reset(when="after", operation=INSERT))
    tries = iter([("x", ""), ("y", "") if changed == "body" else ("x", "&prettyPrint=false")])
    with virtual_time(), client_of(cloud) as client:

        def send() -> httpx.Response:
            body, more = next(tries)
            return client.post(UPLOAD + more, content=body.encode())

        assert AROUND(send)().status_code == 412
    assert cloud.requests.total == 2


def test_what_was_not_executed_is_not_unknown(cloud: Cloud) -> None:
    """A refused connection leaves no doubt to the run around."""
    cloud.store.put("bkt", "o", b"x", {"contentType": "application/octet-stream"})
    sent: list[httpx.Request] = []

    class Refused(httpx.HTTPTransport):
        def handle_request(self, request: httpx.Request) -> httpx.Response:
            sent.append(request)
            if len(sent) == 1:
                raise httpx.ConnectError("refused")
            return super().handle_request(request)

    transport = RetryTransport(ONCE, transport=Refused(verify=False), settle=True)
    with virtual_time(), httpx.Client(transport=transport, base_url=cloud.url) as client:
        assert AROUND(lambda: client.post(UPLOAD, content=b"x"))().status_code == 412
    assert len(sent) == 2


@pytest.mark.parametrize(
    ("slow", "methods"),
    [(1, ["POST", "POST", "GET"]), (3, ["POST", "POST", "GET", "POST", "GET"])],
    ids=["the request", "the read"],
)
def test_an_attempt_that_was_cut_off_is_unknown(slow: int, methods: list[str]) -> None:
    """The attempt timeout of an async function cancels the request, which was executed, or the read after it."""
    sent: list[str] = []
    digest = b64encode(md5(b"x", usedforsecurity=False).digest()).decode()

    async def answer(request: httpx.Request) -> httpx.Response:
        sent.append(request.method)
        if len(sent) == slow:
            await current.get().asleep(100)  # there is no socket: in virtual time, I/O takes no time
        if slow == 3 and len(sent) == 1:
            return httpx.Response(503)
        resource = {"size": "1", "md5Hash": digest}
        return httpx.Response(200, json=resource) if request.method == "GET" else httpx.Response(412, json={})

    @forbear.retry(httpx.TransportError, attempts=3, attempt_timeout=50, timeout=None)
    async def send() -> httpx.Response:
        transport = AsyncRetryTransport(transport=httpx.MockTransport(answer), settle=True)
        async with httpx.AsyncClient(transport=transport, base_url="https://storage.googleapis.com") as client:
            return await client.post(UPLOAD, content=b"x")

    with virtual_time(), asyncio.Runner() as runner:
        response = runner.run(send(), context=copy_context())
    assert (response.status_code, sent) == (200, methods)


def test_a_middleware_around_may_repeat_the_request(cloud: Cloud) -> None:
    """After a read that proved nothing, aiohttp's request is again what the caller made it."""
    cloud.store.put("bkt", "o", b"x")
    cloud.fault(Fault.reset(operation="storage.objects.patch"))
    cloud.store.touch(cloud.store.object("bkt", "o"))

    async def twice(request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType) -> aiohttp.ClientResponse:
        first = await handler(request)
        assert first.status == 412
        return await handler(request)

    async def main() -> int:
        middlewares = (twice, RetryMiddleware(cloud_storage.policy, settle=True))
        async with (
            aiohttp.ClientSession(middlewares=middlewares) as session,
            session.patch(cloud.url + PATCH, json=BODY, headers={"X-Mine": "1"}) as response,
        ):
            return response.status

    with virtual_time(seed=7), asyncio.Runner() as runner:
        assert runner.run(main(), context=copy_context()) == 412
    patches = [request for request in cloud.requests if request.method == "PATCH"]
    assert [request.method for request in cloud.requests] == ["PATCH", "PATCH", "GET", "PATCH"]
    assert {(request.size, request.headers["x-mine"], request.headers["content-type"]) for request in patches} == {
        (len(json.dumps(BODY)), "1", "application/json")
    }


def test_the_memory_is_bounded(cloud: Cloud, monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs that have ended are forgotten, and requests of one run beyond the limit are not remembered."""
    monkeypatch.setattr(doubt, "_MOST", 3)
    run_keys.clear()  # no run is open here
    keys._swept[:] = [3]
    with virtual_time(), client_of(cloud) as client:

        def send(number: int) -> None:
            with pytest.raises(httpx.TransportError):
                client.post(f"{UPLOAD}{number}", content=b"x")

        def send_many() -> None:
            for number in range(5):
                send(number)

        cloud.fault(Fault.reset(times=30, operation=INSERT))
        AROUND(send_many)()
        assert [len(each.unknown) for each in run_keys.values()] == [3]
        for number in range(6):
            AROUND(send)(number)
    assert len(run_keys) < 7
