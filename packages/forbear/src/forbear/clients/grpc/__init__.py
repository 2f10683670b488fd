"""Interceptors for gRPC channels that retry calls, sync and asyncio; and `load_definitions`, which asks a server."""

from collections.abc import Sequence
from typing import Any

try:
    import grpc
except ImportError as error:
    raise ImportError('forbear.clients.grpc needs grpcio; install it with: pip install "forbear[grpc]"') from error

from forbear.clients.grpc.aio import aio_interceptors
from forbear.clients.grpc.sync import RetryInterceptor
from forbear.core import check
from forbear.grpc import definitions
from forbear.run.runtime import current

__all__ = ["RetryInterceptor", "aio_interceptors", "load_definitions"]


_METHOD = "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo"
_MOST_SERVICES, _MOST_FILES, _MOST_BYTES = 1000, 2000, 64 << 20


def load_definitions(channel: grpc.Channel, *, timeout: float = 10.0) -> tuple[str, ...]:
    """Ask the server of `channel` for the definitions of its services, and return the names of the services.

    From then on they count for all channels of this process, sync and asyncio, as if a module with them were loaded:
    `idempotency_level` and `google.api.http` say which RPCs may be repeated. What a loaded module defines stays as it
    is there. Ask only a server that you trust: whoever says that an RPC is idempotent is believed.

    The server needs reflection, and this process the package grpcio-reflection. `timeout` is the number of seconds for
    all questions together. Raises ImportError without that package, grpc.RpcError if the server does not answer, and
    ValueError for answers that make no sense or are too large: more than 1000 services, 2000 files or 64 MiB. Example:
    see `RetryInterceptor`.
    """
    check.positive_seconds("timeout", timeout)
    try:
        from google.protobuf import descriptor_pool
        from google.protobuf.descriptor_pb2 import FileDescriptorProto
        from grpc_reflection.v1alpha import reflection_pb2
    except ImportError as error:
        raise ImportError("load_definitions needs grpcio-reflection: pip install grpcio-reflection") from error
    question: Any = reflection_pb2.ServerReflectionRequest
    ends = current.get().monotonic() + timeout
    untyped: Any = channel
    stream = untyped.stream_stream(
        _METHOD,
        request_serializer=question.SerializeToString,
        response_deserializer=reflection_pb2.ServerReflectionResponse.FromString,
    )

    def ask(questions: Sequence[Any]) -> list[Any]:
        """Return the answers to some questions; one that the server cannot answer raises ValueError."""
        left = max(ends - current.get().monotonic(), 0.001)
        calls = stream(iter(questions), timeout=left)
        try:
            answers: list[Any] = [answer for _, answer in zip(questions, calls, strict=False)]
        finally:
            calls.cancel()
        if len(answers) < len(questions):
            raise ValueError(f"the server must answer each question, got {len(answers)} answers to {len(questions)}")
        failed = [answer.error_response.error_message for answer in answers if answer.HasField("error_response")]
        if failed:
            raise ValueError(f"the server cannot define its services: {check.shown(failed[0])}")
        return answers

    (listed,) = ask([question(list_services="")])
    names: list[str] = [service.name for service in listed.list_services_response.service]
    if not names:
        raise ValueError("the server must list at least one service, got none")
    _limit(len(names), _MOST_SERVICES, "services")
    files, size = dict[str, Any](), 0
    asked = set[str]()
    waiting = [question(file_containing_symbol=name) for name in names]
    while waiting:
        for answer in ask(waiting):
            for encoded in answer.file_descriptor_response.file_descriptor_proto:
                file: Any = FileDescriptorProto.FromString(encoded)
                files[file.name], size = file, size + len(encoded)
                _limit(size, _MOST_BYTES, "bytes")
        missing = {name for file in files.values() for name in file.dependency} - files.keys() - asked
        asked |= missing
        _limit(len(files) + len(missing), _MOST_FILES, "files")
        waiting = [question(file_by_filename=name) for name in sorted(missing)]
    pool = descriptor_pool.DescriptorPool()
    _add_files(pool, files)
    definitions.add_pool(pool)
    return tuple(names)


def _limit(count: int, most: int, what: str) -> None:
    if count > most:
        raise ValueError(f"the definitions of a server must have at most {most} {what}, got {count}")


def _add_files(pool: Any, files: dict[str, Any]) -> None:
    """Put files into a pool, each after those that it imports; ValueError if one is missing or they form a circle."""
    left, added = dict(files), set[str]()
    while left:
        ready = [name for name, file in left.items() if added.issuperset(file.dependency)]
        if not ready:
            raise ValueError(f"the server must send all that {min(left)} imports, and no circle of imports")
        for name in ready:
            try:
                pool.Add(left.pop(name))
            except TypeError as error:  # protobuf's, for a definition that contradicts itself
                raise ValueError(f"the server's definition {check.shown(name)} is wrong: {error}") from None
            added.add(name)
