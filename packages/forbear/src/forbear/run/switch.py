"""Turn retries off, for the process (also by FORBEAR_DISABLED=1) or for a block: each run is then a single attempt."""

import os
from contextvars import ContextVar, Token

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType

_off_here: ContextVar[bool] = ContextVar("forbear_off", default=False)
_everywhere = {"off": os.environ.get("FORBEAR_DISABLED", "").lower() in ("1", "true", "yes", "on")}
ever_off = [_everywhere["off"]]
"""A list of one item, True once retries have been turned off anywhere.

Most processes need not look up the context variable.
"""


ever_stopping = [False]
"""A list of one item, True once a scope of `stop_on` was opened: only then its module is loaded, and looked at."""


def is_off() -> bool:
    """Return whether retries are off, in the whole process or in this thread or task.

    >>> with forbear.disabled():
    ...     retries_are_off()
    True
    """
    return _everywhere["off"] or _off_here.get()


def disable() -> None:
    """Turn retries off in the whole process, as FORBEAR_DISABLED=1 in the environment does from the start.

    >>> forbear.disable()  # forbear.enable() turns them on again
    >>> forbear.enable()
    """
    ever_off[0] = _everywhere["off"] = True


def enable() -> None:
    """Turn retries on again in the whole process, also after FORBEAR_DISABLED=1; blocks of `disabled()` stay off.

    >>> forbear.enable()
    """
    _everywhere["off"] = False


class disabled:  # noqa: N801 - used like a function
    """`with forbear.disabled():` turns retries off in this thread or task for all that the block calls.

    That includes the tasks that the block starts. Each run is then a single attempt.

    >>> with forbear.disabled():
    ...     forbear.retry(OSError).call(len, "once")
    4
    """

    __slots__ = ("_tokens",)

    def __init__(self) -> None:
        self._tokens: list[Token[bool]] = []

    def __enter__(self) -> None:
        ever_off[0] = True
        self._tokens.append(_off_here.set(True))

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: "TracebackType | None"
    ) -> None:
        _off_here.reset(self._tokens.pop())
