"""A gRPC server in threads that counts orders, for storms to disturb."""

from collections.abc import Generator, Iterator
from concurrent import futures
from contextlib import contextmanager
from typing import Any

import grpc


class RpcOrders(grpc.GenericRpcHandler):  # type: ignore[type-arg] # generic for type checkers only
    """Any RPC makes an order; those with "Watch" in their name send three responses, "Collect" reads a stream."""

    def __init__(self) -> None:
        self.orders: list[str] = []
        self.seen: list[dict[str, str]] = []
        self.target = ""

    def count(self) -> int:
        """Return how many orders were made."""
        return len(self.orders)

    def service(self, handler_call_details: Any) -> Any:
        method: str = handler_call_details.method

        def one(request: Any, context: grpc.ServicerContext) -> bytes:
            self.orders.append(method)
            self.seen.append({name: str(value) for name, value in context.invocation_metadata()})
            if "Missing" in method:
                context.abort(grpc.StatusCode.NOT_FOUND, "no order")
            return b"order"

        def collected(requests: Iterator[bytes], context: grpc.ServicerContext) -> bytes:
            return one(list(requests), context)

        def many(request: Any, context: grpc.ServicerContext) -> Iterator[bytes]:
            yield one(request, context)
            yield from (b"second", b"third")

        if "Collect" in method:
            return grpc.stream_unary_rpc_method_handler(collected)
        if "Chat" in method:
            return grpc.stream_stream_rpc_method_handler(many)
        return (
            grpc.unary_stream_rpc_method_handler(many)
            if "Watch" in method
            else grpc.unary_unary_rpc_method_handler(one)
        )


@contextmanager
def rpc_orders() -> Generator[RpcOrders]:
    """Run a server within the block."""
    orders = RpcOrders()
    with futures.ThreadPoolExecutor(4) as pool:
        server = grpc.server(pool, handlers=[orders])
        orders.target = f"127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
        server.start()
        try:
            yield orders
        finally:
            server.stop(None).wait()
