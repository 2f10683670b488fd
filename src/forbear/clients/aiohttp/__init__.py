"""Retries inside aiohttp, as a middleware. The rules live in forbear.exchange; this only wires them."""

from contextvars import ContextVar

try:
    from aiohttp import ClientHandlerType, ClientRequest, ClientResponse
except ImportError as error:
    raise ImportError(
        'forbear.clients.aiohttp needs aiohttp>=3.12.7; install it with: pip install "forbear[aiohttp]"'
    ) from error

from forbear.clients.aiohttp.port import AiohttpPort, is_sent_again
from forbear.clients.aiohttp.response import tell
from forbear.exchange.call import Start
from forbear.exchange.http.adrive import drive
from forbear.exchange.http.options import BUFFER, HttpOptions
from forbear.exchange.http.responses import FirstResult
from forbear.policy import Policy
from forbear.run.switch import is_off

_let_out: ContextVar[tuple[ClientRequest, Exception] | None] = ContextVar("forbear_aiohttp_let_out", default=None)
"""The request whose error aiohttp is about to answer by sending another one like it."""


class RetryMiddleware:
    """Retries what may be repeated: `aiohttp.ClientSession(middlewares=(RetryMiddleware(),))`.

    Without a `policy`, known hosts have the recommended policy of their service and others that of RFC 9110. A
    service's policy, such as `cloud_storage.policy`, holds for every host, emulators included. Any other policy brings
    its limits, backoff and `on`, and known hosts keep their tables. One request's own: `session.get(url,
    middlewares=(RetryMiddleware(policy),))`, or `middlewares=()` for none. `idempotency_header` names a header by which
    the API drops duplicates, such as "Idempotency-Key", which makes every operation repeatable, except at services that
    are known not to read it. Of a body that can be read only once, `buffer` bytes (8 MiB) are kept for a repeat.

    The session's `total` timeout (five minutes if nothing is said) holds for all attempts and waits together; the
    policy's `attempt_timeout` (seconds) for each until its reply begins. The last reply comes out as aiohttp gives it,
    and `forbear.report(response)` is its report where forbear gave up, as is that of the error which its
    `raise_for_status()` raises. A GET body that breaks halfway is continued
    where that is safe. A short reply to a write that breaks (at most 64 KiB) counts as lost: the write is repeated if
    it always may be, and otherwise the note and the report (`maybe_done`) tell that it had succeeded.

    aiohttp itself sends GET, HEAD, OPTIONS, TRACE, PUT and DELETE once more when a connection breaks, whatever that
    does; under this middleware it does not.
    """

    def __init__(
        self, policy: Policy | None = None, *, idempotency_header: str | None = None, buffer: int = BUFFER
    ) -> None:
        self._options = HttpOptions(policy, idempotency_header, buffer)
        self._is_plain = self._options.is_plain

    async def __call__(self, request: ClientRequest, handler: ClientHandlerType) -> ClientResponse:
        """Send a request as often as its policy allows and return the reply."""
        if is_off():
            return await handler(request)
        if _let_out.get() is not None:
            _stop_second(request)
        start, outcome = Start(), None
        if self._is_plain and request.method == "GET" and not request.body:  # most are, and nearly all succeed at once
            try:
                response = await handler(request)
            except Exception as error:
                outcome = FirstResult[ClientResponse](error)
            else:
                if response.status < 400 and response.content.is_eof():  # what is here in whole does not break
                    return response
                outcome = FirstResult(response)
        port = AiohttpPort(self._options, handler, request, start, outcome)
        try:
            response = await drive(port)
        except Exception as error:
            if is_sent_again(request, error):
                _let_out.set((request, error))
            raise
        if port.report is not None:
            tell(response, port.report)
        if not response.content.is_eof() and port.needs_reader(response):
            port.continued(response)
        return response


def _stop_second(request: ClientRequest) -> None:
    """Raise the error that was let out, where `request` is aiohttp's own repeat of the one it is the error of.

    Nothing public says so, but both requests of one call share a timer, and a timer serves one call.
    """
    last = _let_out.get()
    if last is None:
        return
    _let_out.set(None)
    first, error = last
    if first is not request and first._timer is request._timer:
        try:
            raise error
        finally:
            del last, error  # or its traceback would lead back to it
