"""Verdicts on replies, with the wall clock where a reply carries no date."""

import time
from email.utils import formatdate

from forbear.core.verdict import TRANSIENT, Kind, Verdict
from forbear.services import replies


def test_a_date_without_a_date_header_is_read_against_the_wall_clock() -> None:
    """An hour from now is about an hour."""
    verdict = replies.verdict(503, {"retry-after": formatdate(time.time() + 3600, usegmt=True)})
    assert verdict is not None
    assert verdict.retry_after is not None
    assert 3500 < verdict.retry_after <= 3600


def test_a_date_header_goes_before_the_wall_clock() -> None:
    """A reply from 1994 asks for 23 seconds."""
    headers = {"retry-after": "Sun, 06 Nov 1994 08:50:00 GMT", "date": "Sun, 06 Nov 1994 08:49:37 GMT"}
    assert replies.verdict(500, headers) == Verdict(Kind.TRANSIENT, retry_after=23.0)


def test_statuses_can_be_chosen() -> None:
    """The caller says what is transient."""
    assert replies.verdict(501, {}, {501}) is TRANSIENT
    assert replies.verdict(204, {}) is None
