"""The adapter of `install`, which finds the call of google-cloud-storage that a request belongs to on the stack.

The client keeps the `retry=` of a call in variables of the functions below and does not pass it to its session. So an
adapter can learn it only from the stack. The stack is read; nothing is changed. Importing this module fails if a
version of the client keeps it elsewhere: otherwise a call whose retries are off might be repeated unnoticed.
"""

import sys
from collections.abc import Iterator
from http.client import HTTPException
from importlib import import_module
from types import CodeType, FrameType
from typing import Any, Self

import requests
import urllib3
from google.api_core import exceptions
from google.api_core.exceptions import RetryError

from forbear.clients.google_storage.calls import cure_of, request_of
from forbear.clients.requests import RetryAdapter
from forbear.clients.requests.response import copy_response
from forbear.core.decide import Reason
from forbear.core.report import Report, attach, report
from forbear.http.status import TRANSIENT_STATUSES
from forbear.policy import Policy
from forbear.services.cloud_storage.service import RECOMMENDED

_untyped: Any = exceptions
_BROKEN = (OSError, HTTPException, urllib3.exceptions.HTTPError)


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


def find_caller() -> tuple[bool, RetryError | None]:
    """Find the call of google-cloud-storage that sends the current request on the stack, and return two facts of it.

    The first is True if the call's retries are off: its `retry=` is None, or a condition that does not hold. The second
    is the RetryError by which the previous attempt of Google's loop around the call ended, if it ended so, else None.
    Such a loop goes on only if its predicate accepts every error. Without such a call they are False and None.
    """
    ended: RetryError | None = None
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        code = frame.f_code  # compared by identity, because hashing a code object is slow
        if code is _CALL or code is _MEDIA:
            return not frame.f_locals[_CALL_RETRY if code is _CALL else _MEDIA_RETRY], ended
        if code is _LOOP:  # the call's own, or one around the caller's use of the session, which does not matter
            errors = frame.f_locals[_LOOP_ERRORS]
            ended = errors[-1] if errors and isinstance(errors[-1], RetryError) else None
        frame = frame.f_back
    return False, None


class Adapter(RetryAdapter):
    """The adapter for requests, for which every host is Cloud Storage; giving up ends Google's loops."""

    def __init__(self, policy: Policy, **options: Any) -> None:
        super().__init__(policy, **options)
        self._options = self._options.replace(service=RECOMMENDED)

    def send(self, request: requests.PreparedRequest, *args: Any, **options: Any) -> requests.Response:
        """Send a request as often as its call and the policy allow, and return the last response.

        A call whose retries are off is sent once, with the plain errors. For any other call, giving up on a transient
        status or a broken connection raises RetryError, whose `cause` is the error. If Google's loop repeats a call
        that ended so, its RetryError is raised again and nothing is sent.
        """
        sends_once, ended = find_caller()
        if sends_once:
            return RetryAdapter.send(self._copy_for_one_attempt(), request, *args, **options)
        if ended is not None:
            raise ended
        try:
            response = super().send(request, *args, **options)
            if response.status_code in TRANSIENT_STATUSES:
                raise _untyped.from_http_response(response)  # within this block, because reading the body may fail, too
        except (*_BROKEN, exceptions.GoogleAPICallError) as error:
            raise _make_retry_error(error, _with_cure(report(error), request)) from error
        return copy_response(response, _EndingResponse)

    def _copy_for_one_attempt(self) -> Self:
        """Return an adapter for a call whose retries are off: it makes one attempt and still annotates a failure."""
        once = self.__new__(type(self))
        vars(once).update(vars(self))  # the connections, too
        once._options = self._options.replace(policy=self._options.sample.with_attempts(1))
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


def _make_retry_error(error: Exception, report: Report | None) -> RetryError:
    ended: RetryError = _untyped.RetryError("forbear gave up", error)
    if report is not None:
        attach(ended, report)
    return ended
