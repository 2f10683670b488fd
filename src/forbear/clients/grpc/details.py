"""What the interceptors read of a call's details and requests, and the details of the next attempt."""

from collections.abc import Iterable
from typing import Any

import grpc

from forbear.exchange.call import RetriedCall


class Details(grpc.ClientCallDetails):
    """The details of a call with another timeout."""

    def __init__(self, details: Any, timeout: float) -> None:
        self.method = details.method
        self.timeout = timeout
        self.metadata = details.metadata
        self.credentials = details.credentials
        self.wait_for_ready = details.wait_for_ready
        self.compression = getattr(details, "compression", None)


def name_of(details: Any) -> str:
    """Return the full name of the RPC, which the asyncio stack has as bytes."""
    method: str | bytes = details.method
    return method.decode() if isinstance(method, bytes) else method


def timed(details: Any, judged: RetriedCall) -> Any:
    """Return the details of the next attempt, with the seconds left of the caller's timeout."""
    left = judged.left(details.timeout)
    return details if left is None else Details(details, left)


def comes_again(requests: object) -> bool:
    """Return whether a stream of requests can surely be sent again from its start: a list or tuple."""
    return isinstance(requests, list | tuple)


def first_of(requests: Iterable[Any]) -> Any:
    """Return the first message of a stream, None if it is empty."""
    return next(iter(requests), None)
