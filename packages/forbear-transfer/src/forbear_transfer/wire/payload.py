"""The bodies of requests, and the limit of bytes per second that all connections of a pool share."""

from collections.abc import Iterable, Iterator
from typing import Protocol

from forbear.adapters import current_runtime

_STEPS = 4
_SMALLEST = 4096


class RateLimit:
    """A limit of `most` bytes per second. Each part of the data waits until the time of those before it is over."""

    def __init__(self, most: float) -> None:
        self._most = most
        self._free_at = float("-inf")

    @property
    def step(self) -> int:
        """The largest number of bytes to send at once: those of a quarter of a second, and at least 4 KiB."""
        return max(int(self._most / _STEPS), _SMALLEST)

    def delay(self, count: int, *, received: bool = False) -> float:
        """Take `count` bytes, and return the seconds to wait: before they are sent, or after they were `received`."""
        now = current_runtime().monotonic()
        start = max(self._free_at, now)
        self._free_at = start + count / self._most
        return (self._free_at if received else start) - now


class Payload(Protocol):
    """The body of a request, which is read piece by piece as the server takes it."""

    def __len__(self) -> int: ...

    def pieces(self) -> Iterable[bytes]:
        """Return the pieces of the body, each of which is requested once the one before was taken."""
        ...


def slice_pieces(pieces: Iterable[bytes], most: int) -> Iterator[bytes]:
    """Yield the bytes of pieces, at most `most` at a time."""
    for piece in pieces:
        for start in range(0, len(piece), most):
            yield piece[start : start + most]
