"""The examples for gRPC and Cloud Storage."""

from collections import Counter
from concurrent import futures
from typing import Any

import grpc
import httpx
import pytest
from google.api_core.exceptions import PreconditionFailed
from google.auth.credentials import AnonymousCredentials
from google.cloud import storage
from google.protobuf.wrappers_pb2 import Int64Value, StringValue

import forbear
from forbear.testing import virtual_time
from forbear_cloud import Cloud, Fault
from forbear_testkit.examples.load import load


class Warehouse(grpc.GenericRpcHandler):  # type: ignore[type-arg]
    """A warehouse with one item of each kind; `failures` end the next calls, after they were executed or before."""

    def __init__(self) -> None:
        self.reserved = Counter[str]()
        self.failures: list[str] = []

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> Any:
        """Return the handler of an RPC."""
        handle = self._count if handler_call_details.method.endswith("Count") else self._reserve
        return grpc.unary_unary_rpc_method_handler(
            handle, request_deserializer=StringValue.FromString, response_serializer=Int64Value.SerializeToString
        )

    def _count(self, item: Any, context: grpc.ServicerContext) -> Any:
        self._fail("before", context)
        return Int64Value(value=1 - self.reserved[item.value])

    def _reserve(self, item: Any, context: grpc.ServicerContext) -> Any:
        self.reserved[item.value] += 1
        self._fail("after", context)
        return Int64Value()

    def _fail(self, when: str, context: grpc.ServicerContext) -> None:
        if when in self.failures:
            self.failures.remove(when)
            context.abort(grpc.StatusCode.UNAVAILABLE, "connection reset")


def test_stock_is_reserved_once() -> None:
    """Reading the stock is repeated, as the program vouches; a reservation whose outcome is unknown is not."""
    program, warehouse = load("grpc_stock"), Warehouse()
    with futures.ThreadPoolExecutor(2) as pool, virtual_time() as time:
        server = grpc.server(pool, handlers=[warehouse])
        port = server.add_insecure_port("127.0.0.1:0")
        server.start()
        with program.connect(f"127.0.0.1:{port}") as channel:
            warehouse.failures += ["before", "before"]
            assert program.reserve(channel, "tea") == 1
            assert len(time.slept) == 2
            warehouse.failures += ["after"]
            with pytest.raises(grpc.RpcError) as raised:
                program.reserve(channel, "salt")
            assert program.reserve(channel, "salt") == 0
        server.stop(None).wait()
    report = forbear.report(raised.value)
    assert report is not None
    assert report.reason is forbear.events.Reason.UNSAFE
    assert warehouse.reserved == {"tea": 1, "salt": 1}


def test_a_report_is_written_once() -> None:
    """After 503 and a lost response the object is written once, and a second report of the name is refused."""
    program = load("storage_upload")
    with Cloud() as cloud, virtual_time():
        cloud.store.create_bucket("reports")
        options = {"api_endpoint": cloud.url}
        client = storage.Client("p", AnonymousCredentials(), client_options=options)  # type: ignore[no-untyped-call]
        cloud.fault(Fault.status(503, operation="storage.objects.insert", times=2))
        program.publish(client, "reports", "may", "hello")
        cloud.fault(Fault.reset(when="after", operation="storage.objects.insert", times=1))
        program.publish(client, "reports", "june", "hello")
        with pytest.raises(PreconditionFailed):
            program.publish(client, "reports", "may", "another")
    assert cloud.effects.count("storage.objects.insert") == 2


def test_a_summary_is_written_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """pandas reads a file that breaks off, and writes its summary once, behind 503 and a lost response."""
    monkeypatch.setenv("GCSFS_EXPERIMENTAL_ZB_HNS_SUPPORT", "false")  # it would call Google's API by gRPC
    program = load("pandas_gcsfs")
    rows = "shop,amount\n" + "north,1\nsouth,2\n" * 50_000
    with Cloud() as cloud, virtual_time() as time:
        cloud.store.create_bucket("b")
        httpx.post(f"{cloud.url}/upload/storage/v1/b/b/o?uploadType=media&name=sales.csv", content=rows.encode())
        options = program.options(token="anon", endpoint_url=cloud.url, project="p", skip_instance_cache=True)
        cloud.fault(Fault.truncate(100_000, path="/download/storage/v1/b/b/o/sales.csv", times=1))
        cloud.fault(Fault.status(503, retry_after=20, operation="storage.objects.insert.start", times=1))
        cloud.fault(Fault.reset(when="after", operation="storage.objects.insert.send", times=1))
        total = program.summarise("gs://b/sales.csv", "gs://b/summary.csv", options)
        written = httpx.get(f"{cloud.url}/storage/v1/b/b/o/summary.csv?alt=media").text
    assert dict(zip(total["shop"], total["amount"], strict=True)) == {"north": 50_000, "south": 100_000}
    assert written == "shop,amount\nnorth,50000\nsouth,100000\n"
    assert cloud.effects.count("storage.objects.insert") == 2  # the sales, and their summary
    assert len(time.slept) == 3
    assert max(time.slept) >= 20  # Retry-After
    ranges = [request.headers.get("range") for request in cloud.requests]
    assert ranges.count("bytes=100000-262143") == 1  # the rest of the part that broke off
    assert [request.operation for request in cloud.requests][-2] == "storage.objects.insert.query"
