"""Stop aiohttp from sending a request again by itself, after forbear gave up on it.

`ClientSession._request` repeats a request once if its connection broke, as if a stale connection was the cause. That
repeat is a new request, which comes through the middlewares like any other. So the call must be marked: both requests
have the same list of traces, which belongs to this one call, whichever tasks the middlewares run in.
"""

from types import SimpleNamespace
from typing import Any

from aiohttp import ClientRequest, TraceConfig
from aiohttp.tracing import Trace

_NOTHING = TraceConfig()
_NOTHING.freeze()


class _GivenUp(Trace):
    """A trace that traces nothing. It marks a call in which forbear gave up on `request` with `error`.

    Both are forgotten when the call ends; otherwise the error's traceback would refer to the error itself.
    """

    def __init__(self, request: ClientRequest, error: Exception) -> None:
        super().__init__(request.session, _NOTHING, SimpleNamespace())
        self.request: ClientRequest | None = request
        self.error: Exception | None = error

    async def send_request_exception(self, *args: Any, **kwargs: Any) -> None:
        """Forget the error: the call ends with one."""
        self.request = self.error = None

    async def send_request_end(self, *args: Any, **kwargs: Any) -> None:
        """Forget the error: an outer middleware has replaced it by a response."""
        self.request = self.error = None


def expect_repeat(request: ClientRequest, error: Exception) -> None:
    """Mark the call of `request`, because aiohttp may repeat it after `error`; any earlier mark is removed.

    That depends on the error that aiohttp sees, which outer middlewares may replace.
    """
    _unmark(request)
    request._traces.append(_GivenUp(request, error))


def stop_repeat(request: ClientRequest) -> None:
    """Raise the error that forbear gave up with if `request` is aiohttp's own repeat; the mark is removed."""
    mark = _unmark(request)
    if mark is None or mark.error is None or mark.request is request:  # an outer middleware repeats the same request
        return
    try:
        raise mark.error
    finally:
        del mark  # otherwise the error's traceback would refer to the error itself


def _unmark(request: ClientRequest) -> _GivenUp | None:
    """Remove the mark of the call of `request` and return it, None if it has none."""
    traces = request._traces
    mark = next((trace for trace in traces if isinstance(trace, _GivenUp)), None)
    if mark is not None:
        traces.remove(mark)
    return mark
