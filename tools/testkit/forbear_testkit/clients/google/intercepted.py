"""Calls through the interceptors, sync and async."""

import asyncio
from collections.abc import Iterator
from typing import Any

import grpc
import grpc.aio
import pytest

from forbear.clients.grpc import RetryInterceptor, aio_interceptors
from forbear_testkit.clients.google.rpc_server import Server, running

UNAVAILABLE = grpc.StatusCode.UNAVAILABLE


SAFE = ("t.T/Say", "t.T/Watch", "/t.T/Collect", "t.T/Bidi", "t.T/CollectEarly", "t.T/BidiEarly")


KINDS = {"Say": "unary_unary", "Watch": "unary_stream", "Collect": "stream_unary", "Bidi": "stream_stream"}


EARLY = {"CollectEarly": "stream_unary", "BidiEarly": "stream_stream"}
"""RPCs that fail before they have read their requests."""


@pytest.fixture
def server() -> Iterator[Server]:
    """Run a server that ends calls as its script says."""
    with running() as server:
        server.replies = [b"1", b"2", b"3"]
        yield server


def limit(options: dict[str, Any]) -> list[tuple[str, int]]:
    """Take `most`, the most bytes of a response, out of `options`, and return it as options of a channel."""
    return [("grpc.max_receive_message_length", options.pop("most", 1_000_000))]


def call(
    server: Server, name: str, *, safe: Any = SAFE, not_executed: Any = (), request: Any = None, **options: Any
) -> list[bytes]:
    """Return the responses to one call on a sync channel."""
    interceptor = RetryInterceptor(options.pop("policy", None), safe=safe, not_executed=not_executed)
    with grpc.insecure_channel(server.target, limit(options)) as plain:
        channel: Any = grpc.intercept_channel(plain, interceptor)
        kind = (KINDS | EARLY)[name]
        default = b"a" if kind.startswith("unary") else [b"a", b"b"]
        found = getattr(channel, kind)(f"/t.T/{name}")(default if request is None else request, **options)
        return list(found) if kind.endswith("stream") else [found]


def acall(
    server: Server, name: str, *, safe: Any = SAFE, not_executed: Any = (), request: Any = None, **options: Any
) -> list[bytes]:
    """The same on an asyncio channel."""

    async def run() -> list[bytes]:
        interceptors = aio_interceptors(options.pop("policy", None), safe=safe, not_executed=not_executed)
        async with grpc.aio.insecure_channel(server.target, limit(options), interceptors=interceptors) as opened:
            channel: Any = opened
            kind = (KINDS | EARLY)[name]
            default = b"a" if kind.startswith("unary") else [b"a", b"b"]
            call = getattr(channel, kind)(f"/t.T/{name}")(default if request is None else request, **options)
            return [reply async for reply in call] if kind.endswith("stream") else [await call]

    return asyncio.run(run())
