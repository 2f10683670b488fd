"""Header lines that stand in a request twice, and names and values of bytes, are judged like any other."""

import asyncio
from collections.abc import Iterator
from typing import Any

import aiohttp
import httpx
import pytest
import requests
from multidict import CIMultiDict
from urllib3 import HTTPHeaderDict

import forbear
from forbear.clients.aiohttp import RetryMiddleware
from forbear.clients.google_storage.calls import request_of
from forbear.clients.httpx import RetryTransport
from forbear.clients.requests import RetryAdapter
from forbear.services import cloud_storage
from forbear.testing import virtual_time
from forbear_cloud import Cloud, Fault
from forbear_testkit.clients.wire import Wire, reply

BUSY = reply(503)
TOKEN = "x-goog-gcs-idempotency-token"
UPLOAD = "/upload/storage/v1/b/bkt/o?uploadType=media&name=n&ifGenerationMatch=0"

Lines = list[tuple[str, str]]


def over_httpx(method: str, url: str, lines: Lines) -> None:
    """Send the lines by httpx."""
    with httpx.Client(transport=RetryTransport(transport=httpx.HTTPTransport(verify=False))) as client:
        client.request(method, url, headers=lines)


def over_requests(method: str, url: str, lines: Lines) -> None:
    """Send the lines by requests, from the mapping of urllib3, since its own keeps one line of a name."""
    with requests.Session() as session:
        session.mount("http://", RetryAdapter())
        prepared: Any = requests.Request(method, url).prepare()
        prepared.headers = HTTPHeaderDict([("Content-Length", "0")])
        for name, value in lines:
            prepared.headers.add(name, value)
        session.send(prepared)


def over_aiohttp(method: str, url: str, lines: Lines) -> None:
    """Send the lines by aiohttp."""

    async def send() -> None:
        async with (
            aiohttp.ClientSession(middlewares=(RetryMiddleware(),)) as session,
            session.request(method, url, headers=CIMultiDict(lines)) as response,
        ):
            await response.read()

    asyncio.run(send())


@pytest.mark.parametrize("send", [over_httpx, over_requests, over_aiohttp])
@pytest.mark.parametrize(
    ("method", "lines", "attempts"),
    [
        ("GET", [("X-HTTP-Method-Override", "POST"), ("X-HTTP-Method-Override", "GET")], 1),
        ("GET", [("X-HTTP-Method-Override", "GET"), ("x-http-method-override", "POST")], 1),
        ("PATCH", [("If-Match", "*"), ("If-Match", '"b"')], 1),
        ("PATCH", [("If-Match", 'W/"a"'), ("If-Match", '"b"')], 1),
        ("PATCH", [("If-Match", '"a"'), ("If-Match", '"b"')], 5),
        ("PATCH", [("If-None-Match", "*"), ("If-None-Match", '"b"')], 1),
    ],
)
def test_every_line_counts(send: Any, method: str, lines: Lines, attempts: int) -> None:
    """A method or a precondition is read from all lines of its name, not from one of them."""
    with Wire(BUSY) as wire, virtual_time():
        send(method, wire.url, lines)
        assert len(wire.seen) == attempts


@pytest.fixture
def session() -> Iterator[requests.Session]:
    """A session whose requests go to Cloud Storage."""
    with requests.Session() as session, virtual_time():
        session.mount("http://", RetryAdapter(cloud_storage.policy))
        yield session


@pytest.mark.parametrize(
    ("value", "has_token"), [(b"Bearer t", True), (b"GOOG4-HMAC-SHA256 Credential=abc", False), ("Bearer text", True)]
)
@pytest.mark.parametrize("by_hook", [False, True])
def test_an_authorization_of_bytes(
    cloud: Cloud, session: requests.Session, value: Any, has_token: bool, by_hook: bool
) -> None:
    """requests sends names and values of bytes; a signed request among them gets no token, any other one for all."""
    cloud.fault(Fault.status(503))

    def signed(request: requests.PreparedRequest) -> requests.PreparedRequest:
        untyped: Any = request.headers
        untyped[b"Authorization"] = value
        return request

    headers = {} if by_hook else {"Authorization": value}
    url = cloud.url + UPLOAD
    response = session.post(url, data=b"x", headers=headers, auth=signed if by_hook else None)
    assert response.status_code == 200
    sent = cloud.requests
    assert [len(request.headers.get(TOKEN, "")) for request in sent] == [36 if has_token else 0] * 2


@pytest.mark.parametrize("name", ["X-Key", b"X-Key"], ids=["text", "bytes"])
def test_a_key_of_bytes(name: Any) -> None:
    """The caller's own key counts, and is the only one that is sent."""

    def keyed(request: requests.PreparedRequest) -> requests.PreparedRequest:
        untyped: Any = request.headers
        untyped[name] = b"mine"
        return request

    with Wire(BUSY, reply(200)) as wire, requests.Session() as session, virtual_time():
        session.mount(
            "http://", RetryAdapter(apis=forbear.Api(wire.url, key=forbear.IdempotencyKey("X-Key", add=True)))
        )
        assert session.post(wire.url, data=b"x", auth=keyed).status_code == 200
        assert [seen.head.lower().count("x-key: mine") for seen in wire.seen] == [1, 1]
        assert [seen.head.lower().count("x-key") for seen in wire.seen] == [1, 1]


def test_a_request_of_google_storage() -> None:
    """A prepared request is read alike: its values of bytes are text."""
    prepared = requests.Request("PUT", "https://storage.googleapis.com/b/o", headers={"If-Match": b'"a"'}).prepare()
    assert request_of(prepared).headers["if-match"] == '"a"'
