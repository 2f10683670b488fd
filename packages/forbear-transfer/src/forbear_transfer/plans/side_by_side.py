"""Two listings in order of name, joined by name."""

from collections.abc import AsyncGenerator, AsyncIterator
from typing import TypeVar

from forbear_transfer.errors import TransferError

_A = TypeVar("_A")
_B = TypeVar("_B")


async def side_by_side(
    left: AsyncIterator[tuple[str, _A]], right: AsyncIterator[tuple[str, _B]]
) -> AsyncGenerator[tuple[str, _A | None, _B | None]]:
    """Join two listings by name: yield each name once, with the values of the left and the right listing.

    The value is None where a listing lacks the name. TransferError if a listing is not in order of name or has a name
    twice, since a name that seems missing might come later.
    """
    one, other = await anext(left, None), await anext(right, None)
    while one is not None or other is not None:
        if other is None or (one is not None and one[0] < other[0]):
            assert one is not None  # noqa: S101
            yield one[0], one[1], None
            one = await _take_next(left, one[0])
        elif one is None or other[0] < one[0]:
            yield other[0], None, other[1]
            other = await _take_next(right, other[0])
        else:
            yield one[0], one[1], other[1]
            one, other = await _take_next(left, one[0]), await _take_next(right, other[0])


async def _take_next(listing: AsyncIterator[tuple[str, _A]], before: str) -> tuple[str, _A] | None:
    entry = await anext(listing, None)
    if entry is not None and entry[0] <= before:
        raise TransferError(f"a listing is not in the order of names: {entry[0]!r} comes after {before!r}")
    return entry
