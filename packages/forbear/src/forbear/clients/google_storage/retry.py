"""Safe retry objects for google-cloud-storage under the names of its own: change only the import.

Google's objects decide by the type of an error alone; these decide by the operation, too. They find it in the arguments
of the call if the client shows them, else in the function that sends an upload or in the request of a failed attempt. A
call whose operation cannot be found is not repeated, unless it was certainly not executed. Of a chunk of a resumable
upload only the part that its session lacks is sent again.
"""

import functools
from collections.abc import Callable, Mapping
from typing import Any, ParamSpec, Self, TypeVar

from google.api_core import retry as api_retry
from google.cloud.storage import retry as storage_retry

from forbear.clients.google_storage.calls import (
    VERDICTS,
    Sending,
    cure_of,
    judgement_of,
    request_of_call,
    request_of_error,
    sending_of,
    verdict_of,
)
from forbear.clients.requests.response import attach_report
from forbear.core import check
from forbear.core.backoff import Exponential
from forbear.core.limits import Limits
from forbear.core.report import Report
from forbear.core.service import Judgement
from forbear.core.verdict import PERMANENT, TRANSIENT, Kind, Verdict
from forbear.exchange.call_state import RetriedCall
from forbear.http.request import Request
from forbear.policy import Policy
from forbear.run.answers import Broken
from forbear.run.functions import refuse_awaitable
from forbear.services import errors
from forbear.services.cloud_storage.service import RECOMMENDED

P = ParamSpec("P")
T = TypeVar("T")

_DOWNLOADS = "google.cloud.storage._media.requests.download"
_VOUCH = "retry=DEFAULT_RETRY.with_repeatable(True) if a repeat does no harm"
_WORTH_IT = (Kind.TRANSIENT, Kind.NOT_EXECUTED)


def is_transient(error: Exception) -> bool:
    """Return whether an error is worth a retry if its operation allows one: the predicate of `DEFAULT_RETRY`.

    >>> from google.api_core.exceptions import NotFound, ServiceUnavailable
    >>> is_transient(ServiceUnavailable("busy")), is_transient(NotFound("no such object"))
    (True, False)
    """
    return verdict_of(error).kind in _WORTH_IT


class Retry(api_retry.Retry):
    """A `google.api_core.retry.Retry` that repeats only what Cloud Storage's table says may be repeated.

    - Waits have full jitter under `initial`, multiplied by `multiplier` each time, at most `maximum`, all in seconds.
    - `timeout` (or `deadline`, the older name, which wins) is in seconds for the whole run, None for no limit.
    - `predicate` decides which errors are worth a retry, and `on_error` is called with each of them.
    - `Retry-After` is obeyed.

    Giving up raises the original error with a note and a report, not a `RetryError`. Like a RetryError, the original
    error is a `google.api_core.exceptions.GoogleAPIError` if the server had answered.

    >>> retry = Retry(maximum=10, timeout=30)  # for `retry=` of a call
    >>> retry(str.upper)("done")
    'DONE'
    """

    def __init__(
        self,
        predicate: Callable[[Exception], bool] = is_transient,
        initial: float = 1.0,
        maximum: float = 60.0,
        multiplier: float = 2.0,
        timeout: float | None = 120.0,
        on_error: Callable[[Exception], Any] | None = None,
        **kwargs: Any,
    ) -> None:
        unknown = kwargs.keys() - {"deadline"}
        if unknown:
            raise TypeError(f"`{unknown.pop()}` is no parameter of Retry; the older name of `timeout` is `deadline`")
        super().__init__(predicate, initial, maximum, multiplier, timeout, on_error, **kwargs)
        limits = Limits(attempts=None, timeout=self.timeout, unlimited=self.timeout is None)
        backoff = Exponential(initial=initial, multiplier=multiplier, maximum=maximum, jitter="full")
        self._policy = Policy(VERDICTS, limits, backoff, service=RECOMMENDED)
        self._repeatable: bool | None = None

    def __call__(self, func: Callable[P, T], on_error: Callable[[Exception], Any] | None = None) -> Callable[P, T]:
        """Return `func`, a function of the client that sends one request, with retries.

        `on_error` is called with each error worth a retry, even if no other attempt follows. An `on_error` of this
        object replaces it.
        """
        return self._decorate(func, None, on_error)

    def get_retry_policy_if_conditions_met(self, **kwargs: Any) -> Callable[[Callable[P, T]], Callable[P, T]]:
        """Return the decorator that adds retries to a function which makes the call with these arguments.

        The client passes the arguments of its `api_request`, by which the operation is known. Without a `path` among
        them the operation is sought in the function and in its error.
        """
        return functools.partial(self._decorate, known=request_of_call(kwargs) if "path" in kwargs else None)

    def with_timeout(self, timeout: float | None) -> Self:
        return self._keep_repeatable(super().with_timeout(timeout))

    def with_predicate(self, predicate: Callable[[Exception], bool]) -> Self:
        """Return a copy that retries only the errors that `predicate` accepts."""
        return self._keep_repeatable(super().with_predicate(predicate))

    def with_delay(
        self, initial: float | None = None, maximum: float | None = None, multiplier: float | None = None
    ) -> Self:
        """Return a copy with other delays, in seconds; None keeps a value."""
        return self._keep_repeatable(super().with_delay(initial, maximum, multiplier))

    def with_repeatable(self, repeatable: bool | None) -> Self:
        """Return a copy that may repeat every call (True), or none that may have been executed (False).

        With None the table decides again. Pass True only if you know that repeats do no harm. Unless it is False,
        chunks of a resumable upload are continued, after a query for the bytes that the session has.
        """
        check.flag("repeatable", repeatable, none="the table decides")
        changed = super().with_timeout(self._timeout)
        changed._set_repeatable(repeatable)
        return changed

    def _set_repeatable(self, repeatable: bool | None) -> None:
        self._repeatable = repeatable
        self._policy = self._policy.replace(repeatable=False if repeatable is False else None)

    def _keep_repeatable(self, changed: Self) -> Self:
        changed._set_repeatable(self._repeatable)
        return changed

    def _decorate(
        self, func: Callable[P, T], known: Request | None, on_error: Callable[[Exception], Any] | None = None
    ) -> Callable[P, T]:
        listener = self._on_error or on_error

        @functools.wraps(func)
        def retried(*args: P.args, **kwargs: P.kwargs) -> T:
            call = RetriedCall(self._policy)
            chunk: Sending | None = None
            while True:
                try:
                    value: T = func(*args, **kwargs) if chunk is None else chunk.resume()
                except Exception as error:
                    try:
                        verdict = self._verdict(error)
                        if listener is not None and verdict.kind in _WORTH_IT:
                            listener(error)
                        sending = chunk or sending_of(func)
                        request = known if known is not None or sending is None else sending.request
                        judgement = self._judgement(error, request, func)
                        is_chunk = judgement.session and not judgement.repeatable
                        if is_chunk and sending is not None and sending.can_resume():
                            # A chunk gets the full limits at its first failure, and again when its session progresses.
                            if chunk is None or chunk.has_progressed():
                                call = RetriedCall(self._policy)
                            chunk, judgement = sending, judgement.replace(repeatable=True)
                        subject = request or request_of_error(error)
                        cure = None if (known_cure := cure_of(judgement)) is None else f"{known_cure}, or {_VOUCH}"
                        status = errors.status_of(error)
                        grant = call.failed(error, verdict, judgement, status, subject=subject, cure=cure)
                    except Exception as broken:  # of the predicate or of `on_error`
                        kind = Kind.NOT_EXECUTED if verdict_of(error).kind is Kind.NOT_EXECUTED else Kind.PERMANENT
                        judgement = self._judgement(error, known, func)
                        grant = call.failed(error, Broken(broken, kind), judgement, subject=request_of_error(error))
                    if grant is None or not grant.ask():
                        _annotate(error, call.report)
                        raise
                except BaseException as interrupt:
                    sending = chunk or sending_of(func)
                    request = known if known is not None or sending is None else sending.request
                    call.leave_in_doubt(interrupt, self._judgement(interrupt, request, func), request)
                    raise
                else:
                    if hasattr(type(value), "__await__"):
                        refuse_awaitable(value, "the call")
                    call.succeeded()
                    return value
                grant.sleep()

        return retried

    def _verdict(self, error: Exception) -> Verdict:
        verdict = verdict_of(error)
        if self._predicate is is_transient:
            return verdict
        if not self._predicate(error):
            return PERMANENT
        return verdict if verdict.kind in _WORTH_IT else TRANSIENT

    def _judgement(self, error: BaseException, known: Request | None, func: Callable[..., Any]) -> Judgement:
        """Return the judgement on a failed call, by the request `known`, else by that of `error`.

        Without a request, a call is safe only if `func` is one of the client's downloads. After `with_repeatable(True)`
        it is repeatable in any case, except for a chunk of a resumable upload.
        """
        judgement = judgement_of(known or request_of_error(error), read=func.__module__ == _DOWNLOADS)
        return judgement.replace(repeatable=True) if self._repeatable and not judgement.session else judgement


class ConditionalRetryPolicy(storage_retry.ConditionalRetryPolicy):  # type: ignore[misc] # it ships no types
    """A policy that retries only calls whose arguments satisfy `conditional_predicate`, as Google's class does.

    The predicate gets the arguments named in `required_kwargs`; a call without one of them is not retried. With a
    `Retry` of this module, the operation must allow the retry, too. The `with_…` methods are those of that Retry.

    >>> policy = ConditionalRetryPolicy(DEFAULT_RETRY, is_generation_specified, ["query_params"])
    >>> policy.get_retry_policy_if_conditions_met(query_params={}) is None
    True
    >>> policy.get_retry_policy_if_conditions_met(query_params={"ifGenerationMatch": 0}) is None
    False
    """

    retry_policy: Retry
    conditional_predicate: Callable[..., bool]
    required_kwargs: list[str]

    def get_retry_policy_if_conditions_met(self, **kwargs: Any) -> Any:
        """Return the retry object or decorator for a call with these arguments, None to send it once."""
        if any(name not in kwargs for name in self.required_kwargs):
            return None
        untyped: Any = super()
        policy = untyped.get_retry_policy_if_conditions_met(**kwargs)
        if isinstance(policy, Retry) and "path" in kwargs:  # uploads and downloads show only a part of the query
            return policy.get_retry_policy_if_conditions_met(**kwargs)
        return policy

    def with_timeout(self, timeout: float | None) -> Self:
        return self._with(self.retry_policy.with_timeout(timeout))

    def with_deadline(self, deadline: float | None) -> Self:
        return self._with(self.retry_policy.with_timeout(deadline))

    def with_predicate(self, predicate: Callable[[Exception], bool]) -> Self:
        return self._with(self.retry_policy.with_predicate(predicate))

    def with_delay(
        self, initial: float | None = None, maximum: float | None = None, multiplier: float | None = None
    ) -> Self:
        return self._with(self.retry_policy.with_delay(initial, maximum, multiplier))

    def _with(self, policy: Retry) -> Self:
        return type(self)(policy, self.conditional_predicate, self.required_kwargs)


def _annotate(error: Exception, report: Report | None) -> None:
    """Set the report on the response of `error`, if both exist: for uploads the client raises a new error with it."""
    response = getattr(error, "response", None)
    if report is not None and response is not None:
        attach_report(response, report)


def is_generation_specified(query_params: Mapping[str, Any]) -> bool:
    """Return whether `generation` or `ifGenerationMatch` is among the parameters of a call and not None; 0 counts.

    >>> is_generation_specified({"ifGenerationMatch": 0}), is_generation_specified({})
    (True, False)
    """
    return any(query_params.get(name) is not None for name in ("generation", "ifGenerationMatch"))


def is_metageneration_specified(query_params: Mapping[str, Any]) -> bool:
    """Return whether `ifMetagenerationMatch` is among the parameters of a call and not None.

    >>> is_metageneration_specified({"ifMetagenerationMatch": 3}), is_metageneration_specified({})
    (True, False)
    """
    return query_params.get("ifMetagenerationMatch") is not None


def is_etag_in_json(data: Mapping[str, Any] | None) -> bool:
    """Return whether `data`, the body of a call as a mapping, has an "etag" that is not None; None has none.

    >>> is_etag_in_json({"etag": "CAE=", "role": "READER"}), is_etag_in_json({"role": "READER"})
    (True, False)
    """
    return data is not None and data.get("etag") is not None


DEFAULT_RETRY = Retry()
"""Retries operations that may be repeated, after random waits of at most 1, 2, 4 … 60 s, for 120 s in all."""

DEFAULT_RETRY_IF_GENERATION_SPECIFIED = ConditionalRetryPolicy(DEFAULT_RETRY, is_generation_specified, ["query_params"])
"""`DEFAULT_RETRY` for calls with `generation` or `ifGenerationMatch` in their query; any other call is sent once."""

DEFAULT_RETRY_IF_METAGENERATION_SPECIFIED = ConditionalRetryPolicy(
    DEFAULT_RETRY, is_metageneration_specified, ["query_params"]
)
"""`DEFAULT_RETRY` for calls with `ifMetagenerationMatch` in their query; any other call is sent once."""

DEFAULT_RETRY_IF_ETAG_IN_JSON = ConditionalRetryPolicy(DEFAULT_RETRY, is_etag_in_json, ["data"])
"""`DEFAULT_RETRY` for calls with an etag in their body; any other call is sent once."""
