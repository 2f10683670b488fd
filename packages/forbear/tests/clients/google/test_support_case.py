"""Reports of gRPC calls and of Google's clients have the facts for a support case, from their own metadata."""

import asyncio
from collections.abc import Callable, Iterator
from typing import Any, cast

import grpc
import grpc.aio
import pytest
from google.api_core import exceptions
from google.cloud import _storage_v2 as storage_v2
from google.cloud import redis_v1
from google.cloud._storage_v2.services.storage import transports
from google.cloud.redis_v1.services.cloud_redis.transports import CloudRedisRestTransport
from google.protobuf import any_pb2
from google.rpc import error_details_pb2, status_pb2  # type: ignore[import-untyped]

import forbear
from forbear.clients import google
from forbear.clients.google_storage import DEFAULT_RETRY, install
from forbear.clients.grpc import RetryInterceptor, aio_interceptors
from forbear.services import cloud_storage, memorystore
from forbear.testing import virtual_time
from forbear_cloud import Cloud, Fault
from forbear_testkit.clients.google import ANONYMOUS, rest_server, rpc_server

DELETE = "google.storage.v2.Storage/DeleteObject"
REQUEST = storage_v2.DeleteObjectRequest(bucket="projects/_/buckets/b", object_="o", generation=7)
POLICY = cloud_storage.policy.with_attempts(2)
INSTANCE = "projects/p/locations/us-central1/instances/i"


def metadata() -> Any:
    """The trailing metadata of a failed RPC, as Google's servers send it."""
    status = status_pb2.Status(code=14, message="as told")
    packed = any_pb2.Any()
    packed.Pack(error_details_pb2.RequestInfo(request_id="info-1", serving_data="server 7"))
    status.details.append(packed)
    return (("x-goog-request-id", "req-1"), ("grpc-status-details-bin", status.SerializeToString()))


def generated(target: str) -> None:
    """Delete by the generated client."""
    with grpc.insecure_channel(target) as channel:
        client: Any = storage_v2.StorageClient(transport=transports.StorageGrpcTransport(channel=channel))
        client.delete_object(REQUEST, retry=google.retry_for(DELETE, POLICY))


def generated_async(target: str) -> None:
    """Delete by the generated client on asyncio."""

    async def run() -> None:
        async with grpc.aio.insecure_channel(target) as channel:
            transport = transports.StorageGrpcAsyncIOTransport(channel=channel)
            client: Any = storage_v2.StorageAsyncClient(transport=transport)
            await client.delete_object(REQUEST, retry=google.async_retry_for(DELETE, POLICY))

    asyncio.run(run())


def intercepted(target: str) -> None:
    """Delete through an interceptor."""
    with grpc.insecure_channel(target) as plain:
        channel = grpc.intercept_channel(plain, RetryInterceptor(POLICY))
        channel.unary_unary(f"/{DELETE}", storage_v2.DeleteObjectRequest.serialize, None)(REQUEST)


def intercepted_async(target: str) -> None:
    """Delete through the interceptors for asyncio."""

    async def run() -> None:
        async with grpc.aio.insecure_channel(target, interceptors=aio_interceptors(POLICY)) as opened:
            channel: Any = opened
            await channel.unary_unary(f"/{DELETE}", storage_v2.DeleteObjectRequest.serialize, None)(REQUEST)

    asyncio.run(run())


@pytest.fixture
def server() -> Iterator[rpc_server.Server]:
    """A server whose calls end as a test says."""
    with rpc_server.running() as server:
        yield server


@pytest.mark.parametrize("delete", [generated, generated_async, intercepted, intercepted_async])
def test_every_rpc(server: rpc_server.Server, delete: Callable[[str], None]) -> None:
    """The full name, the object, the code, the ids in metadata and RequestInfo, and the times."""
    server.fail(grpc.StatusCode.UNAVAILABLE, times=2, metadata=metadata())
    with virtual_time() as time, pytest.raises((grpc.RpcError, exceptions.ServiceUnavailable)) as caught:
        delete(server.target)
    began = time.now - time.elapsed
    report = forbear.report(caught.value)
    assert report is not None
    assert (report.method, report.resource) == (DELETE, "projects/_/buckets/b/objects/o")
    assert [attempt.status for attempt in report.attempts] == ["UNAVAILABLE"] * 2
    ids = {"google.rpc.requestinfo": "info-1", "x-goog-request-id": "req-1"}
    assert [dict(attempt.request_ids) for attempt in report.attempts] == [ids] * 2
    assert report.attempts[0].time == began


def test_an_unknown_rpc_shows_no_field(server: rpc_server.Server) -> None:
    """The fields of an unknown service may be anything."""
    server.fail(grpc.StatusCode.UNAVAILABLE)
    with virtual_time(), grpc.insecure_channel(server.target) as plain:
        channel = grpc.intercept_channel(plain, RetryInterceptor())
        say = channel.unary_unary("/t.T/Say", storage_v2.DeleteObjectRequest.serialize, None)
        with pytest.raises(grpc.RpcError) as caught:
            say(REQUEST)
    report = forbear.report(caught.value)
    assert report is not None
    assert (report.method, report.resource) == ("t.T/Say", None)


def test_a_rest_transport() -> None:
    """The status and the ids are those of HTTP, the name is that of the RPC."""
    fate = rest_server.Fate(503, headers=(("x-goog-request-id", "req-1"),))
    rpc, transport = "google.cloud.redis.v1.CloudRedis/GetInstance", cast("Any", CloudRedisRestTransport)
    retry = google.retry_for(rpc, memorystore.policy.with_attempts(2))
    with rest_server.running() as server, virtual_time():
        server.fail(fate, fate)
        sending = transport(host=server.host, credentials=ANONYMOUS, url_scheme="http")
        client: Any = redis_v1.CloudRedisClient(transport=sending)
        with pytest.raises(exceptions.ServiceUnavailable) as caught:
            client.get_instance({"name": INSTANCE}, retry=retry)
    report = forbear.report(caught.value)
    assert report is not None
    assert (report.method, report.resource) == (rpc, INSTANCE)
    assert [(each.status, each.request_ids) for each in report.attempts] == [
        (503, (("x-goog-request-id", "req-1"),))
    ] * 2


def reload_bucket(bucket: Any) -> None:
    """Read the metadata of the bucket."""
    bucket.reload(retry=DEFAULT_RETRY.with_timeout(3))


def upload(bucket: Any) -> None:
    """Upload an object."""
    bucket.blob("a").upload_from_string(b"x", retry=DEFAULT_RETRY.with_timeout(3), if_generation_match=0)


def resume(bucket: Any) -> None:
    """Start the session of a resumable upload, whose id is secret."""
    bucket.blob("a").create_resumable_upload_session(retry=DEFAULT_RETRY.with_timeout(3), if_generation_match=0)


@pytest.mark.parametrize("installed", [False, True], ids=["retry object", "install"])
@pytest.mark.parametrize(
    ("call", "method", "path", "shown"),
    [
        (reload_bucket, "GET", "/storage/v1/b/bkt", "ABP-1"),
        (upload, "POST", "/upload/storage/v1/b/bkt/o", "ABP-1"),
        (resume, "POST", "/upload/storage/v1/b/bkt/o", "[redacted]"),
    ],
    ids=["metadata", "upload", "session"],
)
def test_google_cloud_storage(
    cloud: Cloud, client: Any, installed: bool, call: Callable[[Any], None], method: str, path: str, shown: str
) -> None:
    """With the retry objects and with `install`, for metadata and for uploads."""
    cloud.fault(Fault.status(503, times=99, headers={"X-GUploader-UploadID": "ABP-1"}))
    if installed:
        install(client, cloud_storage.policy.with_attempts(2))
    with virtual_time(seed=1), pytest.raises(exceptions.GoogleAPIError) as caught:
        call(client.bucket("bkt"))
    report = forbear.report(caught.value)
    assert report is not None
    assert report.method == method
    assert (report.resource or "").endswith(path)
    assert {attempt.status for attempt in report.attempts} == {503}
    assert {attempt.request_ids for attempt in report.attempts} == {(("x-guploader-uploadid", shown),)}
