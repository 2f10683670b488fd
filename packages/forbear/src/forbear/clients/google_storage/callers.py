"""Find the call of google-cloud-storage that a request belongs to, and read its `retry=` from the stack.

The client keeps the `retry=` of a call in variables of the functions below and does not pass it to its session. So an
adapter can learn it only from the stack. The stack is read; nothing is changed. Importing this module fails if a
version of the client keeps it elsewhere: otherwise a call whose retries are off might be repeated unnoticed.
"""

import sys
from importlib import import_module
from types import CodeType, FrameType
from typing import Any

from google.api_core.exceptions import RetryError


def _variable(module: str, function: str, name: str) -> tuple[CodeType, str]:
    """Return the code object of `function` (a dotted name in `module`), and `name`, a variable of that function."""
    defined: Any = import_module(module)  # by name: some of these modules have types, some have none
    for part in function.split("."):
        defined = getattr(defined, part, None)
    code: CodeType | None = getattr(defined, "__code__", None)
    if code is None or name not in code.co_varnames:
        raise ImportError(
            f"forbear.clients.google_storage.install reads the variable {name} of {module}.{function}, which this "
            "version of Google's libraries does not have; install google-cloud-storage 3.17, or pass forbear's retry "
            "objects as `retry=` instead"
        )
    return code, name


_CALL, _CALL_RETRY = _variable("google.cloud.storage._http", "Connection.api_request", "retry")
_MEDIA, _MEDIA_RETRY = _variable(
    "google.cloud.storage._media.requests._request_helpers", "wait_and_retry", "retry_strategy"
)
# Both variables of a call are None where `retry=` is None, and where a conditional policy does not apply.
_LOOP, _LOOP_ERRORS = _variable("google.api_core.retry.retry_unary", "retry_target", "error_list")


class Caller:
    """The call of google-cloud-storage that sends the current request, found on the stack when this object is made.

    `sends_once` is True if the call's retries are off: its `retry=` is None, or a condition that does not hold. `ended`
    is the RetryError by which the previous attempt of Google's loop around the call ended, if it ended so, else None.
    Such a loop goes on only if its predicate accepts every error. Without such a call on the stack they are False and
    None.
    """

    __slots__ = ("ended", "sends_once")

    def __init__(self) -> None:
        self.sends_once = False
        self.ended: RetryError | None = None
        ended: RetryError | None = None
        frame: FrameType | None = sys._getframe(1)
        while frame is not None:
            code = frame.f_code  # compared by identity, because hashing a code object is slow
            if code is _CALL or code is _MEDIA:
                self.sends_once = not frame.f_locals[_CALL_RETRY if code is _CALL else _MEDIA_RETRY]
                self.ended = ended
                return
            if code is _LOOP:  # the call's own, or one around the caller's use of the session, which does not matter
                errors = frame.f_locals[_LOOP_ERRORS]
                ended = errors[-1] if errors and isinstance(errors[-1], RetryError) else None
            frame = frame.f_back
