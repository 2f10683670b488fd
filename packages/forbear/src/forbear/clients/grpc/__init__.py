"""Interceptors for gRPC channels that retry calls, sync and asyncio."""

try:
    import grpc
except ImportError as error:
    raise ImportError('forbear.clients.grpc needs grpcio; install it with: pip install "forbear[grpc]"') from error

from forbear.clients.grpc.aio import aio_interceptors
from forbear.clients.grpc.reflection import load_definitions
from forbear.clients.grpc.sync import RetryInterceptor

del grpc  # imported to say how to install it

__all__ = ["RetryInterceptor", "aio_interceptors", "load_definitions"]
