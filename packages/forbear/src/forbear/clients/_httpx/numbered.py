"""Stop the SDKs that number their attempts, such as those of OpenAI and Anthropic, where forbear gave up.

Such an SDK sends each attempt of a call as a new request, from the same thread or task. It counts its retries in the
header x-stainless-retry-count, and obeys the header x-should-retry of a response.
"""

from contextvars import ContextVar
from typing import Any

from forbear.clients._httpx.errors import HttpxLibrary
from forbear.core.report import Report, attach
from forbear.run.nesting import is_final

_COUNT = "x-stainless-retry-count"
_ANSWER = "x-should-retry"

given_up: "ContextVar[tuple[Report, str, Any] | None]" = ContextVar("forbear_numbered_request", default=None)
"""The report, method and URL of the last numbered request of this thread or task that forbear gave up; else None."""


def remember(request: Any, report: Report | None, response: Any = None) -> None:
    """Remember that forbear gave up `request`, if an SDK numbers it; None for a report does nothing.

    The headers of its `response` then tell the SDK not to repeat it.
    """
    if report is None or _COUNT not in request.headers or not is_final(report):
        return
    given_up.set((report, request.method, request.url))
    if response is not None:
        response.headers[_ANSWER] = "false"


def stop_repeat(library: HttpxLibrary, request: Any) -> None:
    """Raise a RemoteProtocolError of the `library` if `request` is an SDK's repeat of the request that was given up.

    The error has the report. The first attempt of a call clears the memory.
    """
    last = given_up.get()
    count = request.headers.get(_COUNT, "")
    if last is None or not (count.isascii() and count.isdecimal()):
        return
    report, method, url = last
    if count.strip("0") == "":
        given_up.set(None)
    elif (method, url) == (request.method, request.url):
        error = library.broken(f"the request was not sent again: {report.text}")
        attach(error, report)
        raise error
