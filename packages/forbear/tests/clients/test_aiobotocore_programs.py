"""Programs of aioboto3 on moto; their own environment runs them (`make aioboto3`), since it holds aiobotocore back."""

import hashlib
import io
from collections.abc import Awaitable, Callable, Iterator
from importlib.util import find_spec
from typing import Any

import pytest

import forbear
from forbear.testing import virtual_time
from forbear_testkit.clients import aws, moto
from forbear_testkit.lazily import Library
from forbear_testkit.services.aws import operation

aioboto3: Any = Library("aioboto3")
config_of: Any = Library("aiobotocore.config")
transfer: Any = Library("boto3.s3.transfer")

pytestmark = [
    pytest.mark.skipif(find_spec("aioboto3") is None, reason="`make aioboto3` has it"),
    pytest.mark.filterwarnings("ignore:Sending a large body directly:ResourceWarning"),  # so does aioboto3 with parts
]

MIB = 1024 * 1024
Take = Callable[[Any], Any]


@pytest.fixture(scope="module")
def server() -> Iterator[moto.Moto]:
    """One moto for all programs."""
    with moto.serving() as server:
        yield server


async def upload(session: Any, place: dict[str, Any], take: Take) -> Any:
    """Upload a file in parts, and read it."""
    content = hashlib.shake_256(b"seed").digest(11 * MIB)
    config = transfer.TransferConfig(multipart_threshold=5 * MIB, multipart_chunksize=5 * MIB)
    async with session.client("s3", **place) as client:
        s3 = take(client)
        await s3.create_bucket(Bucket="bucket")
        await s3.upload_fileobj(io.BytesIO(content), "bucket", "k", Config=config)
        answer = await s3.get_object(Bucket="bucket", Key="k")
        return await answer["Body"].read() == content, answer["ETag"]


async def write_batches(session: Any, place: dict[str, Any], take: Take) -> Any:
    """Make a table by a resource, write batches, and scan it."""
    async with session.resource("dynamodb", **place) as resource:
        table = await take(resource).create_table(
            TableName="visits",
            KeySchema=[{"AttributeName": "page", "KeyType": "HASH"}],
            AttributeDefinitions=[{"AttributeName": "page", "AttributeType": "S"}],
            BillingMode="PAY_PER_REQUEST",
        )
        await table.wait_until_exists()
        async with table.batch_writer() as batch:
            for number in range(60):
                await batch.put_item(Item={"page": f"/{number}"})
        return sorted(item["page"] for item in (await table.scan())["Items"])


async def consume(session: Any, place: dict[str, Any], take: Take) -> Any:
    """Send a message, take it and delete it, and list pages."""
    async with session.client("sqs", **place) as client:
        sqs = take(client)
        queue = (await sqs.create_queue(QueueName="orders"))["QueueUrl"]
        await sqs.send_message(QueueUrl=queue, MessageBody="order")
        (message,) = (await sqs.receive_message(QueueUrl=queue))["Messages"]
        await sqs.delete_message(QueueUrl=queue, ReceiptHandle=message["ReceiptHandle"])
        pages = [page async for page in sqs.get_paginator("list_queues").paginate(PaginationConfig={"PageSize": 1})]
        return message["Body"], "Messages" in await sqs.receive_message(QueueUrl=queue), len(pages)


async def run(
    program: Callable[..., Awaitable[Any]], server: moto.Moto, take: Take, faults: Any = ()
) -> tuple[Any, list[tuple[str, int]]]:
    """Run a program on an empty moto; return its result, and the method and length of each request, in order."""
    server.reset()
    server.faults[:] = faults
    place = {"endpoint_url": server.url, "config": config_of.AioConfig(s3={"addressing_style": "path"})}
    with virtual_time():
        result = await program(aioboto3.Session(**aws.CREDENTIALS), place, take)
    return result, sorted((each.method, len(each.body)) for each in server.executed)


@pytest.mark.parametrize("program", [upload, write_batches, consume])
async def test_nothing_fails(program: Callable[..., Awaitable[Any]], server: moto.Moto) -> None:
    """Result and requests are the same with forbear and without."""
    plain = await run(program, server, lambda client: client)
    assert await run(program, server, forbear.install) == plain


@pytest.mark.parametrize(
    ("program", "service", "name"), [(upload, "s3", "GetObject"), (write_batches, "dynamodb", "Scan")]
)
async def test_under_faults(program: Callable[..., Awaitable[Any]], service: str, name: str, server: moto.Moto) -> None:
    """If every second response is lost or a 503, the result is the same; what must not be repeated is sent first."""
    result, sent = await run(program, server, lambda client: client)
    faults = [None, None, *[moto.LOST, None, moto.busy(operation(service, name)), None] * 20]
    again, resent = await run(program, server, forbear.install, faults)
    assert again == result
    assert len(resent) > len(sent)
