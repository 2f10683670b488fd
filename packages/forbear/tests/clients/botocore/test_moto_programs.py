"""Programs as users of boto3 write them, on moto: with forbear they do what they do without, and also under faults.

Their own environment runs them (`make moto`).
"""

import hashlib
import re
import urllib.request
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from forbear.clients.botocore import install
from forbear.testing import virtual_time
from forbear_testkit.clients import aws, moto
from forbear_testkit.lazily import Library
from forbear_testkit.services.aws import operation

boto3: Any = Library("boto3")
conditions: Any = Library("boto3.dynamodb.conditions")
transfer: Any = Library("boto3.s3.transfer")
exceptions: Any = Library("botocore.exceptions")

pytestmark = pytest.mark.skipif(find_spec("moto") is None, reason="`make moto` has it")

MIB = 1024 * 1024
_ID = re.compile(
    r"[0-9a-f]{8}(?:-?[0-9a-f]{4}){3}-?[0-9a-f]{12}|\bi-[0-9a-f]{17}|(?<=uploadId=)\w+|(?<=Signature=)[^&]+|(?<=Expires=)\d+"
    r"|(?<=ReceiptHandle\": \")[^\"]+"
)
"""The parts that differ from run to run: tokens of botocore, ids and pages of moto, and the signature in a URL."""


class Maker:
    """The clients and resources of a program, with forbear's retries or without, and the calls made by them."""

    def __init__(self, url: str, folder: Path, *, installed: bool) -> None:
        self.folder = folder
        self.calls: list[str] = []
        self._url = url
        self._installed = installed

    def client(self, service: str) -> Any:
        """Return a client of boto3."""
        return self._track(boto3.client(service, endpoint_url=self._url, config=aws.settings(), **aws.CREDENTIALS))

    def resource(self, service: str) -> Any:
        """Return a resource of boto3."""
        made = boto3.resource(service, endpoint_url=self._url, config=aws.settings(), **aws.CREDENTIALS)
        self._track(made.meta.client)
        return made

    def _track(self, client: Any) -> Any:
        client.meta.events.register("before-call", self._note)
        return aws.track(install(client) if self._installed else client)

    def _note(self, model: Any, **_: Any) -> None:
        self.calls.append(model.name)


def write_file(folder: Path, size: int) -> Path:
    """Return a file of this size whose content is always the same."""
    path = folder / "file"
    path.write_bytes(hashlib.shake_256(b"seed").digest(size))
    return path


def upload(make: Maker) -> Any:
    """Upload 50 MB in parts, read what arrived, and download it."""
    s3, path = make.client("s3"), write_file(make.folder, 50 * MIB)
    config = transfer.TransferConfig(multipart_threshold=5 * MIB, multipart_chunksize=5 * MIB, max_concurrency=3)
    s3.create_bucket(Bucket="bucket")
    s3.upload_file(str(path), "bucket", "k", Config=config, ExtraArgs={"ContentType": "text/plain"})
    s3.download_file("bucket", "k", str(make.folder / "copy"), Config=config)
    head = s3.head_object(Bucket="bucket", Key="k")
    same = path.read_bytes() == (make.folder / "copy").read_bytes()
    return same, head["ContentLength"], head["ETag"], head["ContentType"]


TABLE: dict[str, Any] = {
    "TableName": "visits",
    "KeySchema": [{"AttributeName": "page", "KeyType": "HASH"}],
    "AttributeDefinitions": [{"AttributeName": "page", "AttributeType": "S"}],
    "BillingMode": "PAY_PER_REQUEST",
}


def write_batches(make: Maker) -> Any:
    """Make a table by a resource, wait for it, write batches, and read pages."""
    dynamodb = make.resource("dynamodb")
    table = dynamodb.create_table(**TABLE)
    table.wait_until_exists()
    with table.batch_writer(overwrite_by_pkeys=["page"]) as batch:
        for number in range(60):
            batch.put_item(Item={"page": f"/{number % 55}", "count": number})
        batch.delete_item(Key={"page": "/0"})
    scan = make.client("dynamodb").get_paginator("scan")
    pages = scan.paginate(TableName="visits", PaginationConfig={"PageSize": 20})
    found = sorted(item["page"]["S"] for page in pages for item in page["Items"])
    (queried,) = table.query(KeyConditionExpression=conditions.Key("page").eq("/7"))["Items"]
    return found, queried, table.scan(FilterExpression=conditions.Attr("count").gt(50))["Count"]


def update_under_a_condition(make: Maker) -> Any:
    """Change an item under its version, and run into a condition that fails."""
    dynamodb = make.resource("dynamodb")
    table = dynamodb.create_table(**TABLE)
    table.put_item(Item={"page": "/", "version": 1, "count": 0})
    change: dict[str, Any] = {
        "Key": {"page": "/"},
        "UpdateExpression": "SET version = :new ADD #count :one",
        "ConditionExpression": conditions.Attr("version").eq(1),
        "ExpressionAttributeNames": {"#count": "count"},
        "ExpressionAttributeValues": {":new": 2, ":one": 1},
        "ReturnValues": "ALL_NEW",
    }
    first = table.update_item(**change)["Attributes"]
    with pytest.raises(exceptions.ClientError) as caught:
        table.update_item(**change)
    return first, str(caught.value), caught.value.response["Error"], table.get_item(Key={"page": "/"})["Item"]


def consume(make: Maker) -> Any:
    """Send messages, take them by a resource, and delete them."""
    queue = make.resource("sqs").create_queue(QueueName="orders")
    for start in (0, 10):
        queue.send_messages(Entries=[{"Id": f"{n}", "MessageBody": f"order {n}"} for n in range(start, start + 10)])
    taken: list[str] = []
    while messages := queue.receive_messages(MaxNumberOfMessages=7):
        taken += (message.body for message in messages)
        queue.delete_messages(Entries=[{"Id": m.message_id, "ReceiptHandle": m.receipt_handle} for m in messages])
    queue.reload()
    return sorted(taken), queue.attributes["ApproximateNumberOfMessages"]


def wait_and_page(make: Maker) -> Any:
    """Use waiters and paginators of three services, and a waiter that gives up."""
    s3, iam, ec2 = make.client("s3"), make.client("iam"), make.client("ec2")
    s3.create_bucket(Bucket="bucket")
    s3.get_waiter("bucket_exists").wait(Bucket="bucket")
    for number in range(7):
        s3.put_object(Bucket="bucket", Key=f"{number}", Body=b"x")
        iam.create_user(UserName=f"user-{number}")
    listed = s3.get_paginator("list_objects_v2").paginate(Bucket="bucket", PaginationConfig={"PageSize": 3})
    users = iam.get_paginator("list_users").paginate(PaginationConfig={"PageSize": 3})
    made = ec2.run_instances(ImageId="ami-12c6146b", MinCount=2, MaxCount=2)["Instances"]
    ids = [each["InstanceId"] for each in made]
    ec2.get_waiter("instance_running").wait(InstanceIds=ids)
    ec2.terminate_instances(InstanceIds=ids)
    ec2.get_waiter("instance_terminated").wait(InstanceIds=ids)
    with pytest.raises(exceptions.WaiterError) as caught:
        s3.get_waiter("object_exists").wait(Bucket="bucket", Key="no", WaiterConfig={"Delay": 0, "MaxAttempts": 3})
    states = ec2.get_paginator("describe_instances").paginate().search("Reservations[].Instances[].State.Name")
    names = listed.search("Contents[].Key")
    return list(names), [user["UserName"] for page in users for user in page["Users"]], list(states), str(caught.value)


def use_resources(make: Maker) -> Any:
    """Use collections, copies, streams, presigned URLs and errors of S3 by a resource."""
    s3 = make.resource("s3")
    bucket = s3.create_bucket(Bucket="bucket")
    for number in range(5):
        bucket.put_object(Key=f"in/{number}", Body=f"line {number}\n".encode() * 3)
    bucket.Object("copy").copy({"Bucket": "bucket", "Key": "in/1"})
    lines = list(bucket.Object("copy").get()["Body"].iter_lines())
    url = s3.meta.client.generate_presigned_url("get_object", Params={"Bucket": "bucket", "Key": "in/2"})
    with urllib.request.urlopen(url) as response:
        read = response.read()
    with pytest.raises(exceptions.ClientError) as caught:
        bucket.Object("no").get()
    bucket.objects.filter(Prefix="in/").delete()
    return lines, read, caught.value.response["Error"], [each.key for each in bucket.objects.all()]


PROGRAMS = [upload, write_batches, update_under_a_condition, consume, wait_and_page, use_resources]


@pytest.fixture(scope="module")
def server() -> Iterator[moto.Moto]:
    """One moto for all programs."""
    with moto.serving() as server:
        yield server


def run(
    program: Callable[[Maker], Any], server: moto.Moto, folder: Path, *, installed: bool, faults: Any = ()
) -> tuple[Any, list[str], list[tuple[str, str, str]]]:
    """Run a program on an empty moto; return its result, its calls, and the requests without their ids, in order."""
    server.reset()
    server.faults[:] = faults
    make = Maker(server.url, folder, installed=installed)
    with virtual_time():
        result = program(make)
    sent = [(each.method, _ID.sub("ID", each.path), _describe(each.body)) for each in server.executed]
    return result, sorted(make.calls), sorted(sent)


def _describe(body: bytes) -> str:
    return _ID.sub("ID", body.decode()) if len(body) < MIB else hashlib.sha256(body).hexdigest()


@pytest.mark.parametrize("program", PROGRAMS)
def test_nothing_fails(program: Callable[[Maker], Any], server: moto.Moto, tmp_path: Path) -> None:
    """The result, the calls of the API and the requests are the same with forbear and without."""
    plain = run(program, server, tmp_path, installed=False)
    assert run(program, server, tmp_path, installed=True) == plain


@pytest.mark.parametrize(
    ("program", "service", "name"), [(upload, "s3", "GetObject"), (write_batches, "dynamodb", "Scan")]
)
def test_under_faults(
    program: Callable[[Maker], Any], service: str, name: str, server: moto.Moto, tmp_path: Path
) -> None:
    """If every second response is lost or a 503, the result is the same; what must not be repeated is sent first."""
    plain = run(program, server, tmp_path, installed=False)
    faults = [None, None, *[moto.LOST, None, moto.busy(operation(service, name)), None] * 50]
    result, calls, sent = run(program, server, tmp_path, installed=True, faults=faults)
    assert (result, calls) == plain[:2]
    assert len(sent) > len(plain[2])
    assert set(sent) == set(plain[2])
