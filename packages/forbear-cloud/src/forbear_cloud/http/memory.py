"""Count the memory that the cloud uses, and refuse what would exceed its limit."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from functools import lru_cache
from typing import Self, cast

from forbear_cloud.http.content import Content, Growing
from forbear_cloud.http.messages import ApiError

_PER_REQUEST = 4096
"""Bytes that a request or response which may be stored is assumed to take in addition to its body."""


class MemoryLimit:
    """Count the bytes that are stored, received and sent, and refuse more than `limit` of them.

    The count is an upper bound, which is cheap to keep. When it would pass the limit, `weigh` is called to get the
    exact size of what is stored, but only if stored data may have changed since its last call.
    """

    def __init__(self, limit: int, weigh: Callable[[], int]) -> None:
        self.limit = limit
        self._weigh = weigh
        self._used = 0
        self.in_transit = 0
        self._changed = True

    def claim(self, size: int) -> None:
        """Count `size` more bytes as used; ApiError 413, and nothing counted, if they exceed the limit."""
        if self._used + size > self.limit and self._changed:
            self._used = self._weigh() + self.in_transit
            self._changed = False
        if self._used + size > self.limit:
            raise ApiError(
                413,
                f"The embedded cloud is full: {size} bytes do not fit into the {self.limit} that it may keep in memory."
                " Delete objects, reset it (POST /_cloud/reset), or raise `memory_limit`, --memory-limit.",
            )
        self._used += size

    def release(self, size: int, *, stored: bool) -> None:
        """Count `size` bytes no longer as in transit.

        Those that may be `stored` stay counted as used, and 4096 more.
        """
        self.in_transit -= size
        if stored:
            self._used += _PER_REQUEST
            self._changed = True
        else:
            self._used -= size

    def changed(self) -> None:
        """Record that the stored data may have changed: its size is computed anew when the limit is next reached."""
        self._changed = True


@dataclass(slots=True)
class Transit:
    """The bytes of one request or response, counted against `limit` from `add` until the end of a `with` block.

    If they are `stored` by then, because they may stay in memory, they stay counted, and 4096 more.
    """

    limit: MemoryLimit
    size: int = 0
    stored: bool = False

    def add(self, size: int) -> None:
        """Count `size` more bytes of this request or response; ApiError 413 if they exceed the limit."""
        self.limit.claim(size)
        self.limit.in_transit += size
        self.size += size

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.limit.release(self.size, stored=self.stored)


_FLAT = 64


def weigh(value: object) -> int:
    """Return an estimate, in bytes, of the memory that a value takes, with everything in it.

    Every value counts as 64 bytes, plus the length of its text or content, 64 for each piece of content, and the values
    in a mapping, list, tuple or dataclass. Content counts in full even if it shares its bytes with a copy, as in the
    real service's bill.
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
