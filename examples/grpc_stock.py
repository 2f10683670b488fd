"""Read and reserve stock over gRPC. Library: grpcio.

The program says by `safe=` that reading may be repeated. A reservation is repeated only after failures which prove that
the server did not execute it.
"""

import sys
from collections.abc import Callable

import grpc
from google.protobuf.wrappers_pb2 import Int64Value, StringValue

from forbear.clients.grpc import RetryInterceptor


def connect(target: str) -> grpc.Channel:
    """Return a channel to the warehouse."""
    return grpc.intercept_channel(grpc.insecure_channel(target), RetryInterceptor(safe=["warehouse.Stock/Count"]))


def rpc(channel: grpc.Channel, name: str) -> Callable[[StringValue], Int64Value]:
    """Return what a generated stub would have: a function that calls an RPC of `warehouse.Stock`."""
    return channel.unary_unary(
        f"/warehouse.Stock/{name}",
        request_serializer=StringValue.SerializeToString,
        response_deserializer=Int64Value.FromString,
    )


def reserve(channel: grpc.Channel, item: str) -> int:
    """Reserve one item, if there is one left; return how many there were."""
    count = rpc(channel, "Count")(StringValue(value=item)).value
    if count:
        rpc(channel, "Reserve")(StringValue(value=item))
    return count


if __name__ == "__main__":
    with connect(sys.argv[1]) as stock:
        print(reserve(stock, sys.argv[2]))
