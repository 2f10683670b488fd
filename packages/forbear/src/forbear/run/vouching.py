"""`safe_to_repeat`, the scope in which the user vouches for requests."""

from forbear.core.chain import attributes_of
from forbear.http.patterns import covers, patterns
from forbear.run.scope import Scope, open_scopes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType
    from typing import Any

_WORD = "__forbear_safe__"
"""The name of the attribute by which an error carries the patterns of the scopes that it has left."""


class safe_to_repeat(Scope):  # noqa: N801 - used like a function
    """`with safe_to_repeat("POST https://api.example.com/v1/search*"):` vouches for requests until the block ends.

    Requests that match one of the patterns may be executed twice; see `forbear.http.patterns.Pattern`. The scope
    applies to the clients of this block, to the functions it calls, and to tasks and threads that it starts with its
    context. At the end of the block it ends for all of them, even if they still run. Every request is matched on its
    own: redirects and requests for tokens, too. In a generator it applies to what the generator itself calls, not to
    its consumer. In a fixture of pytest it covers the fixture's tests.

    TypeError or ValueError for a wrong pattern, and without one.

    >>> with forbear.safe_to_repeat("POST https://api.example.com/v1/search"):
    ...     pass  # requests to it may be executed twice here
    """

    __slots__ = ("_patterns",)

    def __init__(self, *safe: str) -> None:
        if not safe:
            raise TypeError(
                '`safe_to_repeat` needs at least one pattern, such as "POST https://api.example.com/search"'
            )
        super().__init__()
        self._patterns = patterns(safe, "safe_to_repeat")

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: "TracebackType | None"
    ) -> None:
        super().__exit__(kind, error, traceback)
        if error is not None:  # the requests that it shows were sent within the block
            kept: dict[str, Any] = attributes_of(error)
            kept[_WORD] = tuple(dict.fromkeys((*kept.get(_WORD, ()), *self._patterns)))

    def _covers(self, request: object) -> bool:
        return covers(self._patterns, request)


def is_vouched(request: object) -> bool:
    """Return whether an open scope vouches for a request, an RPC or a call that is sent now."""
    return any(scope._covers(request) for scope in open_scopes(safe_to_repeat))


def is_vouched_within(request: object, error: BaseException) -> bool:
    """Return whether a scope that `error` has left vouches for the request."""
    patterns: Any = attributes_of(error).get(_WORD)
    return patterns is not None and covers(patterns, request)
