"""`Limits`, the limits of a run, and their defaults."""

from forbear.core import check
from forbear.core.record import Record, UserRecord

TYPE_CHECKING = False
if TYPE_CHECKING:
    from datetime import timedelta
    from typing import Any

    Seconds = float | timedelta


DEFAULT_ATTEMPTS = 5
DEFAULT_TIMEOUT = 60
DEFAULT_MAX_RETRY_AFTER = 900
"""The defaults of `Limits` and `forbear.retry` are this one (in seconds), `DEFAULT_ATTEMPTS` and `DEFAULT_TIMEOUT`.

The profiles of services have limits of their own.
"""


class Default(Record):
    """The type of `DEFAULT`."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "DEFAULT"

    def __reduce__(self) -> str:  # type: ignore[override] # the name of the global: it stays the same object
        return "DEFAULT"


DEFAULT = Default()
"""The value of `attempts` and `timeout` for a limit that nobody chose."""


class Limits(UserRecord):
    """The limits of a run; the first one reached ends it.

    `attempts` counts the first call: 5 is at most 4 retries. `timeout` is a number of seconds or a timedelta, from
    before the first attempt. None means no limit. Without both, the limits are 5 attempts and 60 s. If you choose one
    of them, it is the only one: `attempts=3` has no timeout, `timeout=300` any number of attempts. `attempts=None` and
    `timeout=None` lift that default alone. No limit at all needs `unlimited=True`.

    A wait that would end past the timeout is not begun, unless `clamp` shortens that wait, so that one final attempt
    starts at the deadline. A wait that the server asks for is never shortened. It ends the run if it is longer than the
    rest of the timeout, or, without a timeout, than `max_retry_after` seconds (default 900). Raises TypeError or
    ValueError for other values.

    >>> forbear.retry(OSError, attempts=3).limits
    Limits(attempts=3)
    """

    __slots__ = ("attempts", "timeout", "clamp", "max_retry_after", "unlimited", "chosen")

    attempts: int | None
    timeout: float | None
    clamp: bool
    max_retry_after: float
    unlimited: bool
    chosen: tuple[bool, bool]
    """True for `attempts`, and for `timeout`, if it was passed; else it is a default, or lifted by the other one."""

    def __init__(
        self,
        attempts: int | Default | None = DEFAULT,
        timeout: "Seconds | Default | None" = DEFAULT,
        clamp: bool = False,
        max_retry_after: "Seconds" = DEFAULT_MAX_RETRY_AFTER,
        unlimited: bool = False,
    ) -> None:
        chosen = attempts is not DEFAULT, timeout is not DEFAULT
        if attempts is DEFAULT:
            attempts = DEFAULT_ATTEMPTS if timeout is None or timeout is DEFAULT else None
            timeout = DEFAULT_TIMEOUT if timeout is DEFAULT else timeout
        elif timeout is DEFAULT:
            timeout = DEFAULT_TIMEOUT if attempts is None else None
        if attempts is not None:
            check.at_least("attempts", attempts, 1, what="a whole number or None (no limit)", whole=True)
        timeout = check.in_seconds(timeout)
        check.positive_seconds("timeout", timeout, none="no limit")
        check.flag("clamp", clamp)
        max_retry_after = check.in_seconds(max_retry_after)
        check.seconds("max_retry_after", max_retry_after)
        check.flag("unlimited", unlimited)
        if attempts is None and timeout is None and not unlimited:
            raise ValueError(
                "`attempts` and `timeout` must not both be None, or a run may never end; "
                "set one of them, or pass unlimited=True if that is what you want"
            )
        store = object.__setattr__
        store(self, "attempts", attempts)
        store(self, "timeout", timeout)
        store(self, "clamp", clamp)
        store(self, "max_retry_after", max_retry_after)
        store(self, "unlimited", unlimited)
        store(self, "chosen", chosen)

    @classmethod
    def _fields(cls) -> tuple[str, ...]:
        return super()._fields()[:-1]  # without `chosen`, which follows from what was passed

    def _arguments(self) -> "dict[str, Any]":
        attempts, timeout = self.chosen
        return {
            "attempts": self.attempts if attempts else DEFAULT,
            "timeout": self.timeout if timeout else DEFAULT,
            "clamp": self.clamp,
            "max_retry_after": self.max_retry_after,
            "unlimited": self.unlimited,
        }
