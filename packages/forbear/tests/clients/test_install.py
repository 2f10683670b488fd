"""`forbear.install`: one name for the clients of every library."""

import asyncio
import os
from collections.abc import Iterator
from typing import Any

import aiohttp
import boto3
import grpc
import httpx
import httpx2
import pytest
import redis
import requests
import urllib3
import valkey
from google.auth.credentials import AnonymousCredentials
from google.auth.transport.requests import AuthorizedSession
from google.cloud import storage
from requests.adapters import HTTPAdapter

import forbear
from forbear.clients.requests import RetryAdapter
from forbear.testing import virtual_time
from forbear_cloud import Cloud, Fault
from forbear_testkit.clients import aws
from forbear_testkit.clients.wire import Wire, reply


@pytest.fixture
def failing() -> Iterator[Wire]:
    """A server whose first response is 503."""
    with Wire(reply(503), reply(200, b"{}", "Content-Type: application/json")) as wire, virtual_time(seed=1):
        yield wire


@pytest.mark.parametrize("library", [httpx, httpx2])
def test_a_client_of_httpx(library: Any, failing: Wire) -> None:
    """Its GET is repeated, and it is the same object."""
    with library.Client(trust_env=False) as client:
        assert forbear.install(client) is client
        assert client.get(failing.url).status_code == 200


@pytest.mark.parametrize("library", [httpx, httpx2])
def test_an_async_client_of_httpx(library: Any) -> None:
    """The keywords are those of `forbear.retry`."""

    async def get(url: str) -> int:
        async with forbear.install(library.AsyncClient(trust_env=False), backoff=forbear.Constant(0)) as client:
            status: int = (await client.get(url)).status_code
            return status

    with Wire(reply(503), reply(200)) as wire:
        assert asyncio.run(get(wire.url)) == 200


@pytest.mark.parametrize("kind", [requests.Session, AuthorizedSession])
def test_a_session_of_requests(kind: Any, failing: Wire) -> None:
    """Its adapters are replaced, with their pools; google-auth's sessions are sessions."""
    credentials: Any = AnonymousCredentials
    session: Any = kind() if kind is requests.Session else kind(credentials())
    session.trust_env = False
    session.mount("https://big.example", HTTPAdapter(pool_maxsize=40))
    assert forbear.install(session) is session
    assert session.get(failing.url).status_code == 200
    assert session.get_adapter("https://big.example/")._pool_maxsize == 40
    assert all(type(adapter) is RetryAdapter for adapter in session.adapters.values())
    with pytest.raises(ValueError, match="has forbear's retries already"):
        forbear.install(session)
    session.close()


def test_a_session_with_other_adapters_is_refused() -> None:
    """Nothing is replaced then."""

    class Own(HTTPAdapter):
        """Sends in its own way."""

    for adapter, error, text in (
        (Own(), TypeError, "must have plain adapters, which can be replaced"),
        (HTTPAdapter(max_retries=3), ValueError, "must not retry by itself"),
    ):
        session = requests.Session()
        session.mount("https://own.example", adapter)
        with pytest.raises(error, match=text):
            forbear.install(session)
        assert not any(isinstance(each, RetryAdapter) for each in session.adapters.values())


def test_a_client_of_cloud_storage() -> None:
    """A lost response to a read is made good."""
    with Cloud() as cloud, virtual_time(seed=1):
        cloud.store.create_bucket("bkt")
        credentials: Any = AnonymousCredentials
        options = {"api_endpoint": cloud.url}
        with forbear.install(storage.Client("p", credentials(), client_options=options), attempts=2) as client:
            cloud.fault(Fault.reset(times=1))
            assert client.get_bucket("bkt").name == "bkt"


def test_boto3() -> None:
    """A client, a resource and a session of boto3 are taken; so is the session of botocore."""
    with Wire(aws.LOST, aws.OK) as server, virtual_time(seed=1):
        client = aws.client("dynamodb", server.url)
        assert forbear.install(client, attempts=2, safe="dynamodb.UpdateItem") is client
        client.update_item(**aws.COUNT)
        assert len(server.seen) == 2
    session = boto3.Session(**aws.CREDENTIALS)
    assert forbear.install(session) is session
    resource = aws.boto3.Session(**aws.CREDENTIALS).resource("sqs")
    assert forbear.install(resource) is resource
    aws.track(resource.meta.client)
    aws.close_all()


def test_the_proxy_of_the_environment_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    """Requests go where those of the plain client go."""
    for name in [name for name in os.environ if name.lower().endswith("_proxy")]:
        monkeypatch.delenv(name)
    with Wire(reply(503), reply(200, b"proxy")) as proxy, virtual_time(seed=1):
        monkeypatch.setenv("HTTP_PROXY", proxy.url)
        with forbear.install(httpx.Client()) as client:
            assert client.get("http://service.example/").text == "proxy"
        assert proxy.seen[-1].line == "GET http://service.example/ HTTP/1.1"


def _session() -> object:
    async def make() -> object:
        async with aiohttp.ClientSession() as session:
            return session

    return asyncio.run(make())


@pytest.mark.parametrize(
    ("make", "line"),
    [
        (_session, "middlewares=(forbear.clients.aiohttp.RetryMiddleware(),)"),
        (redis.Redis, "write forbear.clients.redis.Redis(...)"),
        (valkey.Valkey, "write forbear.clients.valkey.Valkey(...)"),
        (lambda: grpc.insecure_channel("localhost:1"), "grpc.intercept_channel(channel, forbear.clients.grpc"),
        (urllib3.PoolManager, "urllib3.PoolManager(retries=forbear.clients.urllib3.Retry())"),
        (object, "decorate the function that calls it: @forbear.retry(forbear.transient)"),
        (lambda: httpx, "`client` must be a client, such as httpx.Client(), not the module httpx"),
        (lambda: httpx.Client, "`client` must be a client, not its class: write Client(...), got <class"),
    ],
)
def test_other_clients_are_refused_with_the_line_to_write(make: Any, line: str) -> None:
    """They take retries when they are made, or not at all."""
    with pytest.raises(TypeError) as caught:
        forbear.install(make())
    assert line in str(caught.value)
