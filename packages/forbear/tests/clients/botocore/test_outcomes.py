"""Bodies of boto3: what is sent again, and responses whose body was cut off."""

import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import forbear
from forbear.clients.botocore import install
from forbear.core.decide import Reason
from forbear.testing import virtual_time
from forbear_testkit.clients import aws
from forbear_testkit.clients.aws import COUNT, KEY, OK
from forbear_testkit.clients.wire import Answer, Wire, reply
from forbear_testkit.lazily import Library
from forbear_testkit.services.aws import operation

botocore: Any = Library("botocore")
exceptions: Any = Library("botocore.exceptions")


@pytest.fixture(autouse=True)
def time() -> Iterator[None]:
    """Waits take no time."""
    with virtual_time():
        yield


def dynamodb(server: Wire, **options: Any) -> Any:
    """Return a client of DynamoDB with forbear's retries."""
    return install(aws.client("dynamodb", server.url), **options)


def broken() -> tuple[type[Exception], ...]:
    """Return the errors for a body that broke; the last is that of older versions, which look at the length."""
    return exceptions.IncompleteReadError, exceptions.ChecksumError, exceptions.ConnectionClosedError


@pytest.mark.parametrize(
    "answer",
    [
        reply(200, b'{"Item": {"k"', length=60, end="close"),
        reply(400, b'{"__type": "Validation', length=60, end="close"),
        reply(200, b"{}", "x-amz-crc32: 1"),
    ],
    ids=["success", "error", "checksum"],
)
def test_broken_json(answer: Answer) -> None:
    """A JSON body that is cut off or damaged is never handed out: a read is repeated, a write raises."""
    with Wire(answer, OK) as server:
        assert dynamodb(server).get_item(**KEY)["ResponseMetadata"]["RetryAttempts"] == 1
        server.answers[:] = [answer]
        with pytest.raises(broken()) as caught:
            dynamodb(server).update_item(**COUNT)
        assert "may have been executed" in caught.value.__notes__[0]
        assert len(server.seen) == 3
        with pytest.raises(broken()):
            dynamodb(server, attempts=1).get_item(**KEY)


@pytest.mark.parametrize("service_name", ["sns", "ec2", "s3"])
def test_broken_xml(service_name: str) -> None:
    """An XML body that is cut off would raise outside of botocore's loop; a read is repeated."""
    with Wire(aws.LOST) as server:
        client = install(aws.client(service_name, server.url))
        name, call, write, arguments = {
            "sns": ("ListTopics", "list_topics", "publish", {"TopicArn": "arn:aws:sns:us-east-1:1:t", "Message": "m"}),
            "ec2": ("DescribeVpcs", "describe_vpcs", "create_snapshot", {"VolumeId": "v"}),
            "s3": ("ListBuckets", "list_buckets", "create_multipart_upload", {"Bucket": "b", "Key": "k"}),
        }[service_name]
        model = client.meta.service_model.operation_model(name)
        server.answers[:] = [*aws.cut(model), aws.succeed(model)]
        getattr(client, call)()
        assert len(server.seen) == 2
        server.answers[:] = aws.cut(model)
        with pytest.raises(broken()) as caught:
            getattr(client, write)(**arguments)
        assert "may have been executed" in caught.value.__notes__[0]
        assert len(server.seen) == 3


def test_file_from_where_it_was(tmp_path: Path) -> None:
    """A file is sent again from where the caller had it, not from its start."""
    path = tmp_path / "file"
    path.write_bytes(b"headcontent")
    with Wire(aws.LOST, reply(200)) as server, path.open("rb") as file:
        file.seek(4)
        install(aws.client("s3", server.url, request_checksum_calculation="when_required")).put_object(
            Bucket="b", Key="k", Body=file
        )
    assert [seen.body for seen in server.seen] == [b"content"] * 2


def test_file_with_a_trailing_checksum() -> None:
    """So is a file whose checksum follows it."""
    file = io.BytesIO(b"headcontent")
    file.seek(4)
    with Wire(aws.LOST, reply(200)) as server:
        install(aws.client("s3", server.url)).put_object(Bucket="b", Key="k", Body=file, ChecksumAlgorithm="CRC32")
    first, second = (seen.body for seen in server.seen)
    assert first == second
    assert b"content" in first
    assert b"head" not in first


class OnceBody(io.BytesIO):
    """A body in a file that cannot be read again once it is sent."""

    sent = False

    def seek(self, offset: int, whence: int = 0) -> int:
        if self.sent:
            raise OSError("gone")
        return super().seek(offset, whence)


def test_body_that_cannot_be_read_again() -> None:
    """A file that cannot go back is not sent again; the error is that of the attempt, not one about the file."""
    body = OnceBody(b"content")
    lost = Answer(end="reset", first=lambda: setattr(body, "sent", True))
    with Wire(lost) as server, pytest.raises(exceptions.ConnectionClosedError) as caught:
        install(aws.client("s3", server.url, request_checksum_calculation="when_required")).put_object(
            Bucket="b", Key="k", Body=body
        )
    report = forbear.report(caught.value)
    assert report is not None
    assert report.reason is Reason.BODY
    assert len(server.seen) == 1


def test_presigned_parts() -> None:
    """botocore copies a call's context to presign a part of it; the copy shares the state."""
    with Wire(aws.LOST) as server:
        client = install(aws.client("ec2", server.url), safe="ec2.CopySnapshot")
        model = client.meta.service_model.operation_model("CopySnapshot")
        server.answers[:] = [aws.LOST, aws.succeed(model)]
        client.copy_snapshot(SourceRegion="eu-west-1", SourceSnapshotId="s")
    assert len(server.seen) == 2


@pytest.mark.parametrize("page", [b"upstream connect error", b"<!DOCTYPE html><p>Busy<p>", b"<html>Busy<p></html>"])
@pytest.mark.parametrize(("service", "name"), [("sns", "ListTopics"), ("ec2", "DescribeVpcs"), ("s3", "ListBuckets")])
def test_page_of_a_proxy(service: str, name: str, page: bytes) -> None:
    """A 503 is one also if its page is no answer of the service; botocore raises ResponseParserError for most."""
    model = operation(service, name)
    with Wire(reply(503, page), aws.succeed(model), reply(503, page)) as server:
        client = install(aws.client(service, server.url), attempts=2)
        call = getattr(client, botocore.xform_name(name))
        call()
        assert len(server.seen) == 2
        with pytest.raises(exceptions.ClientError, match="503") as caught:
            call()
    assert forbear.report(caught.value) is not None
