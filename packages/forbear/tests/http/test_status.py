"""Statuses: which of them are errors, which of those are transient, and what the server asks for."""

import pytest

from forbear.core.verdict import PERMANENT, TRANSIENT, Kind, Verdict
from forbear.http import status

THROTTLED = Verdict(Kind.TRANSIENT, throttled=True)


@pytest.mark.parametrize("code", [100, 101, 200, 201, 204, 206, 301, 304, 308, 399])
def test_below_400_is_no_error(code: int) -> None:
    """Successes and redirects have no verdict, even with a Retry-After."""
    assert status.verdict(code, {"retry-after": "5"}) is None


def test_exactly_six_statuses_are_transient() -> None:
    """Of all errors, only those that another try may cure are transient; overload is told from breakage."""
    found = {code: status.verdict(code, {}) for code in range(400, 1000)}
    transient = {408: TRANSIENT, 429: THROTTLED, 500: TRANSIENT, 502: TRANSIENT, 503: THROTTLED, 504: TRANSIENT}
    assert {code: verdict for code, verdict in found.items() if verdict != PERMANENT} == transient


@pytest.mark.parametrize(("code", "throttled"), [(408, False), (429, True), (500, False), (503, True), (504, False)])
def test_retry_after_goes_with_a_transient_verdict(code: int, throttled: bool) -> None:
    """What the server asks for is attached, whichever transient status it comes with."""
    expected = Verdict(Kind.TRANSIENT, retry_after=7.0, throttled=throttled)
    assert status.verdict(code, {"retry-after": "7"}) == expected


def test_retry_after_of_zero_is_attached() -> None:
    """0 is an answer, not the lack of one."""
    assert status.verdict(503, {"retry-after": "0"}) == Verdict(Kind.TRANSIENT, retry_after=0.0, throttled=True)


@pytest.mark.parametrize(("code", "expected"), [(503, THROTTLED), (500, TRANSIENT)])
def test_an_unreadable_retry_after_is_ignored(code: int, expected: Verdict) -> None:
    """Garbage in Retry-After leaves the bare verdict."""
    assert status.verdict(code, {"retry-after": "soon"}) == expected


def test_a_permanent_status_stays_bare() -> None:
    """A Retry-After does not make a permanent error transient."""
    assert status.verdict(404, {"retry-after": "7"}) is PERMANENT


def test_a_date_is_read_against_the_replys_date_and_then_the_clock() -> None:
    """The reply's own Date header goes before the local clock."""
    headers = {"retry-after": "Sun, 06 Nov 1994 08:50:00 GMT"}
    assert status.verdict(500, headers, now=784111777.0) == Verdict(Kind.TRANSIENT, retry_after=23.0)
    headers["date"] = "Sun, 06 Nov 1994 08:49:00 GMT"
    assert status.verdict(500, headers, now=784111777.0) == Verdict(Kind.TRANSIENT, retry_after=60.0)


def test_a_service_may_have_its_own_transient_statuses() -> None:
    """The set of transient statuses can be replaced; overload is overload only if it is in the set."""
    assert status.verdict(404, {}, {404}) is TRANSIENT
    assert status.verdict(503, {}, {404}) is PERMANENT


@pytest.mark.parametrize(
    ("code", "text"), [(503, "503 Service Unavailable"), (404, "404 Not Found"), (499, "499"), (799, "799")]
)
def test_statuses_have_names_for_people(code: int, text: str) -> None:
    """A known status is shown with its name, another one as a number."""
    assert status.reason(code) == text
