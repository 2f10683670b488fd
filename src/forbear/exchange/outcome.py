"""What came of the first attempt of a read, which an adapter makes before it sets anything up: most need no more.

The rule: an outcome is handed out once and then let go of, for the traceback of an error leads back to who holds it.
"""

from typing import Generic, TypeVar, cast

R = TypeVar("R")


class Outcome(Generic[R]):
    """A reply or an error."""

    __slots__ = ("_what",)

    def __init__(self, what: R | Exception) -> None:
        self._what: R | Exception | None = what

    def taken(self) -> R:
        """Return the reply or raise the error."""
        what, self._what = self._what, None
        if not isinstance(what, Exception):
            return cast(R, what)
        try:
            raise what
        finally:
            del what
