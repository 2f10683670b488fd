"""The limits of a request: its connection is closed if the peer stalls or takes too long, and its bytes have a rate."""

import asyncio
from abc import abstractmethod
from collections.abc import Iterable, Iterator
from typing import Protocol

from forbear.adapters import current_runtime
from forbear_transfer.errors import Stalled

_CURE = "check the network and the server, or allow more time (`timeout` of the policy)"
INFINITY = float("inf")
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


class Watched(asyncio.Protocol):
    """The base of connections, as a response sees it. One timer serves all requests: most are over before it is due.

    A peer has stalled if it moves no byte for `stall_timeout` seconds while a task waits for it. That is noticed after
    twice the time at the latest, and ends the request with Stalled. `rate` limits the bytes of bodies per second, None
    for no limit.
    """

    transport: asyncio.Transport

    def __init__(self, stall_timeout: float, rate: RateLimit | None = None) -> None:
        self._loop = asyncio.get_running_loop()
        self._stall_timeout = stall_timeout
        self._rate = rate
        self._busy = False
        self._deadline = 0.0
        self._end_at = self._limit = self._timer_at = INFINITY
        self._otherwise = ""
        self._unsent_before = 0
        self._timer: asyncio.TimerHandle | None = None

    def expect(self, otherwise: str) -> None:
        """Start the stall timeout anew; `otherwise`, such as "took no byte", describes the failure in it."""
        now = self._loop.time()
        self._deadline = now + self._stall_timeout
        if now >= self._end_at:  # the time ran out while nobody waited: the reader was slow, not the server
            self._end_at = now + self._limit
        self._otherwise = otherwise
        self._unsent_before = self.transport.get_write_buffer_size()
        self._set_timer()

    def limit(self, seconds: float | None) -> None:
        """Let the rest of the response arrive within `seconds` from now, None for no limit; otherwise it is Stalled.

        If they run out while no task waits for the response, they begin anew with the next wait.
        """
        self._limit = INFINITY if seconds is None else seconds
        self._end_at = self._loop.time() + self._limit

    @property
    def is_paced(self) -> bool:
        return self._rate is not None

    async def pace(self, count: int, *, received: bool = False) -> None:
        """Wait until `count` more bytes are within the limit of the rate; the peer does not stall meanwhile."""
        delay = 0.0 if self._rate is None else self._rate.delay(count, received=received)
        if delay > 0:
            self._deadline = max(self._deadline, self._loop.time() + delay + self._stall_timeout)
            await current_runtime().asleep(delay)

    @abstractmethod
    def abort(self) -> None:
        """Close the connection at once, and drop unsent bytes: the request, or reader of its response, gets Broken."""

    @abstractmethod
    def _is_awaited(self) -> bool:
        """Return whether a task waits for the peer, and not the peer for a reader."""

    @abstractmethod
    def _fail(self, error: Exception) -> None:
        """Close the connection at once; a running request, or the reader of its response, raises `error`."""

    def _set_timer(self) -> None:
        at = min(self._deadline, self._end_at)
        if self._timer is None or at < self._timer_at:
            self._stop_timer()
            self._timer, self._timer_at = self._loop.call_at(at, self._check), at

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _check(self) -> None:
        self._timer = None
        now = self._loop.time()
        if not self._busy or not self._is_awaited():
            return  # `expect` starts a timer for the next wait
        if now >= self._end_at:
            self._fail(Stalled(f"the server's response did not arrive within {self._limit:g} s", _CURE))
        elif self.transport.get_write_buffer_size() < self._unsent_before:  # bytes are still sent, if slowly
            self.expect(self._otherwise)
        elif now < self._deadline:
            self._set_timer()
        else:
            self._fail(Stalled(f"the server {self._otherwise} for {self._stall_timeout:g} s"))
