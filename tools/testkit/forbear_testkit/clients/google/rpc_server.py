"""A real gRPC server that ends calls as a script says, and remembers the requests."""

import threading
from collections import deque
from collections.abc import Callable, Generator, Iterator
from concurrent import futures
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import grpc

Metadata = tuple[tuple[str, str], ...]


@dataclass
class Server:
    """The next calls end with `fates` in turn: a code, perhaps after so many responses; then all succeed."""

    fates: deque[tuple[grpc.StatusCode, int, Metadata]] = field(default_factory=deque[Any])
    calls: list[str] = field(default_factory=list[str])
    requests: list[bytes] = field(default_factory=list[bytes])
    replies: list[bytes] = field(default_factory=lambda: [b""])
    target: str = ""
    leaving: bool = False
    stop: Callable[[], object] = field(default=lambda: None)

    def fail(self, code: grpc.StatusCode, *, times: int = 1, after: int = 0, metadata: Metadata = ()) -> None:
        """End the next calls with `code`, after so many responses where they are a stream."""
        self.fates.extend([(code, after, metadata)] * times)

    def leave_at_next_call(self) -> None:
        """Execute the next call, and stop the server before its response: the client gets GOAWAY and a lost call."""
        self.leaving = True

    def answer(self, method: str, requests: list[bytes], context: grpc.ServicerContext) -> Iterator[bytes]:
        self.calls.append(method.rpartition("/")[2])
        self.requests += requests
        if self.leaving:
            self.stop()
            while context.is_active():
                gate = threading.Event()
                context.add_callback(gate.set)
                gate.wait(5)
            return
        fate = self.fates.popleft() if self.fates else None
        for number, reply in enumerate(self.replies):
            if fate is not None and number == fate[1]:
                context.set_trailing_metadata(fate[2])
                context.abort(fate[0], "as told")
            yield reply

    def handler(self, details: Any) -> Any:
        """The handler of any RPC: raw bytes in and out, the kinds told apart by the name."""
        method: str = details.method
        streams_requests = "Write" in method or "Bidi" in method or "Collect" in method

        def many(request: Any, context: Any) -> Iterator[bytes]:
            if "Early" in method and self.fates:  # ends before it has read the requests
                self.calls.append(method.rpartition("/")[2])
                context.abort(self.fates.popleft()[0], "as told")
            yield from self.answer(method, list(request) if streams_requests else [request], context)

        def one(request: Any, context: Any) -> bytes:
            return next(many(request, context))

        if streams_requests:
            if "Bidi" in method:
                return grpc.stream_stream_rpc_method_handler(many)
            return grpc.stream_unary_rpc_method_handler(one)
        if "Read" in method or "Watch" in method:
            return grpc.unary_stream_rpc_method_handler(many)
        return grpc.unary_unary_rpc_method_handler(one)


class _Handlers(grpc.GenericRpcHandler):  # type: ignore[type-arg]
    def __init__(self, server: Server) -> None:
        self._server = server

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> Any:
        """Handle every RPC."""
        return self._server.handler(handler_call_details)


@contextmanager
def running(address: str = "127.0.0.1:0") -> Generator[Server]:
    """A server on loopback."""
    state = Server()
    with futures.ThreadPoolExecutor(2) as pool:
        server = grpc.server(pool, handlers=[_Handlers(state)])
        state.target = f"127.0.0.1:{server.add_insecure_port(address)}"
        server.start()
        state.stop = lambda: server.stop(None)
        try:
            yield state
        finally:
            server.stop(None).wait()
