"""Retries inside urllib3, as its own Retry object, for code that can take nothing else. It decides nothing.

What urllib3 does not show is taken for the worst: no header is there, no body is known, none can be sent again.
"""

import copy
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlsplit

try:
    import urllib3
    from urllib3.connectionpool import ConnectionPool
    from urllib3.exceptions import MaxRetryError, ProtocolError, ReadTimeoutError, ResponseError
    from urllib3.util.retry import RequestHistory
except ImportError as error:
    raise ImportError(
        'forbear.clients.urllib3 needs urllib3; install it with: pip install "forbear[urllib3]"'
    ) from error

from forbear.clients._urllib3 import Urllib3Errors
from forbear.core.report import attach
from forbear.core.verdict import Effect, Verdict
from forbear.exchange.call import Start
from forbear.exchange.http.exchange import Exchange
from forbear.exchange.http.options import HttpOptions
from forbear.http.method import READS
from forbear.http.ranges import number
from forbear.http.request import Request
from forbear.policy import Policy
from forbear.run.switch import is_off

_LIBRARY = Urllib3Errors(urllib3.exceptions)

_SHORT = 64 * 1024
"""Bytes of a body that are read to keep the connection; a longer one costs more than another connection."""

_UNSEEN = {"content-range": "unseen"}
"""The headers of any request: a chunk of an upload session is of bytes that nobody can name, so nobody can go on."""


class Retry(urllib3.Retry):
    """Retries what may be repeated, as far as that can be told: `PoolManager(retries=Retry())`, `max_retries=Retry()`.

    Take an adapter of forbear's instead wherever the code lets you (`forbear.clients.requests`): urllib3 shows a Retry
    object the method, the URL, errors and replies, and neither the request's headers nor its body. So a precondition in
    a header or a body does not count, one in the query does. A header that asks for another method goes unseen. Broken
    bodies do not go on where they stopped, chunks of resumable uploads are not asked for, no token is added, and
    `timeout` counts from the first failure on, which is when urllib3 asks for the first time.

    urllib3 sends what is left of a body that can be read only once as if it were all of it. So a request of another
    method than DELETE or a read is repeated only if nothing of it was sent, unless `bodies_are_reusable` promises that
    all bodies are bytes or seekable files.

    `policy` is as for the other clients; one with `on_result` or `attempt_timeout` is refused, for urllib3 has no place
    for them. `redirect` is how many redirections are followed. The last reply comes out, with its report
    (`forbear.report(response)`, under requests, too).
    """

    def __init__(
        self, policy: Policy | None = None, *, bodies_are_reusable: bool = False, redirect: int | None = 10
    ) -> None:
        self._options = HttpOptions(policy)
        if policy is not None and (policy.judges_values or policy.attempt_timeout is not None):
            what = "on_result" if policy.judges_values else "attempt_timeout"
            raise TypeError(f"`policy` must do without {what}, which urllib3 has no place for: mount a RetryAdapter")
        self._bodies_are_reusable = bodies_are_reusable
        self._exchange: Exchange | None = None
        self._body = _Body(bodies_are_reusable)
        self._delay = 0.0
        super().__init__(total=None, redirect=redirect, raise_on_status=False)

    def new(self, **changes: Any) -> Self:
        """A copy with some counts changed, as urllib3 asks for."""
        onward = copy.copy(self)
        vars(onward).update(changes)
        return onward

    def is_retry(self, method: str, status_code: int, has_retry_after: bool = False) -> bool:
        """Whether `increment` shall look at a reply: it does at every failed one, and lets it out if need be."""
        if is_off():
            return False
        if status_code >= 400:
            return True
        policy = self._options.policy
        if self._exchange is not None:
            self._exchange.answered(status_code, {}, None)
        elif policy is not None and policy.budget is not None:
            policy.budget.put(retried=False)
        return False

    def increment(
        self,
        method: str | None = None,
        url: str | None = None,
        response: urllib3.BaseHTTPResponse | None = None,
        error: Exception | None = None,
        _pool: ConnectionPool | None = None,
        _stacktrace: TracebackType | None = None,
    ) -> Self:
        """The object for the next attempt; raises MaxRetryError, or `error`, if there is none to be."""
        if response is not None and response.get_redirect_location():
            onward = super().increment(method, url, response, error, _pool, _stacktrace)
            onward._exchange = None  # elsewhere it is another request
            return onward
        onward = self.new(history=(*self.history, RequestHistory(method, url, error, _status(response), None)))
        delay = None if is_off() else onward._after(str(method), str(url), response, error, _pool)
        if delay is None:
            onward._give_up(str(url), response, error, _pool)
        if response is not None:
            _release(response)
        onward._delay = delay or 0.0
        return onward

    def get_backoff_time(self) -> float:
        """Seconds to wait before the next attempt."""
        return self._delay

    def sleep(self, response: urllib3.BaseHTTPResponse | None = None) -> None:
        """Wait for as long as was decided."""
        if self._exchange is not None:
            self._exchange.runtime.sleep(self._delay)

    def _after(
        self,
        method: str,
        url: str,
        response: urllib3.BaseHTTPResponse | None,
        error: Exception | None,
        pool: ConnectionPool | None,
    ) -> float | None:
        if self._exchange is None:
            self._exchange = self._begin(method, url, pool)
        if error is not None:
            verdict = _LIBRARY.verdict(error)
            self._body.note(method, verdict)
            return self._exchange.failed(error, verdict)
        if response is None:
            return None
        self._body.note(method)
        return self._exchange.answered(response.status, response.headers, response)

    def _begin(self, method: str, url: str, pool: ConnectionPool | None) -> Exchange:
        parts = urlsplit(url)
        host = parts.hostname or ("" if pool is None else pool.host or "")
        target = f"{parts.path}?{parts.query}" if parts.query else parts.path
        policy, service = self._options.resolve(host, target)
        self._body = _Body(self._bodies_are_reusable)
        return Exchange(policy, service, lambda: Request(method, host, target, _UNSEEN, None), self._body, Start())

    def _give_up(
        self,
        url: str,
        response: urllib3.BaseHTTPResponse | None,
        error: Exception | None,
        pool: Any,
    ) -> None:
        """Raise what makes urllib3 let out the reply or the error."""
        told = None if self._exchange is None else self._exchange.report
        if error is None:
            if told is not None:
                reply: Any = response
                reply.__forbear_report__ = told
            raise MaxRetryError(pool, url, ResponseError(ResponseError.GENERIC_ERROR))
        if isinstance(error, ReadTimeoutError | ProtocolError):
            try:
                raise error
            finally:
                del error  # or its traceback would lead back to it
        last = MaxRetryError(pool, url, error)
        if told is not None:
            attach(last, told)
        raise last from error


class _Body:
    """A body that nobody has seen."""

    once = False
    failed = False

    def __init__(self, is_reusable: bool) -> None:
        self._is_reusable = is_reusable
        self._is_spent = False

    def note(self, method: str, verdict: Verdict | None = None) -> None:
        """An attempt failed, of which something may have been sent, unless `verdict` rules that out."""
        bare = method in READS or method == "DELETE"
        sent = verdict is None or verdict.effect is Effect.UNKNOWN
        self._is_spent = self._is_spent or (sent and not bare and not self._is_reusable)

    def why_not_again(self) -> str | None:
        """What was sent may have come out of something that comes only once."""
        if not self._is_spent:
            return None
        return "urllib3 does not show the body; promise with bodies_are_reusable=True that all are bytes or files"


def _release(response: urllib3.BaseHTTPResponse) -> None:
    """Close a failed response, unless it is short: urllib3 reads it to its end before the next attempt."""
    length = number(response.headers.get("content-length", ""))
    if length is None or length > _SHORT:
        response.close()
        response.release_conn()


def _status(response: urllib3.BaseHTTPResponse | None) -> int | None:
    return None if response is None else response.status
