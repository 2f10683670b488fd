"""The limit on what the cloud keeps in memory; knows sizes, and nothing of what has them."""

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from functools import lru_cache
from typing import cast

from forbear.testing.cloud.http.content import Content, Growing
from forbear.testing.cloud.http.errors import ApiError

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


_FLAT = 64


def weigh(value: object) -> int:
    """Return the size in bytes of plain values, content, tables and dataclasses; what it does not know has a flat rate.

    Content weighs what it is long, even where it shares its bytes with a copy: as in the service's bill.
    """
    if isinstance(value, str):
        return _FLAT + len(value)
    if isinstance(value, Content | Growing):
        return _FLAT * (1 + value.count) + len(value)
    if isinstance(value, Mapping):
        entries = cast("Mapping[object, object]", value)
        return _FLAT + sum(weigh(key) + weigh(each) for key, each in entries.items())
    if isinstance(value, list | tuple):
        return _FLAT + sum(map(weigh, cast("Sequence[object]", value)))
    if is_dataclass(value) and not isinstance(value, type):
        return _FLAT + sum(weigh(getattr(value, name)) for name in _names(type(value)))
    return _FLAT


@lru_cache(64)
def _names(kind: type) -> tuple[str, ...]:
    return tuple(each.name for each in fields(kind))
