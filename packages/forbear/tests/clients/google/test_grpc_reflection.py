"""Definitions that a real server tells by reflection, and servers that tell nonsense."""

from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent import futures
from contextlib import contextmanager, suppress
from typing import Any

import grpc
import pytest
from google.protobuf import descriptor_pb2, descriptor_pool

import forbear
from forbear.clients.grpc import RetryInterceptor, load_definitions
from forbear.grpc import definitions
from forbear.testing import virtual_time
from forbear_testkit.clients.google import protos
from forbear_testkit.clients.google.intercepted import UNAVAILABLE
from forbear_testkit.clients.google.rpc_server import running

reflection: Any = pytest.importorskip("grpc_reflection.v1alpha.reflection")
messages: Any = pytest.importorskip("grpc_reflection.v1alpha.reflection_pb2")
services: Any = pytest.importorskip("grpc_reflection.v1alpha.reflection_pb2_grpc")

Answer = Callable[[Any], Any]

SERVICE = "told.v1.Desk"
METHODS: dict[str, Sequence[str]] = {"Show": (protos.NO_SIDE_EFFECTS,), "Close": ("DELETE",), "Take": ()}


@pytest.fixture(autouse=True)
def _forget(monkeypatch: pytest.MonkeyPatch) -> None:
    """Other tests know nothing of these definitions."""
    monkeypatch.setattr(definitions, "_pools", list[Any]())
    monkeypatch.setattr(definitions, "_found", dict[str, Any]())


@contextmanager
def telling(servicer: Any) -> Generator[grpc.Channel]:
    """A channel to a server with this servicer for reflection."""
    with futures.ThreadPoolExecutor(2) as pool:
        server = grpc.server(pool)
        services.add_ServerReflectionServicer_to_server(servicer, server)
        port = server.add_insecure_port("127.0.0.1:0")
        server.start()
        try:
            with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
                yield channel
        finally:
            server.stop(None).wait()


def honest(service: str = SERVICE, methods: dict[str, Sequence[str]] = METHODS) -> Any:
    """gRPC's own servicer, which knows the service from a pool of its own."""
    pool = descriptor_pool.DescriptorPool()
    for path in ("google/protobuf/descriptor.proto", "google/api/http.proto", "google/api/annotations.proto"):
        copy: Any = descriptor_pb2.FileDescriptorProto()
        descriptor_pool.Default().FindFileByName(path).CopyToProto(copy)
        pool.Add(copy)
    package, _, name = service.rpartition(".")
    pool.Add(protos.define(package, name, methods, {}))
    return reflection.ReflectionServicer([service], pool)


def test_rpcs_are_judged_by_what_the_server_tells() -> None:
    """Before, none is repeated; afterwards those with an annotation are, by their executions on a server."""
    executed = dict[str, int]()
    with telling(honest()) as asked:
        assert load_definitions(asked) == (SERVICE,)
    for method in METHODS:
        with running() as server, grpc.insecure_channel(server.target) as plain, virtual_time():
            server.fail(UNAVAILABLE)
            channel: Any = grpc.intercept_channel(plain, RetryInterceptor())
            with suppress(grpc.RpcError):
                channel.unary_unary(f"/{SERVICE}/{method}")(b"")
            executed[method] = len(server.calls)
    assert executed == {"Show": 2, "Close": 2, "Take": 1}
    assert forbear.explain(f"/{SERVICE}/Show").repeatable


def test_a_loaded_module_counts_more() -> None:
    """The server cannot change what the program itself defines."""
    protos.load()
    with telling(honest("shop.v1.Orders", {"Make": (protos.IDEMPOTENT,)})) as channel:
        load_definitions(channel)
    assert not forbear.explain("/shop.v1.Orders/Make").repeatable


class Nonsense(services.ServerReflectionServicer):  # type: ignore[misc]
    """A server that answers each question by a function."""

    def __init__(self, answer: Answer) -> None:
        self.answer = answer

    def ServerReflectionInfo(  # noqa: N802 - the name that gRPC has for it
        self, request_iterator: Any, context: Any
    ) -> Iterator[Any]:
        """Answer all questions."""
        for request in request_iterator:
            yield self.answer(request)


def listed(*names: str) -> Any:
    """Return the answer with the names of services."""
    answer = messages.ServerReflectionResponse()
    for name in names:
        answer.list_services_response.service.add(name=name)
    return answer


def defined(*files: Any) -> Any:
    """Return the answer with files."""
    answer = messages.ServerReflectionResponse()
    answer.file_descriptor_response.file_descriptor_proto.extend(file.SerializeToString() for file in files)
    return answer


def file(name: str, *imports: str) -> Any:
    """Return a file that imports others."""
    return descriptor_pb2.FileDescriptorProto(name=name, dependency=imports)


def endless(request: Any) -> Any:
    """Each file imports fifty others that nobody has asked for."""
    name = request.file_by_filename or "x"
    imports = [f"{name}.{number}" for number in range(50)]
    return listed("a.B") if request.HasField("list_services") else defined(file(name, *imports))


def always(answer: Any) -> Answer:
    """Give this answer to each question."""

    def reply(request: Any) -> Any:
        return answer

    return reply


def with_files(*files: Any) -> Answer:
    """List one service, and answer each other question with these files."""

    def reply(request: Any) -> Any:
        return listed("a.B") if request.HasField("list_services") else defined(*files)

    return reply


TWICE: Any = descriptor_pb2.FileDescriptorProto(name="x")
for _ in range(2):
    TWICE.message_type.add(name="M")

WRONG: dict[str, tuple[Answer, str]] = {
    "an error": (
        always(messages.ServerReflectionResponse(error_response={"error_message": "no"})),
        "the server cannot define its services: 'no'",
    ),
    "no answer": (always(messages.ServerReflectionResponse()), "must list at least one service"),
    "many services": (always(listed(*map(str, range(1001)))), "at most 1000 services, got 1001"),
    "endless imports": (endless, "at most 2000 files, got 2551"),
    "a circle": (with_files(file("x", "y"), file("y", "x")), "no circle of imports"),
    "a missing file": (with_files(file("x", "missing")), "must send all that x imports"),
    "a contradiction": (with_files(TWICE), "the server's definition 'x' is wrong"),
}


@pytest.mark.parametrize(("answer", "text"), WRONG.values(), ids=WRONG)
def test_nonsense_is_refused(answer: Answer, text: str) -> None:
    """It ends with a clear error, within bounds, and nothing of it counts."""
    with telling(Nonsense(answer)) as channel, pytest.raises(ValueError, match=text):
        load_definitions(channel)
    assert definitions._pools == []


def test_a_server_without_reflection() -> None:
    """The error is that of gRPC."""
    with running() as server, grpc.insecure_channel(server.target) as channel:
        server.fail(grpc.StatusCode.UNIMPLEMENTED)
        with pytest.raises(grpc.RpcError):
            load_definitions(channel)


def test_wrong_timeouts() -> None:
    """They name the parameter, the rule and the value."""
    with (
        grpc.insecure_channel("127.0.0.1:1") as channel,
        pytest.raises(ValueError, match=r"`timeout` must be .*positive"),
    ):
        load_definitions(channel, timeout=0)
