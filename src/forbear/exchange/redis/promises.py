"""What callers vouch for, in a block of their code: what only they can know of its commands. It knows no command."""

from contextvars import ContextVar, Token
from types import TracebackType
from typing import get_args

from forbear.services.redis.table import PROMISES, Promise

_given: ContextVar[frozenset[Promise]] = ContextVar("forbear_promised", default=frozenset())
given = _given.get


class promised:  # noqa: N801 - used like a function
    """`with promised("idempotent"):` vouches for the commands that the block sends, in this thread or task.

    A promise is one of those of `forbear.services.redis.PROMISES`: "idempotent" makes a script repeatable, "drift" an
    expiry that may come a little later. Blocks within blocks add up. ValueError for an unknown promise.
    """

    __slots__ = ("_promises", "_token")

    _token: Token[frozenset[Promise]]

    def __init__(self, *promises: Promise) -> None:
        for promise in promises:
            if promise not in get_args(Promise):
                known = "; ".join(f'"{name}" ({text})' for name, text in PROMISES.items())
                raise ValueError(f"`promises` must be of these: {known}; got {promise!r}")
        self._promises = frozenset(promises)

    def __enter__(self) -> None:
        self._token = _given.set(given() | self._promises)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        _given.reset(self._token)
