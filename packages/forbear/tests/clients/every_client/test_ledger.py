"""Every adapter makes entries in the ledger of the attempt, so a function that fails later is not called again."""

import asyncio
from collections.abc import Callable
from typing import Any

import aiohttp
import grpc
import grpc.aio
import pytest
import redis
import requests
import valkey
from botocore.exceptions import ClientError

import forbear
from forbear.clients import grpc as forbear_grpc
from forbear.clients import redis as forbear_redis
from forbear.clients import valkey as forbear_valkey
from forbear.clients.aiohttp import RetryMiddleware
from forbear.clients.requests import RetryAdapter
from forbear.testing import virtual_time
from forbear.testing.valkey import valkey_server
from forbear.verdicts import NOT_EXECUTED, Verdict
from forbear_testkit.clients import aws
from forbear_testkit.clients.google import protos
from forbear_testkit.clients.google.rpc_server import running
from forbear_testkit.clients.wire import Answer, Wire, reply

POLICY = forbear.retry(on=Exception, attempts=3, timeout=None)


class Broken(Exception):
    """The error of a function that shows nothing of what it has sent."""


def count_attempts(work: Callable[[], object]) -> int:
    """Return how often work is tried that succeeds, and is followed by an error of the function's own."""
    attempts = 0

    def function() -> None:
        nonlocal attempts
        attempts += 1
        work()
        raise Broken

    with virtual_time(), pytest.raises(Broken):
        POLICY.call(function)
    return attempts


def test_requests_and_aiohttp() -> None:
    """Each HTTP client's port is an entry."""

    async def send(method: str, url: str) -> None:
        async with (
            aiohttp.ClientSession(middlewares=(RetryMiddleware(),)) as session,
            session.request(method, url, data=b"x") as response,
        ):
            await response.read()

    with Wire(reply(200, b"{}")) as wire, requests.Session() as session:
        session.mount("http://", RetryAdapter())
        for method, count in (("GET", 3), ("PUT", 3), ("PATCH", 1), ("POST", 1)):
            assert count_attempts(lambda: session.request(method, wire.url, data=b"x", timeout=5)) == count  # noqa: B023
            assert count_attempts(lambda: asyncio.run(send(method, wire.url))) == count  # noqa: B023


def write(pipe: Any) -> None:
    """Queue a write under WATCH."""
    pipe.multi()
    pipe.set("k", 1)


def refuse(command: Callable[[str], object], key: str) -> None:
    """Send a command that the server refuses."""
    with pytest.raises((redis.ResponseError, valkey.ResponseError)):
        command(key)


COMMANDS: dict[str, tuple[Callable[[Any], object], int]] = {
    "GET": (lambda r: r.get("k"), 3),
    "SET": (lambda r: r.set("k", "v"), 3),
    "SET EX": (lambda r: r.set("k", "v", ex=9), 3),
    "INCR": (lambda r: r.incr("n"), 1),
    "long": (lambda r: r.lpush("l", b"x" * 100_000), 1),
    "V1 SET NX": (lambda r: r.set("seen", 1, nx=True), 1),
    "V1 SADD": (lambda r: r.sadd("s", 1), 1),
    "pipeline of reads": (lambda r: r.pipeline(transaction=False).get("k").get("m").execute(), 3),
    "pipeline": (lambda r: r.pipeline(transaction=False).get("k").incr("n").execute(), 1),
    "transaction": (lambda r: r.pipeline().incr("n").execute(), 1),
    "L2 transaction under WATCH": (lambda r: r.transaction(write, "k"), 1),
    "refused": (lambda r: refuse(r.incr, "text"), 3),
}


@pytest.mark.parametrize("library", ["redis", "valkey"])
def test_commands(library: str) -> None:
    """Commands, pipelines and transactions on a real server; a command that the server refuses leaves no entry."""
    with valkey_server() as path:
        kind: Any = forbear_redis.Redis if library == "redis" else forbear_valkey.Valkey
        with kind(unix_socket_path=path) as client:
            client.set("text", "v")
            for name, (work, count) in COMMANDS.items():
                assert count_attempts(lambda: work(client)) == count, name  # noqa: B023

            def in_scope() -> None:
                with forbear_redis.promised("unique"):
                    client.get("k")

            assert count_attempts(in_scope) == 3


def test_rpcs() -> None:
    """RPCs by their tables and definitions; a code that says that the call is wrong leaves no entry."""
    protos.load()
    for safe, name, count in (
        ((), "/t.T/Say", 1),
        (["t.T/Say"], "/t.T/Say", 3),
        ((), "/google.iam.admin.v1.IAM/GetServiceAccount", 3),
    ):
        with running() as server, grpc.insecure_channel(server.target) as plain:
            channel: Any = grpc.intercept_channel(plain, forbear_grpc.RetryInterceptor(safe=safe))
            assert count_attempts(lambda: channel.unary_unary(name)(b"", timeout=5)) == count  # noqa: B023
            server.fail(grpc.StatusCode.INVALID_ARGUMENT, times=9)

            def refused() -> None:
                with pytest.raises(grpc.RpcError):
                    channel.unary_unary(name)(b"", timeout=5)  # noqa: B023

            assert count_attempts(refused) == 3


def test_calls_of_aws() -> None:
    """Operations by botocore's models; an answer that the call is wrong leaves no entry."""
    with Wire(reply(200, b"{}")) as wire:
        client = forbear.install(aws.client("dynamodb", wire.url))
        key = {"k": {"S": "1"}}
        add = {"UpdateExpression": "ADD n :v", "ExpressionAttributeValues": {":v": {"N": "1"}}}
        assert count_attempts(lambda: client.get_item(TableName="t", Key=key)) == 3
        assert count_attempts(lambda: client.put_item(TableName="t", Item=key)) == 3
        assert count_attempts(lambda: client.update_item(TableName="t", Key=key, **add)) == 1
        absent = {"ConditionExpression": "attribute_not_exists(k)"}
        assert count_attempts(lambda: client.put_item(TableName="t", Item=key, **absent)) == 1
        wire.answers[:] = [reply(400, b'{"__type": "ValidationException"}')]

        def refused() -> None:
            with pytest.raises(ClientError):
                client.update_item(TableName="t", Key=key, **add)

        assert count_attempts(refused) == 3


def _refuse(_: Exception) -> Verdict:
    return NOT_EXECUTED


def test_rpcs_that_are_refused_first() -> None:
    """A refusal proves nothing about the next attempt, which succeeds: the function is not called again."""
    protos.load()
    policy = forbear.retry(on=_refuse, attempts=3)

    async def send(target: str, name: str) -> None:
        opened: Any = grpc.aio.insecure_channel(target, interceptors=forbear_grpc.aio_interceptors(policy))
        async with opened as channel:
            if name.endswith("Read"):
                [each async for each in channel.unary_stream(name)(b"", timeout=5)]
            else:
                await channel.unary_unary(name)(b"", timeout=5)

    for name in ("/t.T/Say", "/t.T/Read"):
        with running() as server, grpc.insecure_channel(server.target) as plain:
            channel: Any = grpc.intercept_channel(plain, forbear_grpc.RetryInterceptor(policy))
            call = channel.unary_stream(name) if name.endswith("Read") else channel.unary_unary(name)
            server.fail(grpc.StatusCode.UNAVAILABLE)
            assert count_attempts(lambda: list(call(b"", timeout=5))) == 1  # noqa: B023
            server.fail(grpc.StatusCode.UNAVAILABLE)
            assert count_attempts(lambda: asyncio.run(send(server.target, name))) == 1  # noqa: B023
            assert len(server.calls) == 4


def test_requests_that_are_refused_first() -> None:
    """The same for HTTP and for AWS, where S3 may send a refused call to another region."""
    throttled = reply(400, b'{"__type": "ThrottlingException"}')
    moved = reply(301, b"<Error><Code>PermanentRedirect</Code></Error>", "x-amz-bucket-region: eu-west-1")
    begun = b"<InitiateMultipartUploadResult><UploadId>u</UploadId></InitiateMultipartUploadResult>"
    with Wire(reply(429), reply(200)) as wire, requests.Session() as session:
        session.mount("http://", RetryAdapter())
        assert count_attempts(lambda: session.post(wire.url, data=b"x", timeout=5)) == 1
    with Wire(throttled, reply(200, b"{}")) as wire:
        client = forbear.install(aws.client("dynamodb", wire.url))
        assert count_attempts(lambda: client.update_item(**aws.COUNT)) == 1
    with Wire(moved, reply(200, begun)) as wire:
        client = forbear.install(aws.client("s3", wire.url))
        assert count_attempts(lambda: client.create_multipart_upload(Bucket="b", Key="k")) == 1


PATHS: list[tuple[str, str, str, int]] = [
    ("L4 the same resource", "/n", "/n", 1),
    ("another query", "/n?a=1", "/n", 1),
    ("L4 a parent", "/items", "/items/1", 1),
    ("another resource", "/other", "/n", 3),
    ("a name that begins alike", "/item", "/items/1", 3),
    ("the root", "/", "/n", 3),
]


@pytest.mark.parametrize(("read", "written", "count"), [path[1:] for path in PATHS], ids=[path[0] for path in PATHS])
def test_l4_a_write_of_what_was_read(read: str, written: str, count: int) -> None:
    """L4: a PUT of what the attempt has read is a new one in each attempt; in another order it is the same."""
    with Wire(reply(200, b"{}")) as wire, requests.Session() as session:
        session.mount("http://", RetryAdapter())

        def send(method: str, path: str) -> None:
            session.request(method, f"{wire.url}{path}", data=b"", timeout=5)

        def change() -> None:
            send("GET", read)
            send("PUT", written)

        def check() -> None:
            send("PUT", written)
            send("GET", read)

        assert count_attempts(change) == count
        assert count_attempts(check) == 3
        assert count_attempts(lambda: send("PUT", written)) == 3


def test_l4_a_plain_client_writes_what_an_adapter_has_read() -> None:
    """L4: the error of a plain client's PUT shows it, and the ledger knows the read."""
    for path, count in (("/n", 1), ("/m", 3)):
        with Wire(reply(200, b"{}")) as wire, requests.Session() as session, virtual_time():
            session.mount("http://", RetryAdapter())
            attempts = list[int]()

            def change(path: str = path, wire: Wire = wire, session: requests.Session = session) -> None:
                attempts.append(1)  # noqa: B023
                session.get(f"{wire.url}{path}", timeout=5)
                wire.answers[:] = [Answer(end="close")]
                try:
                    requests.put(f"{wire.url}/n", timeout=5)
                finally:
                    wire.answers[:] = [reply(200, b"{}")]

            with pytest.raises(requests.ConnectionError):
                POLICY.call(change)
            assert len(attempts) == count


def test_l4_keys() -> None:
    """L4: GET n, SET n + 1; also with hashes, pipelines, and reads of several keys."""
    cases: list[tuple[Callable[[Any], object], Callable[[Any], object], int]] = [
        (lambda r: r.get("n"), lambda r: r.set("n", 1), 1),
        (lambda r: r.get(b"n"), lambda r: r.set("n", 1), 1),
        (lambda r: r.mget("m", "n"), lambda r: r.set("n", 1, ex=9), 1),
        (lambda r: r.hget("h", "f"), lambda r: r.hset("h", "f", 1), 1),
        (lambda r: r.pipeline(transaction=False).get("n").execute(), lambda r: r.delete("n"), 1),
        (lambda r: r.get("n"), lambda r: r.pipeline().set("n", 1).execute(), 1),
        (lambda r: r.get("n"), lambda r: r.pipeline(transaction=False).get("n").set("m", 1).execute(), 3),
        (lambda r: r.get("m"), lambda r: r.set("n", 1), 3),
    ]
    with valkey_server() as path, forbear_redis.Redis(unix_socket_path=path) as client:
        for number, (read, written, count) in enumerate(cases):
            assert count_attempts(lambda: (read(client), written(client))) == count, number  # noqa: B023
