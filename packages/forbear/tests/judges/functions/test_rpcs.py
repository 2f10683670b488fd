"""RPCs of functions without an adapter: how often the server executes them, however they are called."""

import asyncio
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import grpc
import grpc.aio
import pytest
from google.cloud.secretmanager_v1 import Secret, SecretManagerServiceAsyncClient, SecretManagerServiceClient
from google.cloud.secretmanager_v1.services.secret_manager_service import transports

import forbear
from forbear.testing import virtual_time
from forbear_testkit.clients.google import protos, secret_server
from forbear_testkit.clients.google.rpc_server import Server, running
from forbear_testkit.clients.google.secret_server import SecretServer

POLICY = forbear.retry(on=Exception, attempts=3, timeout=None)


def text_of(error: BaseException | None) -> str:
    """Return the text of the report that says why a run stopped at a doubt."""
    report = forbear.report(error)
    assert report is not None
    return report.text


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """Run a server that ends calls as its script says."""
    protos.load()
    with running() as server:
        yield server


class Passing(
    grpc.UnaryUnaryClientInterceptor,  # type: ignore[type-arg]
    grpc.UnaryStreamClientInterceptor,  # type: ignore[type-arg]
    grpc.StreamUnaryClientInterceptor,  # type: ignore[type-arg]
    grpc.StreamStreamClientInterceptor,  # type: ignore[type-arg]
):
    """An interceptor that passes calls on."""

    def intercept_unary_unary(self, continuation: Any, client_call_details: Any, request: Any) -> Any:
        return continuation(client_call_details, request)

    intercept_unary_stream = intercept_unary_unary

    def intercept_stream_unary(self, continuation: Any, client_call_details: Any, request_iterator: Any) -> Any:
        return continuation(client_call_details, request_iterator)

    intercept_stream_stream = intercept_stream_unary


ONE: dict[str, Callable[[Any, Any], object]] = {
    "call": lambda method, request: method(request, timeout=5),
    "with_call": lambda method, request: method.with_call(request, timeout=5),
    "future": lambda method, request: method.future(request, timeout=5).result(),
}
MANY: dict[str, Callable[[Any, Any], object]] = {
    "list": lambda method, request: list(method(request, timeout=5)),
    "next": lambda method, request: next(method(request, timeout=5)),
}
KINDS = {
    "unary_unary": ("/t.T/Say", "/google.iam.admin.v1.IAM/GetServiceAccount", ONE),
    "unary_stream": ("/t.T/Watch", "/google.storage.v2.Storage/ReadObject", MANY),
    "stream_unary": ("/t.T/Collect", None, ONE),
    "stream_stream": ("/t.T/Bidi", "/google.storage.v2.Storage/BidiReadObject", MANY),
}
WAYS = [
    (kind, way, name, executed)
    for kind, (unknown, read, ways) in KINDS.items()
    for way in ways
    for name, executed in ((unknown, 1), (read, 2))
    if name is not None
]


@pytest.mark.parametrize("is_intercepted", [False, True])
@pytest.mark.parametrize(("kind", "way", "name", "executed"), WAYS)
def test_however_it_is_called(
    server: Server, kind: str, way: str, name: str, executed: int, is_intercepted: bool
) -> None:
    """An unknown RPC is executed once, a known read again, in each way to call it and through interceptors."""
    server.calls.clear()
    server.fates.clear()
    server.fail(grpc.StatusCode.UNAVAILABLE)

    def work() -> object:
        with grpc.insecure_channel(server.target) as plain:
            channel: Any = grpc.intercept_channel(plain, Passing()) if is_intercepted else plain
            request = b"" if kind.startswith("unary") else iter([b""])
            return KINDS[kind][2][way](getattr(channel, kind)(name), request)

    with virtual_time():
        if executed == 1:
            with pytest.raises(grpc.RpcError) as caught:
                POLICY.call(work)
            assert text_of(caught.value).startswith(name.removeprefix("/"))
        else:
            POLICY.call(work)
    assert len(server.calls) == executed


def test_names(server: Server) -> None:
    """An RPC that nobody knows is executed once, unless the user vouches for it; known ones are repeated."""

    def say(channel: Any, name: str) -> object:
        return channel.unary_unary(name)(b"", timeout=5)

    with grpc.insecure_channel(server.target) as channel, virtual_time():
        for name, safe, executed in (
            ("/t.T/Say", (), 1),
            ("/t.T/Say", "/t.U/*", 1),
            *(("/t.T/Say", name, 2) for name in ("t.T/Say", "/t.T/Say", "/t.T/*")),
            ("/google.iam.admin.v1.IAM/GetServiceAccount", (), 2),
            ("/shop.v1.Orders/Cancel", (), 2),  # by its annotation
        ):
            server.calls.clear()
            server.fates.clear()
            server.fail(grpc.StatusCode.UNAVAILABLE)
            policy = POLICY.with_changes(safe=safe)
            if executed == 1:
                with pytest.raises(grpc.RpcError) as caught:
                    policy.call(say, channel, name)
                assert "t.T/Say" in text_of(caught.value)
            else:
                policy.call(say, channel, name)
            assert len(server.calls) == executed


@pytest.fixture(scope="module")
def secrets() -> Iterator[SecretServer]:
    """Run a server of Secret Manager."""
    with secret_server.running() as server:
        yield server


def call(server: SecretServer, method: str) -> object:
    """Call a method of a generated client."""
    with grpc.insecure_channel(server.target) as channel:
        client = SecretManagerServiceClient(transport=transports.SecretManagerServiceGrpcTransport(channel=channel))
        return POLICY.call(getattr(client, method), name="projects/p/secrets/s", retry=None, timeout=5)


def acall(server: SecretServer, method: str) -> object:
    """Call a method of a generated client for asyncio."""

    async def run() -> object:
        async with grpc.aio.insecure_channel(server.target) as channel:
            transport = transports.SecretManagerServiceGrpcAsyncIOTransport(channel=channel)
            client = SecretManagerServiceAsyncClient(transport=transport)
            work = partial(getattr(client, method), name="projects/p/secrets/s", retry=None, timeout=5)
            return await POLICY.acall(work)

    return asyncio.run(run())


@pytest.mark.parametrize("send", [call, acall])
def test_generated_clients(secrets: SecretServer, send: Callable[[SecretServer, str], object]) -> None:
    """A read of a generated client is called again, a Delete without a condition is not."""
    secrets.reset()
    secrets.secrets["projects/p/secrets/s"] = Secret(name="projects/p/secrets/s")
    secrets.fail_reads = grpc.StatusCode.UNAVAILABLE
    secrets.faults.append("after")
    with virtual_time():
        with pytest.raises(Exception, match="503"):
            send(secrets, "get_secret")
        with pytest.raises(Exception, match="503") as caught:
            send(secrets, "delete_secret")
    assert secrets.calls == ["GetSecret"] * 3 + ["DeleteSecret"]
    assert text_of(caught.value).startswith("google.cloud.secretmanager.v1.SecretManagerService/DeleteSecret")
