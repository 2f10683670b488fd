"""Each client library meets every fault as its own error, below its own retries, and is itself again afterwards."""

import socket
from collections.abc import Awaitable, Callable, Generator
from functools import partial
from typing import Any
from uuid import uuid4

import aiohttp
import botocore.session
import httpx
import httpx2
import pytest
import redis
import redis.asyncio
import requests
import urllib3
import valkey
from botocore.config import Config
from redis.asyncio.retry import Retry as AsyncRetry
from redis.backoff import NoBackoff
from redis.retry import Retry

from forbear.testing.valkey import valkey_server
from forbear_audit.storm import storm
from forbear_audit.storm.run_record import current_record
from forbear_testkit.testing.orders import OrdersServer, orders_server

Call = Callable[[str], object] | Callable[[str], Awaitable[object]]


@pytest.fixture(scope="module")
def server() -> Generator[OrdersServer]:
    """Run a server for all tests of this module."""
    with orders_server() as server:
        yield server


@pytest.fixture(scope="module")
def socket_path() -> Generator[str]:
    """Run a Valkey for all tests of this module."""
    with valkey_server() as path:
        yield path


def over_httpx(url: str) -> None:
    """Send an order by httpx."""
    with httpx.Client(timeout=5, verify=False) as client:
        client.post(url).raise_for_status()


async def over_async_httpx(url: str) -> None:
    """Send an order by the async client of httpx."""
    async with httpx.AsyncClient(timeout=5, verify=False) as client:
        (await client.post(url)).raise_for_status()


def over_httpx2(url: str) -> None:
    """Send an order by httpx2."""
    with httpx2.Client(timeout=5, verify=False) as client:
        client.post(url).raise_for_status()


def over_requests(url: str) -> None:
    """Send an order by requests."""
    requests.post(url, timeout=5).raise_for_status()


def over_urllib3(url: str) -> None:
    """Send an order by urllib3, without its retries."""
    with urllib3.PoolManager() as pool:
        response = pool.request("POST", url, timeout=5, retries=False)
        assert response.status == 200, f"status {response.status}"


async def over_aiohttp(url: str) -> None:
    """Send an order by aiohttp, and read the response."""
    async with (
        aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(5)) as session,
        session.post(url, json={"item": 1}) as response,
    ):
        response.raise_for_status()
        await response.json()


CLIENTS: list[tuple[Call, dict[str, str]]] = [
    (over_httpx, {"lost": "RemoteProtocolError", "refused": "ConnectError", "slow": "ReadTimeout"}),
    (over_async_httpx, {"lost": "RemoteProtocolError", "refused": "ConnectError", "slow": "ReadTimeout"}),
    (over_httpx2, {"lost": "RemoteProtocolError", "refused": "ConnectError", "slow": "ReadTimeout"}),
    (over_requests, {"lost": "ConnectionError", "refused": "ConnectionError", "slow": "ReadTimeout"}),
    (over_urllib3, {"lost": "ProtocolError", "refused": "NewConnectionError", "slow": "ReadTimeoutError"}),
    (
        over_aiohttp,
        {"lost": "ServerDisconnectedError", "refused": "ClientConnectorError", "slow": "SocketTimeoutError"},
    ),
]
FAULTS = {"lost": 1, "refused": 0, "503": 0, "429": 0, "slow": 1, "cut": 1}


@pytest.mark.parametrize("row", CLIENTS, ids=lambda row: row[0].__name__)
def test_each_fault_raises_the_error_of_the_client(server: OrdersServer, row: tuple[Call, dict[str, str]]) -> None:
    """Each fault raises the client's error; the server has executed the call where the fault says so."""
    call, errors = row
    seen: dict[str, BaseException] = {}
    for fault, executed in FAULTS.items():
        before, seen_by_user = server.count(), wrapped(call, server.url, fault, seen)
        report = storm(seen_by_user, effects=server.count, only=f"POST /orders#1:{fault}")
        assert report.calls == ("POST /orders#1",)
        assert server.count() - before == 2 + executed, fault
        assert [finding.kind for finding in report.findings] == (["lost"] if fault == "refused" else []), fault
    assert seen.keys() == FAULTS.keys()
    assert {fault: type(seen[fault]).__name__ for fault in errors} == errors
    assert "503" in str(seen["503"])
    assert "429" in str(seen["429"])
    assert current_record() is None


def wrapped(call: Any, url: str, fault: str, seen: dict[str, BaseException]) -> Any:
    """Return a coroutine function that makes the call and notes its error."""

    async def function() -> None:
        try:
            result = call(f"{url}/orders")
            if result is not None:
                await result
        except Exception as error:
            seen[fault] = error
            raise

    return function


def test_limits_of_urllib3(server: OrdersServer) -> None:
    """A limit for the whole call, as other clients set it, is one for the response too."""

    def fetch() -> None:
        with urllib3.PoolManager(timeout=urllib3.Timeout(total=7)) as pool:
            assert pool.request("GET", server.url).status == 200

    report = storm(fetch, faults=["slow"])
    assert (report.runs, report.findings) == (1, ())


def test_calls_without_a_response() -> None:
    """A call that has no response without a fault is not tried with one."""
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]

    def fetch() -> None:
        with pytest.raises(requests.ConnectionError):
            requests.get(f"http://127.0.0.1:{port}/", timeout=5)

    report = storm(fetch)
    assert (report.calls, report.runs) == (("GET /#1",), 0)


def over_retrying_transport(url: str) -> None:
    """Fetch twice over one connection, with a transport that connects again by itself."""
    with httpx.Client(transport=httpx.HTTPTransport(verify=False, retries=2), timeout=5) as client:
        client.get(url)
        client.get(url)


async def over_async_retrying_transport(url: str) -> None:
    """Do the same with the async client."""
    async with httpx.AsyncClient(transport=httpx.AsyncHTTPTransport(verify=False, retries=2), timeout=5) as client:
        await client.get(url)
        await client.get(url)


def over_urllib3_connects(url: str) -> None:
    """Fetch twice by urllib3, which connects again by itself."""
    with urllib3.PoolManager(retries=urllib3.Retry(total=None, connect=2, backoff_factor=1)) as pool:
        pool.request("GET", url, timeout=5)
        pool.request("GET", url, timeout=5)


@pytest.mark.parametrize("fetch", [over_retrying_transport, over_async_retrying_transport, over_urllib3_connects])
@pytest.mark.parametrize(
    ("fault", "attempts", "kinds"), [("#1:refused", 3, []), ("#2:refused", 3, []), ("#2+:refused", 2, ["many"])]
)
def test_connects_again(server: OrdersServer, fetch: Any, fault: str, attempts: int, kinds: list[str]) -> None:
    """A refused connection is made again by the client itself, and each time is an attempt."""
    report = storm(lambda: fetch(f"{server.url}/orders"), only=f"GET /orders{fault}", attempts=attempts)
    assert report.calls == ("GET /orders#1", "GET /orders#2")
    assert [finding.kind for finding in report.findings] == kinds
    assert not kinds or "3 attempts at one call" in report.findings[0].text


def aws_client(service: str, server: OrdersServer) -> Any:
    """Return a client of botocore that makes two attempts."""
    return botocore.session.Session().create_client(
        service,
        region_name="eu-west-1",
        endpoint_url=server.url,
        aws_access_key_id="id",
        aws_secret_access_key="secret",
        config=Config(retries={"mode": "standard", "total_max_attempts": 2}),
    )


def test_operations_of_botocore_are_judged_by_their_model(server: OrdersServer) -> None:
    """A read that is sent by POST may be sent twice, an update that adds may not."""
    table = aws_client("dynamodb", server)
    read = partial(table.get_item, TableName="t", Key={"id": {"S": "1"}})
    assert storm(read, only="POST /#1:lost").findings == ()
    add = partial(table.update_item, TableName="t", Key={"id": {"S": "1"}}, UpdateExpression="ADD n :one")
    assert [finding.kind for finding in storm(add, only="POST /#1:lost").findings] == ["suspected"]


def test_retries_of_botocore_are_seen(server: OrdersServer) -> None:
    """Retries of botocore itself are seen: it sends a message again after a lost response."""
    client = aws_client("sqs", server)
    queue = f"{server.url}/queue"

    def send() -> None:
        client.send_message(QueueUrl=queue, MessageBody="text")

    report = storm(send, effects=server.count, only="POST /#1:lost")
    assert [(finding.kind, finding.rule) for finding in report.findings] == [("duplicated", "UNSAFE")]
    assert report.findings[0].site.rpartition(":")[0].endswith("tests/storm/wire/test_every_client.py")


@pytest.mark.parametrize("library", [redis, valkey])
def test_retries_of_redis_are_counted(socket_path: str, library: Any) -> None:
    """The Valkey counts an INCR that the library's own retry sends twice; a refused one is sent once."""
    retry = library.retry.Retry(library.backoff.NoBackoff(), 1)

    def visit() -> None:
        errors = [library.exceptions.ConnectionError]
        with library.Redis(
            unix_socket_path=socket_path, socket_timeout=3, retry=retry, retry_on_error=errors
        ) as client:
            client.execute_command("INCR", "visits")

    report = storm(visit, faults=["lost", "refused", "slow"])
    assert report.calls == ("INCR visits#1",)
    assert {finding.fault for finding in report.findings if finding.kind == "duplicated"} >= {"INCR visits#1:lost"}
    assert not [finding for finding in report.findings if "refused" in finding.fault and not finding.is_note]


def test_async_redis_transaction(socket_path: str) -> None:
    """A transaction is one call, whose responses are all read before the connection is lost."""

    async def visit() -> None:
        retry = AsyncRetry(NoBackoff(), 1)
        async with (
            redis.asyncio.Redis(unix_socket_path=socket_path, retry=retry) as client,
            client.pipeline() as pipeline,
        ):
            _ = pipeline.set("key", 1), pipeline.incr("visits")  # a pipeline queues them
            await pipeline.execute()

    report = storm(visit, only="MULTI+SET key+INCRBY visits+EXEC#1:lost")
    assert [finding.kind for finding in report.findings] == ["duplicated"]
    assert "`INCRBY` rose by 2 instead of 1" in report.findings[0].text


def test_safe_commands_and_single_attempts(socket_path: str) -> None:
    """A SET may be sent twice, and an INCR that is sent once is no finding."""

    def visit() -> None:
        with redis.Redis(unix_socket_path=socket_path, retry=Retry(NoBackoff(), 1)) as client:
            client.set("key", "value")
        with redis.Redis(unix_socket_path=socket_path, retry=Retry(NoBackoff(), 0)) as client:
            client.execute_command("INCR", "visits")

    report = storm(visit)
    assert report.ok
    assert {finding.kind for finding in report.findings} == {"lost"}


def test_keys_that_vary(socket_path: str) -> None:
    """Numbers and UUIDs in a key are one name, so that two clean runs are the same."""

    def lock() -> None:
        with redis.Redis(unix_socket_path=socket_path, retry=Retry(NoBackoff(), 1)) as client:
            client.set(f"lock:{uuid4()}", "mine")
            client.set(f"{{user}}:{uuid4().hex}", "mine")

    report = storm(lock, faults=["lost"])
    assert report.calls == ("SET lock:*#1", "SET {user}:*#1")
    assert report.ok
