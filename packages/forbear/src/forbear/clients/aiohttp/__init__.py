"""A middleware for aiohttp that retries requests.

aiohttp itself sends a request once more if its connection broke (`ClientSession._request`), as if a stale connection
was the cause. After forbear gave up, that must not be: the new request comes through the middlewares like any other, so
the call is marked. Both requests have the same list of traces, which belongs to this one call, whichever tasks the
middlewares run in.
"""

from types import SimpleNamespace
from typing import Any

try:
    from aiohttp import (
        ClientConnectionError,
        ClientHandlerType,
        ClientHttpProxyError,
        ClientPayloadError,
        ClientRequest,
        ClientResponse,
        TraceConfig,
    )
    from aiohttp.tracing import Trace
except ImportError as error:
    raise ImportError(
        'forbear.clients.aiohttp needs aiohttp>=3.12.15; install it with: pip install "forbear[aiohttp]"'
    ) from error

from forbear.clients.aiohttp.port import AiohttpPort
from forbear.clients.aiohttp.response import attach_report
from forbear.core.report import SENT_BY_US
from forbear.exchange.http.adrive import drive
from forbear.exchange.http.options import BUFFER, read_options
from forbear.policy import Policy
from forbear.run.switch import is_off

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Unpack

    from forbear.exchange.http.settling import Settle
    from forbear.http.vouch import Apis, Safe
    from forbear.run.derive import ClientOptions


_RAISED = (ClientConnectionError, ClientPayloadError, ClientHttpProxyError, TimeoutError)


class RetryMiddleware:
    """A middleware that retries requests: `aiohttp.ClientSession(middlewares=(RetryMiddleware(),))`.

    - `policy`: without one, known hosts get the recommended policy of their service, and other hosts that of RFC 9110.
      A service's policy, such as `cloud_storage.policy`, applies to every host, emulators included. Any other policy
      brings its limits, backoff and `on`; known hosts keep their tables. For one request: `session.get(url,
      middlewares=(RetryMiddleware(policy),))`, or `middlewares=()` for no retries.
    - The keywords of `forbear.retry` but `on`, such as `attempts=3, timeout=30`, change that policy. Tables stay.
    - `safe`: requests that may be executed twice, as you vouch: patterns such as
      "POST https://api.example.com/v1/search*" (`*` stops at "/"), or a function that takes the
      `forbear.http.request.Request`.
    - `apis`: what you know of APIs, as `forbear.Api` values: their statuses, keys, waits and safe requests.
    - `settle`: whether a read may say what became of a write, if a later attempt finds it done. True: the state counts,
      whoever made it. Patterns as for `safe`: so for these requests. A function `mine(sent, read)` of two resources:
      whether they are the same write. False (default): you get the conflict.
    - `buffer`: the bytes (8 MiB) that are kept of a body that can be read only once, so that it can be sent again.

    The session's `total` timeout (five minutes by default) is for all attempts and waits together. The policy's
    `attempt_timeout` (seconds) is for each attempt until its response begins.

    You get the last response as aiohttp returns it. `forbear.report(response)` is its report if forbear gave up, and
    the error of its `raise_for_status()` has that report, too. A GET body that breaks is continued where that is safe.
    A short response (at most 64 KiB) to a write that breaks counts as lost: the write is repeated if it is always safe.
    Otherwise the note and the report (`maybe_done`) say that it had succeeded.

    aiohttp itself sends GET, HEAD, OPTIONS, TRACE, PUT and DELETE again when a connection breaks, safe or not. Under
    this middleware it does not, whatever other middlewares are around it.

    >>> import aiohttp, asyncio
    >>> async def load():
    ...     async with aiohttp.ClientSession(middlewares=(RetryMiddleware(attempts=3),)) as session:
    ...         async with session.get(cloud.url + "/storage/v1/b/my-bucket") as response:
    ...             return response.status
    >>> asyncio.run(load())
    200
    """

    def __init__(
        self,
        policy: Policy | None = None,
        *,
        safe: "Safe" = (),
        apis: "Apis" = (),
        settle: "Settle" = False,
        buffer: int = BUFFER,
        **options: "Unpack[ClientOptions]",
    ) -> None:
        self._options = read_options(
            "RetryMiddleware", policy, options, _RAISED, safe=safe, apis=apis, settle=settle, buffer=buffer
        )

    def __repr__(self) -> str:
        return self._options.show_as("RetryMiddleware")

    async def __call__(self, request: ClientRequest, handler: ClientHandlerType) -> ClientResponse:
        """Send `request` by `handler` as often as its policy allows; return the last response or raise the error."""
        if is_off():
            return await handler(request)
        if request._traces:
            stop_repeat(request)
        port = AiohttpPort(self._options, handler, request)
        try:
            response = await drive(port)
        except Exception as error:
            expect_repeat(request, error)
            raise
        setattr(response, SENT_BY_US, True)
        if port.report is not None:
            attach_report(response, port.report)
        if not response.content.is_eof() and port.needs_reader(response):
            port.continue_body(response)
        return response


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
        """Forget the error: the call ends with one, or an outer middleware has replaced it by a response."""
        self.request = self.error = None

    send_request_end = send_request_exception


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
    traces = request._traces
    mark = next((trace for trace in traces if isinstance(trace, _GivenUp)), None)
    if mark is not None:
        traces.remove(mark)
    return mark
