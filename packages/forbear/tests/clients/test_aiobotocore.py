"""Calls of aiobotocore under faults; its own environment runs this (`make clients`)."""

import json
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from importlib.util import find_spec
from typing import Any

import pytest

import forbear
from forbear.clients._botocore.events import find_installed
from forbear.core.decide import Reason
from forbear.testing import virtual_time
from forbear_testkit.clients import aws
from forbear_testkit.clients.aws import BUSY, COUNT, FUNCTIONS, KEY, OK, THROTTLED
from forbear_testkit.clients.wire import Answer, Wire, reply
from forbear_testkit.lazily import Library

aiobotocore: Any = Library("forbear.clients.aiobotocore")
botocore_client: Any = Library("forbear.clients.botocore")
config_of: Any = Library("aiobotocore.config")
session_of: Any = Library("aiobotocore.session")
exceptions: Any = Library("botocore.exceptions")

pytestmark = pytest.mark.skipif(find_spec("aiobotocore") is None, reason="`make clients` has it")


@asynccontextmanager
async def connect(service: str, url: str, **options: Any) -> AsyncGenerator[Any, None]:
    """Open a client of aiobotocore for a server on loopback."""
    retries: dict[str, Any] = {"mode": options.pop("mode", "standard")}
    if "attempts" in options:
        retries["total_max_attempts"] = options.pop("attempts")
    config = config_of.AioConfig(retries=retries, **options)
    place: dict[str, str] = {"region_name": "us-east-1", "aws_access_key_id": "a", "aws_secret_access_key": "b"}
    async with session_of.get_session().create_client(service, endpoint_url=url, config=config, **place) as client:
        yield client


@pytest.mark.parametrize("mode", ["legacy", "standard", "adaptive"])
async def test_read_and_write(mode: str) -> None:
    """A read is repeated, a write that counts is not; the error is the library's, with note and report."""
    with virtual_time(), Wire(aws.LOST, OK, aws.LOST) as server:
        async with connect("dynamodb", server.url, mode=mode) as client:
            aiobotocore.install(client)
            assert (await client.get_item(**KEY))["ResponseMetadata"]["RetryAttempts"] == 1
            with pytest.raises(exceptions.BotoCoreError) as caught:
                await client.update_item(**COUNT)
    assert len(server.seen) == 3
    report = forbear.report(caught.value)
    assert report is not None
    assert report.reason is Reason.UNSAFE
    assert caught.value.__notes__


@pytest.mark.parametrize("end", ["reset", "close"])
@pytest.mark.parametrize("installed", [True, False])
async def test_aiohttp_repeats_nothing_by_itself(end: str, *, installed: bool) -> None:
    """Without forbear, aiohttp sends a PUT on a kept connection twice although botocore's retries are off."""
    with virtual_time(), Wire(reply(200, b"{}"), Answer(end=end)) as server:
        async with connect("lambda", server.url, attempts=1) as client:
            aiobotocore.install(client)
            if not installed:
                aiobotocore.uninstall(client)
            assert (find_installed(client.meta.events) is not None) is installed
            await client.get_account_settings()
            with pytest.raises(exceptions.BotoCoreError):
                await client.update_function_code(FunctionName="f", Publish=True, ZipFile=b"x")
    assert [seen.method for seen in server.seen] == ["GET", *["PUT"] * (1 if installed else 2)]


OUTER = forbear.retry(on=forbear.transient, attempts=3, timeout=60, retry_exhausted=True)


async def decorate(call: Callable[[], Awaitable[object]]) -> None:
    """Call a decorated function."""

    @OUTER
    async def decorated() -> None:
        await call()

    await decorated()


async def loop(call: Callable[[], Awaitable[object]]) -> None:
    """Call in a block."""
    async for attempt in OUTER:
        async with attempt:
            await call()


@pytest.mark.parametrize("installed", [True, False])
@pytest.mark.parametrize("case", FUNCTIONS)
async def test_a_function(case: str, *, installed: bool) -> None:
    """A call is repeated after a lost response if it may be, and only then; a token counts where forbear fills it."""
    service, method, parameters, with_ours, plain = FUNCTIONS[case]
    times = with_ours if installed else plain
    with virtual_time(), Wire(*(aws.LOST, OK)[:times] * 2) as server:
        async with connect(service, server.url, attempts=1) as client:
            if installed:
                aiobotocore.install(client, attempts=1)

            async def call() -> object:
                return await getattr(client, method)(**parameters)

            for form in (decorate, loop):
                server.seen.clear()
                if times == 1:
                    with pytest.raises(exceptions.BotoCoreError) as caught:
                        await form(call)
                    assert f"{service}." in caught.value.__notes__[0]
                else:
                    await form(call)
                assert len(server.seen) == times
                if installed and case == "token":
                    first, second = (json.loads(seen.body)["ClientRequestToken"] for seen in server.seen)
                    assert first == second


async def test_paginators_and_waiters() -> None:
    """Each request of a paginator and of a waiter is retried by itself."""
    pages = (
        reply(200, b'{"TableNames": ["a"], "LastEvaluatedTableName": "abc"}'),
        aws.LOST,
        reply(200, b'{"TableNames": ["b"]}'),
    )
    waits = aws.LOST, reply(200, b'{"Table": {"TableStatus": "ACTIVE"}}')
    with virtual_time(), Wire(*pages, *waits) as server:
        async with connect("dynamodb", server.url) as client:
            aiobotocore.install(client)
            names = [
                name async for page in client.get_paginator("list_tables").paginate() for name in page["TableNames"]
            ]
            assert names == ["a", "b"]
            await client.get_waiter("table_exists").wait(TableName="abc")
    assert len(server.seen) == 5


async def test_uninstall_turns_the_repeats_on_again() -> None:
    """A session of aiohttp that was made in the meantime is as it was, too."""
    with virtual_time(), Wire(reply(200, b"{}"), aws.LOST) as server:
        async with connect("lambda", server.url, attempts=1) as client:
            aiobotocore.install(client)
            await client.get_account_settings()
            aiobotocore.uninstall(client)
            with pytest.raises(exceptions.BotoCoreError):
                await client.update_function_code(FunctionName="f", Publish=True, ZipFile=b"x")
    assert [seen.method for seen in server.seen] == ["GET", "PUT", "PUT"]


async def test_refused() -> None:
    """A refusal before execution, and a connection that was not made, let any operation be repeated."""
    with virtual_time(), Wire(THROTTLED, OK) as server:
        url = server.url
        async with connect("dynamodb", url) as client:
            await aiobotocore.install(client).update_item(**COUNT)
    assert len(server.seen) == 2
    with virtual_time():
        async with connect("dynamodb", url) as client:
            with pytest.raises(exceptions.EndpointConnectionError) as caught:
                await aiobotocore.install(client, attempts=3).update_item(**COUNT)
    report = forbear.report(caught.value)
    assert report is not None
    assert (report.count, report.reason) == (3, Reason.ATTEMPTS)


async def test_reset_is_no_proof() -> None:
    """aiobotocore calls a request whose response was lost an EndpointConnectionError, too."""
    with virtual_time(), Wire(aws.LOST) as server:
        async with connect("sqs", server.url) as client:
            with pytest.raises(exceptions.BotoCoreError):
                await aiobotocore.install(client).send_message(QueueUrl=f"{server.url}/1/q", MessageBody="m")
    assert len(server.seen) == 1


async def test_error_response() -> None:
    """The report of a ClientError rides in its ResponseMetadata."""
    with virtual_time(), Wire(BUSY) as server:
        async with connect("dynamodb", server.url) as client:
            with pytest.raises(exceptions.ClientError) as caught:
                await aiobotocore.install(client).update_item(**COUNT)
    assert forbear.report(caught.value) is not None
    assert json.dumps(caught.value.response)


async def test_broken_body() -> None:
    """A body that is cut off is never handed out."""
    torn = reply(200, b'{"Item": {', length=60, end="close")
    with virtual_time(), Wire(torn, OK, torn) as server:
        async with connect("dynamodb", server.url) as client:
            aiobotocore.install(client)
            await client.get_item(**KEY)
            with pytest.raises(exceptions.BotoCoreError):
                await client.update_item(**COUNT)
    assert len(server.seen) == 3


async def test_the_name_for_every_client() -> None:
    """`forbear.install` puts async retries into a client; those for boto3 refuse it."""
    with virtual_time(), Wire(aws.LOST, OK) as server:
        async with connect("dynamodb", server.url) as client:
            with pytest.raises(TypeError, match="is async"):
                botocore_client.install(client)
            assert forbear.install(client, attempts=3) is client
            with pytest.raises(TypeError, match="is async"):
                botocore_client.uninstall(client)  # aiohttp's own repeats would stay off
            await client.get_item(**KEY)
    assert len(server.seen) == 2
    with pytest.raises(TypeError, match="is async"):
        botocore_client.install(session_of.get_session())


async def test_other_clients() -> None:
    """Sessions and other objects are refused, and a second installation."""
    for other in (session_of.get_session(), object(), None):
        with pytest.raises(TypeError, match="`client` must be"):
            aiobotocore.install(other)
    async with connect("sqs", "http://127.0.0.1:1") as client:
        aiobotocore.install(client)
        with pytest.raises(ValueError, match="already"):
            aiobotocore.install(client)


@pytest.mark.parametrize("ours", [True, False], ids=["ours", "plain"])
@pytest.mark.parametrize("kind", ["ParamValidationError", "NoCredentialsError"])
async def test_what_was_never_sent(kind: str, *, ours: bool) -> None:
    """An error before the request is sent says nothing about a repeat, whether it is raised or caught."""
    error: Any = getattr(exceptions, kind)
    calls: list[str] = []

    def refuse(**_: Any) -> None:
        raise error

    with virtual_time(), Wire() as server:
        async with connect("dynamodb", server.url) as client:
            if ours:
                aiobotocore.install(client)
            if kind == "NoCredentialsError":
                client.meta.events.register("before-sign.dynamodb", refuse)

            @forbear.retry(on=(error, ConnectionError), attempts=3)
            async def count(*, catches: bool) -> None:
                calls.append("count")
                try:
                    await client.update_item(**{**COUNT, "Key": COUNT["Key"] if kind == "NoCredentialsError" else 7})
                except error:
                    if not catches:
                        raise
                raise ConnectionError("of another service")

            with pytest.raises(error):
                await count(catches=False)
            with pytest.raises(ConnectionError):
                await count(catches=True)
        assert (len(calls), len(server.seen)) == (6, 0)
