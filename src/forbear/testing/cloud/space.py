"""The limit on what the cloud keeps in memory; knows sizes, and nothing of what has them."""

from collections.abc import Callable, Generator
from contextlib import contextmanager

from forbear.testing.cloud.errors import ApiError

_PER_REQUEST = 4096
"""Bytes that a request may leave behind beside its body."""


class Space:
    """Counts the bytes that are stored, received and sent; `weigh` returns the size of those that are stored.

    The count is an upper bound, which costs nothing to keep; at the limit it is made exact.
    """

    def __init__(self, limit: int, weigh: Callable[[], int]) -> None:
        self.limit = limit
        self._weigh = weigh
        self._used = 0
        self._moving = 0
        self._changed = True

    @contextmanager
    def moving(self) -> Generator["Moving"]:
        """Count what a request brings, or its response takes away, until the end of the block."""
        moving = Moving(self)
        try:
            yield moving
        finally:
            self._moving -= moving.size
            if moving.stored:
                self._used += _PER_REQUEST
                self._changed = True
            else:
                self._used -= moving.size

    def claim(self, size: int) -> None:
        """Count `size` bytes that are to be stored; 413 when they do not fit."""
        if self._used + size > self.limit and self._changed:
            self._used = self._weigh() + self._moving
            self._changed = False
        if self._used + size > self.limit:
            raise ApiError(
                413,
                f"The embedded cloud is full: {size} bytes do not fit into the {self.limit} that it may keep in memory."
                " Delete objects, reset it (POST /_cloud/reset), or raise `memory_limit`, --memory-limit.",
            )
        self._used += size

    def changed(self) -> None:
        """Note that something may have been stored or deleted: at the limit it makes sense to count again."""
        self._changed = True

    def move(self, size: int) -> None:
        """Claim bytes that are on their way."""
        self.claim(size)
        self._moving += size


class Moving:
    """The bytes of one request or response; those of a request may be `stored` once it is answered."""

    def __init__(self, space: Space) -> None:
        self._space = space
        self.size = 0
        self.stored = False

    def add(self, size: int) -> None:
        """Count `size` more bytes; 413 when they do not fit."""
        self._space.move(size)
        self.size += size
