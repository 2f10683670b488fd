"""Programs as the documentation of boto3 has them: they behave as without forbear, also under faults."""

import hashlib
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from forbear.clients.botocore import install
from forbear.testing import virtual_time
from forbear_testkit.clients import aws
from forbear_testkit.clients.wire import Answer, Wire, reply
from forbear_testkit.lazily import Library

boto3: Any = Library("boto3")
conditions: Any = Library("boto3.dynamodb.conditions")
transfer: Any = Library("boto3.s3.transfer")
exceptions: Any = Library("botocore.exceptions")

MIB = 1024 * 1024


@pytest.fixture(autouse=True)
def time() -> Iterator[None]:
    """Waits take no time in this thread; those of worker threads are a tenth of a second at most."""
    with virtual_time():
        yield


class Bucket(Wire):
    """A bucket of S3 that keeps the parts of an upload, and fails the first request for each part."""

    def __init__(self, first: Answer) -> None:
        super().__init__(reply(200))
        self.first = first
        self.requests: Counter[str] = Counter()

    def _next(self, head: bytes) -> Answer:
        method, target = head.decode().split(" ")[:2]
        query = parse_qs(urlsplit(target).query, keep_blank_values=True)
        name = f"{method} {query.get('partNumber', [''])[0] or ' '.join(sorted(query))}"
        self.requests[name] += 1
        if method == "POST" and "uploads" in query:
            return reply(200, b"<InitiateMultipartUploadResult><UploadId>u</UploadId></InitiateMultipartUploadResult>")
        if self.requests[name] == 1:
            return self.first
        if method == "POST":
            return reply(200, b"<CompleteMultipartUploadResult><ETag>e</ETag></CompleteMultipartUploadResult>")
        return reply(200, b"", 'ETag: "e"')

    def content(self) -> bytes:
        """Return the parts as they came last, joined."""
        parts: dict[int, bytes] = {}
        for seen in self.seen:
            number = re.search(r"partNumber=(\d+)", seen.target)
            if number is not None and seen.whole:
                parts[int(number[1])] = seen.body
        return b"".join(parts[number] for number in sorted(parts))


@pytest.mark.parametrize(
    "size", [pytest.param(11 * MIB, id="11 MiB"), pytest.param(50 * MIB, marks=pytest.mark.soak, id="50 MiB")]
)
@pytest.mark.parametrize("first", [aws.LOST, aws.BUSY], ids=["lost", "503"])
def test_upload_file(size: int, first: Answer, tmp_path: Path) -> None:
    """Every part, and the completion, fails once; each counts its own attempts, and the content is the file's."""
    path = tmp_path / "file"
    path.write_bytes(hashlib.shake_256(b"seed").digest(size))
    with Bucket(first) as bucket:
        client = install(aws.client("s3", bucket.url, request_checksum_calculation="when_required"))
        config = transfer.TransferConfig(multipart_threshold=5 * MIB, multipart_chunksize=5 * MIB, max_concurrency=3)
        client.upload_file(str(path), "b", "k", Config=config)
        assert bucket.content() == path.read_bytes()
        parts = -(-size // (5 * MIB))
        assert bucket.requests == {
            "POST uploads": 1,
            **{f"PUT {number}": 2 for number in range(1, parts + 1)},
            "POST uploadId": 2,
        }


def test_batch_writer() -> None:
    """A batch whose response is lost is sent again, and unprocessed items by boto3's own loop."""
    left = b'{"UnprocessedItems": {"t": [{"PutRequest": {"Item": {"k": {"S": "1"}}}}]}}'
    with Wire(aws.LOST, reply(200, left), reply(200, b'{"UnprocessedItems": {}}')) as server:
        session = boto3.Session(**aws.CREDENTIALS)
        resource = install(session.resource("dynamodb", endpoint_url=server.url, config=aws.settings()))
        aws.track(resource.meta.client)
        with resource.Table("t").batch_writer() as batch:
            batch.put_item(Item={"k": "1"})
    assert len(server.seen) == 3


def test_update_by_a_table() -> None:
    """The values and conditions of a resource are judged in the form in which they are sent."""
    with Wire(aws.LOST, reply(200, b"{}")) as server:
        session = boto3.Session(**aws.CREDENTIALS)
        resource = install(session.resource("dynamodb", endpoint_url=server.url, config=aws.settings()))
        aws.track(resource.meta.client)
        table = resource.Table("t")
        update: dict[str, Any] = {
            "Key": {"k": "1"},
            "UpdateExpression": "SET v = :new ADD n :one",
            "ExpressionAttributeValues": {":new": 2, ":one": 1},
        }
        table.update_item(**update, ConditionExpression=conditions.Attr("v").eq(1))
        assert len(server.seen) == 2
        server.answers[:] = [aws.LOST]
        with pytest.raises(exceptions.ConnectionClosedError):
            table.update_item(**update)
        assert len(server.seen) == 3


def test_consumer() -> None:
    """A consumer takes no second message for one whose response was lost; it deletes as often as it must."""
    message = b'{"Messages": [{"MessageId": "1", "ReceiptHandle": "r", "Body": "m"}]}'
    with Wire(reply(200, message), aws.LOST, reply(200, b"{}"), aws.LOST) as server:
        queue = install(aws.client("sqs", server.url))
        place = {"QueueUrl": f"{server.url}/1/q"}
        (received,) = queue.receive_message(**place)["Messages"]
        queue.delete_message(**place, ReceiptHandle=received["ReceiptHandle"])
        assert len(server.seen) == 3
        with pytest.raises(exceptions.ConnectionClosedError):
            queue.receive_message(**place)
        assert len(server.seen) == 4
