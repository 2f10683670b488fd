"""Estimate the memory that values take: the sizes of texts and bytes, and a flat rate for each container."""

from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from functools import lru_cache
from typing import cast

from forbear.testing.cloud.content import Content, Growing

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
