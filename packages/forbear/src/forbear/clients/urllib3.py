"""Retries for urllib3, as its own Retry object, for code that accepts nothing else.

urllib3 does not show it the headers or the body of a request, so it assumes the worst. No precondition in them counts,
and a write that may have sent a part of its body is not repeated, unless the caller promises that bodies are reusable.
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

from forbear.clients._urllib3 import verdict_of
from forbear.core.report import attach
from forbear.core.verdict import Effect, Verdict
from forbear.exchange.call_state import Start
from forbear.exchange.chosen import choose
from forbear.exchange.http.exchange import Exchange
from forbear.exchange.http.options import HttpOptions, check_policy
from forbear.http.ranges import number
from forbear.http.request import READS, Request
from forbear.http.vouch import Vouch
from forbear.policy import Policy
from forbear.run.grant import Grant
from forbear.run.spending import succeeded
from forbear.run.switch import is_off

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Unpack

    from forbear.http.api import Api
    from forbear.http.vouch import Apis
    from forbear.run.derive import ClientOptions

_SHORT = 64 * 1024
"""The most bytes of a failed response's body that are read to keep its connection; more costs more than a new one."""

_UNSEEN = {"content-range": "unseen", "host": "unseen"}
"""Headers for every request, whose own are invisible.

With them, no chunk of an upload session can be continued, and no `safe_to_repeat` covers the request.
"""


class _UnseenExchange(Exchange):
    __slots__ = ()
    cure = "urllib3 shows too little of a request to vouch for it; use requests with forbear's RetryAdapter(safe=...)"


class Retry(urllib3.Retry):
    """A `urllib3.Retry` that repeats only what is safe: `PoolManager(retries=Retry())`, `max_retries=Retry()`.

    Use one of forbear's adapters instead where you can (`forbear.clients.requests`). urllib3 shows a Retry object the
    method, the URL, errors and responses, but neither the headers nor the body of the request. So:

    - A precondition in the query counts; one in a header or a body does not. A method override in a header is not seen.
    - Broken bodies are not continued, sessions of resumable uploads are not queried, and no token is added.
    - `timeout` counts from the first failure on, because urllib3 calls a Retry object then for the first time.
    - If a body can be read only once, urllib3 sends its rest as if it were all. So a request with another method than
      DELETE or a read is repeated only if nothing of it was sent. `bodies_are_reusable=True` promises that all bodies
      are bytes or seekable files, and lifts that rule.

    - You cannot vouch for requests: `safe` is refused, and so are `apis` with `safe`, `service`, `key` or
      `not_executed`. `forbear.safe_to_repeat` does not apply.

    `policy` and the keywords of `forbear.retry` (`attempts=3, timeout=30`) are as for the other clients, but without
    `on_result` and `attempt_timeout`, which urllib3 does not support, and without a budget per host, or one that counts
    first attempts. `redirect` limits the number of redirects. You get the last response, with its report
    (`forbear.report(response)`, under requests, too).

    >>> import urllib3
    >>> with urllib3.PoolManager(retries=Retry(attempts=3)) as pool:
    ...     pool.request("GET", cloud.url + "/storage/v1/b/my-bucket").status
    200
    """

    def __init__(
        self,
        policy: Policy | None = None,
        *,
        bodies_are_reusable: bool = False,
        redirect: int | None = 10,
        safe: None = None,
        apis: "Apis" = (),
        **options: "Unpack[ClientOptions]",
    ) -> None:
        vouch = Vouch(apis=apis)
        _refuse_vouches(safe, vouch.apis)
        check_policy(policy, "use an adapter that sees whole requests: forbear.clients.requests.RetryAdapter(safe=...)")
        policy, changes = choose("Retry", policy, options, ("bodies_are_reusable", "redirect", "apis"))
        self._options = HttpOptions(policy, vouch=vouch, changes=changes, raised=(urllib3.exceptions.HTTPError,))
        sample = self._options.sample
        if sample.checks_values or sample.attempt_timeout is not None:
            what = "on_result" if sample.checks_values else "attempt_timeout"
            raise TypeError(f"`policy` must do without {what}, which urllib3 has no place for: mount a RetryAdapter")
        budget = sample.budget
        if budget is not None and (budget.by_host or budget.counts_first_attempts):
            raise TypeError(
                f"`policy` must do without {budget!r}, because urllib3 does not show a Retry object the first attempt: "
                "mount a RetryAdapter, or take another budget, such as forbear.budgets.Budget()"
            )
        self._bodies_are_reusable = bodies_are_reusable
        self._exchange: Exchange | None = None
        self._body = _Body(bodies_are_reusable)
        self._grant: Grant | None = None
        super().__init__(total=None, redirect=redirect, raise_on_status=False)

    def __repr__(self) -> str:
        return self._options.show_as("Retry")

    def new(self, **changes: Any) -> Self:
        """Return a copy with the attributes `changes`; urllib3 calls it to change its counts."""
        following = copy.copy(self)
        vars(following).update(changes)
        return following

    def is_retry(self, method: str, status_code: int, has_retry_after: bool = False) -> bool:
        """Return whether urllib3 is to call `increment`: for 400 or more. A lower status counts as a success."""
        if is_off():
            return False
        if status_code >= 400:
            return True
        if self._exchange is not None:
            self._exchange.responded(status_code, {}, None)
        else:
            succeeded(None, self._options.sample)
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
        """Return the object for the next attempt. Raises MaxRetryError, or `error`, if there is none.

        A redirect is counted by urllib3's own rule, and the request after it is another request.
        """
        if response is not None and response.get_redirect_location():
            following = super().increment(method, url, response, error, _pool, _stacktrace)
            following._exchange = None  # a redirected request is another request
            return following
        status = None if response is None else response.status
        following = self.new(history=(*self.history, RequestHistory(method, url, error, status, None)))
        grant = None if is_off() else following._judge(str(method), str(url), response, error, _pool)
        if grant is None or not grant.ask():
            following._give_up(str(url), response, error, _pool)
        if response is not None:
            _release(response)
        following._grant = grant
        return following

    def get_backoff_time(self) -> float:
        return 0.0 if self._grant is None else self._grant.delay

    def sleep(self, response: urllib3.BaseHTTPResponse | None = None) -> None:
        if self._exchange is not None and self._grant is not None:
            self._grant.sleep()

    def _judge(
        self,
        method: str,
        url: str,
        response: urllib3.BaseHTTPResponse | None,
        error: Exception | None,
        pool: ConnectionPool | None,
    ) -> Grant | None:
        if self._exchange is None:
            self._exchange = self._begin(method, url, pool)
        if error is not None:
            verdict = verdict_of(error)
            self._body.note(method, verdict)
            return self._exchange.failed(error, verdict)
        if response is None:
            return None
        self._body.note(method)
        return self._exchange.responded(response.status, response.headers, response)

    def _begin(self, method: str, url: str, pool: ConnectionPool | None) -> Exchange:
        parts = urlsplit(url)
        scheme, host, port = parts.scheme, parts.hostname or "", parts.port
        if not host and pool is not None:  # the URL is a path
            scheme, host, port = pool.scheme or "http", pool.host or "", pool.port
        target = f"{parts.path}?{parts.query}" if parts.query else parts.path
        described = Request(method, host, target, _UNSEEN, None, scheme, port)
        policy, service = self._options.resolve(host, target, lambda: described.origin)
        self._body = _Body(self._bodies_are_reusable)
        vouch = self._options.vouch
        return _UnseenExchange(policy, service, lambda: described, self._body, Start(), vouch=vouch)

    def _give_up(
        self,
        url: str,
        response: urllib3.BaseHTTPResponse | None,
        error: Exception | None,
        pool: Any,
    ) -> None:
        """Stop retrying: raise a MaxRetryError, by which urllib3 returns the response or raises the last error.

        A ReadTimeoutError or ProtocolError is raised itself. The response or the error gets the report.
        """
        report = None if self._exchange is None else self._exchange.report
        if error is None:
            if report is not None:
                untyped: Any = response
                untyped.__forbear_report__ = report
            raise MaxRetryError(pool, url, ResponseError(ResponseError.GENERIC_ERROR))
        if isinstance(error, ReadTimeoutError | ProtocolError):
            try:
                raise error
            finally:
                del error  # otherwise the error's traceback would refer to the error itself
        last = MaxRetryError(pool, url, error)
        if report is not None:
            attach(last, report)
        raise last from error


def _refuse_vouches(safe: object, apis: "tuple[Api, ...]") -> None:
    """Raise TypeError for words that need what urllib3 does not show: `safe`, and APIs that say more than statuses."""
    unseen = ("safe", "service", "key", "not_executed")
    blind = [(f"apis` with `{field}", api) for api in apis for field in unseen if getattr(api, field)]
    for name, value in (("safe", safe), *blind):
        if value is not None:
            raise TypeError(
                f"`{name}` needs the headers and the body of a request, which urllib3 does not show a Retry object: "
                f"use requests with forbear's RetryAdapter; got {value!r}"
            )


class _Body:
    """A stand-in for the body of a request, which urllib3 does not show."""

    once = False
    failed = False

    def __init__(self, is_reusable: bool) -> None:
        self._is_reusable = is_reusable
        self._is_spent = False

    def note(self, method: str, verdict: Verdict | None = None) -> None:
        """Record a failed attempt: it may have sent a part of the body, so that this cannot be sent again.

        It has not if `verdict` says that nothing was executed; None stands for a response. Reads and DELETE count as
        without a body, and reusable bodies can always be sent again.
        """
        bare = method in READS or method == "DELETE"
        sent = verdict is None or verdict.effect is Effect.UNKNOWN
        self._is_spent = self._is_spent or (sent and not bare and not self._is_reusable)

    def why_not_again(self) -> str | None:
        if not self._is_spent:
            return None
        return "urllib3 does not show the body; promise with bodies_are_reusable=True that all are bytes or files"


def _release(response: urllib3.BaseHTTPResponse) -> None:
    """Close a failed response, unless its Content-Length is at most 64 KiB.

    urllib3 reads such a body to its end before the next attempt.
    """
    length = number(response.headers.get("content-length", ""))
    if length is None or length > _SHORT:
        response.close()
        response.release_conn()
