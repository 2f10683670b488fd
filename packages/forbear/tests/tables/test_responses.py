"""Verdicts on replies, with the wall clock where a reply carries no date."""

import json
import time
from email.utils import formatdate

import pytest

from forbear.core.verdict import TRANSIENT, Kind, Verdict
from forbear.run.runtime import current
from forbear.tables import responses
from forbear.testing import virtual_time


def test_a_date_without_a_date_header_is_read_against_the_wall_clock() -> None:
    """An hour from now is about an hour."""
    verdict = responses.verdict(503, {"retry-after": formatdate(time.time() + 3600, usegmt=True)})
    assert verdict is not None
    assert verdict.retry_after is not None
    assert 3500 < verdict.retry_after <= 3600


def test_a_date_header_goes_before_the_wall_clock() -> None:
    """A reply from 1994 asks for 23 seconds."""
    headers = {"retry-after": "Sun, 06 Nov 1994 08:50:00 GMT", "date": "Sun, 06 Nov 1994 08:49:37 GMT"}
    assert responses.verdict(500, headers) == Verdict(Kind.TRANSIENT, retry_after=23.0)


def test_statuses_can_be_chosen() -> None:
    """The caller says what is transient."""
    assert responses.verdict(501, {}, {501}) is TRANSIENT
    assert responses.verdict(204, {}) is None


def test_the_wall_clock_is_that_of_the_run() -> None:
    """In virtual time it stands still."""
    with virtual_time(seed=1):
        date = formatdate(current.get().now() + 50, usegmt=True)
        verdict = responses.verdict(503, {"retry-after": date})
    assert verdict is not None
    assert verdict.retry_after is not None
    assert 49 <= verdict.retry_after <= 50


@pytest.mark.parametrize(
    ("body", "status", "reasons"),
    [
        (b'{"error": {"status": "ABORTED"}}', "ABORTED", set()),
        (b'{"error": {"status": 10, "errors": [{"reason": "a"}, {"reason": "b"}]}}', None, {"a", "b"}),
        (b'{"error": {"errors": [{}, "x", null]}}', None, {"None"}),
        (b'{"error": {"errors": {"reason": "a"}}}', None, set()),
        (b'{"error": "ABORTED"}', None, set()),
        (b'{"status": "ABORTED"}', None, set()),
        (b"[]", None, set()),
        (b"ABORTED", None, set()),
        (b"", None, set()),
        (b"[" * 100_000, None, set()),
    ],
    ids=range(10),
)
def test_what_an_error_says(body: bytes, status: str | None, reasons: set[str]) -> None:
    """Its status and its reasons, if it is an error of a Google API."""
    assert responses.error_status(body) == status
    assert responses.error_reasons(body) == reasons


@pytest.mark.parametrize(
    ("detail", "delay"),
    [
        ({"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "40s"}, 40.0),
        ({"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "0.250s"}, 0.25),
        ({"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "-1s"}, None),
        ({"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "nans"}, None),
        ({"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "1" * 400 + "s"}, None),
        ({"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": ".s"}, None),
        ({"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": 40}, None),
        ({"@type": "type.googleapis.com/google.rpc.RetryInfo"}, None),
        ({"@type": "type.googleapis.com/google.rpc.ErrorInfo", "retryDelay": "40s"}, None),
        ("RetryInfo", None),
    ],
)
def test_the_wait_that_an_error_asks_for(detail: object, delay: float | None) -> None:
    """The RetryInfo among the details, in the JSON form of a duration."""
    assert responses.error_delay(json.dumps({"error": {"details": [detail]}}).encode()) == delay
    assert responses.error_delay(json.dumps({"error": {"details": detail}}).encode()) is None
