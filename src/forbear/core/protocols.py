"""Types for annotations of users: `Backoff`, `On` and the answers of `on`; loaded only when one is used."""

from collections.abc import Callable
from datetime import timedelta
from typing import Protocol

from forbear.core.verdict import Verdict

Answer = bool | float | timedelta | Verdict
"""The answer of a function in `on` or `on_result`: whether to retry, the exact wait in seconds, or a verdict."""

On = type[Exception] | tuple[type[Exception], ...] | Callable[[Exception], Answer]
"""The type of `on`: an exception type, a tuple of them, or a function of the error."""


class Backoff(Protocol):
    """The protocol of a backoff: any object whose `delay` method returns the seconds to wait before each retry."""

    def delay(self, n: int, u: float, previous: float | None, /) -> float:
        """Return the seconds to wait before retry `n`, counted from 0.

        `u` is a random number, uniform in [0, 1). `previous` is the delay before the last retry, None before the first.
        """
        ...
