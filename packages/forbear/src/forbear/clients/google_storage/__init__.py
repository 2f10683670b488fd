"""Retries for google-cloud-storage: `install`, which makes a client safe, and safe versions of its own retry objects.

`install(client)` is recommended, because it sees every request as it is sent, by an adapter on the client's session. A
request that forbear gives up on raises the RetryError by which Google's loops end. They do not repeat it, so attempts
do not multiply, and unsafe requests are not repeated. A call whose retries are off is sent once and raises the errors
of the plain client.
"""

from collections.abc import Iterator
from http.client import HTTPException
from typing import TYPE_CHECKING, Any, TypeVar

try:
    from google.api_core import exceptions
    from google.cloud import storage
except ImportError as error:
    raise ImportError(
        'forbear.clients.google_storage needs google-cloud-storage; install it with: pip install "forbear[google]"'
    ) from error

import requests
import urllib3
from requests.adapters import HTTPAdapter

from forbear.clients.google_storage.calls import cure_of, request_of
from forbear.clients.google_storage.retry import (
    DEFAULT_RETRY,
    DEFAULT_RETRY_IF_ETAG_IN_JSON,
    DEFAULT_RETRY_IF_GENERATION_SPECIFIED,
    DEFAULT_RETRY_IF_METAGENERATION_SPECIFIED,
    ConditionalRetryPolicy,
    Retry,
    is_etag_in_json,
    is_generation_specified,
    is_metageneration_specified,
    is_transient,
)
from forbear.clients.requests import RetryAdapter
from forbear.clients.requests.response import copy_response
from forbear.core.decide import Reason
from forbear.core.report import Report, attach, report
from forbear.exchange.chosen import choose
from forbear.exchange.http.options import check_policy
from forbear.http.status import TRANSIENT_STATUSES
from forbear.policy import Policy
from forbear.services import cloud_storage
from forbear.services.cloud_storage.service import RECOMMENDED

if TYPE_CHECKING:
    from typing import Unpack

    from forbear.clients.google_storage.callers import Caller
    from forbear.exchange.http.settling import Settle
    from forbear.run.derive import ClientOptions


__all__ = [
    "DEFAULT_RETRY",
    "DEFAULT_RETRY_IF_ETAG_IN_JSON",
    "DEFAULT_RETRY_IF_GENERATION_SPECIFIED",
    "DEFAULT_RETRY_IF_METAGENERATION_SPECIFIED",
    "ConditionalRetryPolicy",
    "Retry",
    "install",
    "is_etag_in_json",
    "is_generation_specified",
    "is_metageneration_specified",
    "is_transient",
]


C = TypeVar("C", bound=storage.Client)

_untyped: Any = exceptions
_BROKEN = (OSError, HTTPException, urllib3.exceptions.HTTPError)


def install(
    client: C, policy: Policy | None = None, *, settle: "Settle" = False, **options: "Unpack[ClientOptions]"
) -> C:
    """Make a google-cloud-storage client safe, and return it.

    Every request is judged as it is sent. It is repeated only if its operation allows it. Broken downloads are
    continued, and of a resumable upload only the part that its session lacks is sent again. `policy` is by default
    `cloud_storage.policy`; your own brings its limits, backoff and `on`. The keywords of `forbear.retry` but `on`, such
    as `attempts=3, timeout=30`, change it. The table of Cloud Storage applies to every host, emulators included.

    A call is sent once if its `retry=` is None (by default or by the caller), or a ConditionalRetryPolicy whose
    condition does not hold. Its errors are those of the plain client. With any other `retry=`, `policy` decides, and
    Google's loops end after their first attempt. Giving up raises a `google.api_core.exceptions.RetryError` whose
    `cause` is the original error, with a note and a report. Errors that no loop would repeat are raised unchanged.

    `settle` lets a read say what became of a write that a later attempt finds done, as for RetryAdapter: True for the
    state, patterns for some requests, or a function `mine(sent, read)` that recognizes its own write.

    Raises TypeError for the policy of another service, for another client, and for a client whose session has its own
    adapters (mutual TLS). Raises ImportError for a version of google-cloud-storage that keeps `retry=` elsewhere.
    Processes of the transfer manager make their own clients: use its threads.

    >>> from google.auth.credentials import AnonymousCredentials
    >>> from google.cloud import storage
    >>> client = storage.Client("my-project", AnonymousCredentials(), client_options={"api_endpoint": cloud.url})
    >>> install(client, attempts=3).bucket("my-bucket").exists()
    True
    >>> client.close()
    """
    from forbear.clients.google_storage import callers  # imported here: users of the retry objects do not need it

    session: Any = getattr(client, "_http", None) if isinstance(client, storage.Client) else None
    if not isinstance(session, requests.Session):
        raise TypeError(
            "`client` must be a google.cloud.storage.Client whose session is one of requests; for asyncio and gRPC "
            f"there is forbear.clients.grpc, got {client!r}"
        )
    chosen: Any = choose("install", cloud_storage.policy if policy is None else policy, options, ("settle",))[0]
    check_policy(chosen)
    if chosen.service is not None and chosen.service.name != RECOMMENDED.name:
        raise TypeError(
            f"`policy` must be for Cloud Storage or for no service in particular, got one for {chosen.service.name}; "
            "take forbear.services.cloud_storage.policy, or one of forbear.retry(on=...)"
        )
    for prefix in ("https://", "http://"):
        present = session.get_adapter(f"{prefix}storage.googleapis.com")
        if type(present) not in (HTTPAdapter, _Adapter):
            raise TypeError(
                "`client` must have a session with plain adapters, which can be replaced; "
                f"got {type(present).__qualname__} for {prefix}"
            )
        kept: Any = present
        session.mount(
            prefix,
            _Adapter(
                chosen,
                callers.Caller,
                settle=settle,
                pool_connections=kept._pool_connections,
                pool_maxsize=kept._pool_maxsize,
                pool_block=kept._pool_block,
            ),
        )
    return client


class _Adapter(RetryAdapter):
    """The adapter for requests, for which every host is Cloud Storage; giving up ends Google's loops."""

    __attrs__ = [*RetryAdapter.__attrs__, "_caller", "_policy"]  # noqa: RUF012 - what is pickled, declared there

    def __init__(self, policy: Policy, caller: "type[Caller]", **options: Any) -> None:
        super().__init__(policy, **options)
        self._options = self._options.replace(service=RECOMMENDED)
        self._policy = policy
        self._caller = caller

    def send(self, request: requests.PreparedRequest, *args: Any, **options: Any) -> requests.Response:
        """Send a request as often as its call and the policy allow, and return the last response.

        A call whose retries are off is sent once, with the plain errors. For any other call, giving up on a transient
        status or a broken connection raises RetryError, whose `cause` is the error. If Google's loop repeats a call
        that ended so, its RetryError is raised again and nothing is sent.
        """
        caller = self._caller()
        if caller.sends_once:
            return RetryAdapter.send(self._copy_for_one_attempt(), request, *args, **options)
        if caller.ended is not None:
            raise caller.ended
        try:
            response = super().send(request, *args, **options)
            if response.status_code in TRANSIENT_STATUSES:
                raise _untyped.from_http_response(response)  # within this block, because reading the body may fail, too
        except (*_BROKEN, exceptions.GoogleAPICallError) as error:
            raise _make_retry_error(error, _with_cure(report(error), request)) from error
        return copy_response(response, _EndingResponse)

    def _copy_for_one_attempt(self) -> "_Adapter":
        """Return an adapter for a call whose retries are off: it makes one attempt and still annotates a failure."""
        once = self.__new__(type(self))
        vars(once).update(vars(self))  # the connections, too
        once._options = self._options.replace(policy=self._policy.with_attempts(1))
        return once


class _EndingResponse(requests.Response):
    """A response whose `iter_content` raises the RetryError that ends Google's loops, if its body stays broken."""

    def iter_content(self, chunk_size: int | None = 1, decode_unicode: bool = False) -> Iterator[Any]:
        """Iterate over the body; if it stays broken, raise a RetryError with the error as its `cause`, and a report."""
        return _read(super().iter_content(chunk_size, decode_unicode))


def _read(pieces: Iterator[Any]) -> Iterator[Any]:
    try:
        yield from pieces
    except _BROKEN as error:
        inner = error.args[0] if error.args else None  # of which requests made this one
        raise _make_retry_error(error, report(error) or report(inner)) from error


def _with_cure(report: Report | None, request: requests.PreparedRequest) -> Report | None:
    """Return `report`; if `request` was unsafe to repeat, with the arguments that make it safe in its text."""
    if report is None or report.reason is not Reason.UNSAFE:
        return report
    cure = cure_of(RECOMMENDED.classify(request_of(request)))
    return report if cure is None else report.replace(text=f"{report.text}; {cure}", origin=report.origin)


def _make_retry_error(error: Exception, report: Report | None) -> exceptions.RetryError:
    ended: exceptions.RetryError = _untyped.RetryError("forbear gave up", error)
    if report is not None:
        attach(ended, report)
    return ended
