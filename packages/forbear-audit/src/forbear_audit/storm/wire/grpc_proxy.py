"""A gRPC proxy on loopback, between a channel and its server: below the retries that a service config asks for.

It forwards calls of any kind as streams of bytes, and ends those that get a fault.
"""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import count
from typing import Any

import grpc

from forbear_audit.storm.faults import INJECTED, RETRY_AFTER
from forbear_audit.storm.run_record import RunRecord, SentCall, StormEnded
from forbear_audit.storm.stack import UserStack

_grpc: Any = grpc  # its types want to know the messages
_MARK = "forbear-storm"
_THREADS = 64
_HIDDEN = (_MARK, "user-agent", "grpc-previous-rpc-attempts")
_DETAILS = "grpc-status-details-bin"
_EXHAUSTED = 8
_NO_RESPONSE = (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED, grpc.StatusCode.DEADLINE_EXCEEDED)


@dataclass(frozen=True, slots=True)
class RpcOrigin:
    """The client's side of a call: its name, stack, safety and kind, and what the channel to the server needs."""

    label: str
    stack: UserStack
    unsafe: bool
    faults: tuple[str, ...]
    streams: bool
    timeout: float | None
    credentials: Any
    wait_for_ready: bool | None


class GrpcProxy(grpc.GenericRpcHandler):  # type: ignore[type-arg] # generic for type checkers only
    """The proxy of one channel; `upstream` is the channel to the server. It runs until `stop` is called."""

    def __init__(self, record: RunRecord, upstream: Any) -> None:
        self._record = record
        self._upstream = upstream
        self._origins: dict[str, RpcOrigin] = {}
        self._numbers = count()
        self._pool = ThreadPoolExecutor(_THREADS, "forbear-storm")
        self._server = _grpc.server(self._pool, handlers=[self], options=[("grpc.so_reuseport", 0)])
        self.target = f"127.0.0.1:{self._server.add_insecure_port('127.0.0.1:0')}"
        self._server.start()

    def stop(self) -> None:
        """Close both sides."""
        self._server.stop(None)
        self._upstream.close()
        self._pool.shutdown(wait=False, cancel_futures=True)

    def mark(self, origin: RpcOrigin) -> tuple[str, str]:
        """Return the metadata by which the proxy knows where a call comes from."""
        key = str(next(self._numbers))
        self._origins[key] = origin
        return _MARK, key

    def service(self, handler_call_details: Any) -> Any:
        """Return the handler of any RPC."""
        method: str = handler_call_details.method

        def handle(requests: Iterator[bytes], context: grpc.ServicerContext) -> Iterator[bytes]:
            metadata = list(context.invocation_metadata())
            origin = self._origins[next(str(value) for name, value in metadata if name == _MARK)]
            passed = [(name, value) for name, value in metadata if name not in _HIDDEN]
            return self._forward(method, origin, requests, passed, context)

        return _grpc.stream_stream_rpc_method_handler(handle)

    def _forward(
        self, method: str, origin: RpcOrigin, requests: Iterator[bytes], metadata: Any, context: Any
    ) -> Iterator[bytes]:
        """Yield the responses of the server, unless the call has a fault."""
        call = self._begin(origin, context)
        if call.fault in {"refused", "503"}:
            text = "failed to connect to all addresses" if call.fault == "refused" else "Service Unavailable"
            context.abort(grpc.StatusCode.UNAVAILABLE, f"{text} {INJECTED}")
        if call.fault == "429":
            context.set_trailing_metadata([(_DETAILS, _retry_info(f"Quota exceeded {INJECTED}"))])
            context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, f"Quota exceeded {INJECTED}")
        stream = self._upstream.stream_stream(method, None, None)
        sent = stream(
            requests,
            timeout=None if origin.timeout is None else context.time_remaining(),
            metadata=metadata,
            credentials=origin.credentials,
            wait_for_ready=origin.wait_for_ready,
        )
        context.add_callback(sent.cancel)
        try:
            with self._record.time.sending():
                first = next(sent, None)
            call.responded = True
            if first is not None and call.fault is None:
                call.has_body = origin.streams
                context.send_initial_metadata(sent.initial_metadata())
            if call.fault in {"lost", "slow"}:
                self._drop(call, sent, context)
            if first is not None:
                yield first
            if call.fault == "cut":
                context.abort(grpc.StatusCode.UNAVAILABLE, f"Connection reset by peer {INJECTED}")
            yield from sent
        except grpc.RpcError:
            if call.fault in {"lost", "slow"}:
                self._drop(call, sent, context)
            call.responded = sent.code() not in _NO_RESPONSE
            context.set_trailing_metadata(sent.trailing_metadata())
            context.abort(sent.code(), sent.details())
        context.set_trailing_metadata(sent.trailing_metadata())

    def _begin(self, origin: RpcOrigin, context: Any) -> SentCall:
        try:
            return self._record.begin(
                origin.label, unsafe=origin.unsafe, timeout=origin.timeout, faults=origin.faults, stack=origin.stack
            )
        except StormEnded:  # the caller raises it
            context.abort(grpc.StatusCode.UNAVAILABLE, f"The storm ended this run {INJECTED}")
            raise

    def _drop(self, call: SentCall, sent: Any, context: Any) -> None:
        """End a call that was executed as if its response had not come."""
        sent.cancel()
        if call.fault == "slow":
            self._record.time.advance(call.timeout or 0)
            context.abort(grpc.StatusCode.DEADLINE_EXCEEDED, f"Deadline Exceeded {INJECTED}")
        context.abort(grpc.StatusCode.UNAVAILABLE, f"Socket closed {INJECTED}")


def _retry_info(message: str) -> bytes:
    """Return an encoded google.rpc.Status with the RetryInfo of a 429."""
    info = _field(1, b"\x08" + bytes([RETRY_AFTER]))
    packed = _field(1, b"type.googleapis.com/google.rpc.RetryInfo") + _field(2, info)
    return b"\x08" + bytes([_EXHAUSTED]) + _field(2, message.encode()) + _field(3, packed)


def _field(number: int, content: bytes) -> bytes:
    """Return a field of an encoded protobuf message; its content is shorter than 128 bytes."""
    return bytes([number << 3 | 2, len(content)]) + content
