"""Retry-After: seconds or a date in three forms, read against the response's own clock."""

import email.utils
import math
import time
from datetime import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forbear.http.status import parse_retry_after

DATE = "Sun, 06 Nov 1994 08:49:37 GMT"
EPOCH = 784111777.0


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("0", 0.0),
        ("1", 1.0),
        ("120", 120.0),
        (" 120\t", 120.0),
        ("007", 7.0),
        ("1.5", 1.5),
        ("0.0", 0.0),
        ("9" * 30, 1e30),
        ("9" * 5000, math.inf),
    ],
)
def test_seconds_are_read(value: str, seconds: float) -> None:
    """A number of seconds of any size is read, with or without a clock."""
    assert parse_retry_after(value) == seconds
    assert parse_retry_after(value, date=DATE, now=5.0) == seconds


@pytest.mark.parametrize(
    "value",
    [
        "",
        " ",
        "-1",
        "-0",
        "+1",
        "1.",
        ".5",
        "1.5.2",
        "1e3",
        "0x10",
        "1_000",
        "inf",
        "nan",
        "5 s",
        "soon",
        ",",
        "-5, soon",
        "٣",
        "1.٣",
    ],
)
def test_a_retry_after_that_cannot_be_read_is_ignored(value: str) -> None:
    """A value that is neither a number of seconds nor a date is ignored."""
    assert parse_retry_after(value, date=DATE, now=EPOCH) is None


@pytest.mark.parametrize(
    "value",
    [
        "Sun, 06 Nov 1994 08:49:37 GMT",
        "Sunday, 06-Nov-94 08:49:37 GMT",
        "Sun Nov  6 08:49:37 1994",
        " Sun, 06 Nov 1994 08:49:37 GMT ",
    ],
)
def test_dates_are_read_in_all_three_forms(value: str) -> None:
    """An HTTP-date in each of its forms is the seconds from now until then."""
    assert parse_retry_after(value, now=EPOCH - 90) == 90.0


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("5, 5", 5.0),
        ("5, 10", 10.0),
        ("10,5", 10.0),
        ("soon, 5", 5.0),
        ("-1, 5", 5.0),
        ("5, Sun, 06 Nov 1994 08:49:37 GMT", 90.0),
        ("Sunday, 06-Nov-94 08:49:37 GMT, 100", 100.0),
    ],
)
def test_of_several_values_the_longest_counts(value: str, seconds: float) -> None:
    """A field that came twice is joined by a comma; coming back at the earlier time would be too early for one."""
    assert parse_retry_after(value, now=EPOCH - 90) == seconds


@pytest.mark.parametrize(
    ("value", "ahead"),
    [
        ("Sun Nov  6 08:49:37 1994", 0),
        ("Sun, 06 Nov 1994 08:49:37 GMT", 0),
        ("Sun, 06 Nov 1994 08:49:37 +0100", -3600),
    ],
)
def test_dates_are_in_utc_wherever_the_client_is(monkeypatch: pytest.MonkeyPatch, value: str, ahead: int) -> None:
    """The local time zone has no say; a zone that the date names has."""
    with monkeypatch.context() as patch:
        patch.setenv("TZ", "JST-9")
        time.tzset()
        seconds = parse_retry_after(value, now=EPOCH - 7200)
    time.tzset()
    assert seconds == 7200 + ahead


def test_a_date_is_read_against_the_responses_own_date() -> None:
    """A local clock that is a year off does no harm."""
    assert parse_retry_after("Sun, 06 Nov 1994 08:50:37 GMT", date=DATE, now=EPOCH + 365 * 86_400) == 60.0


@pytest.mark.parametrize("date", ["", "yesterday", "12"])
def test_an_unreadable_date_header_is_no_clock(date: str) -> None:
    """If the response's own date cannot be read, the local clock is used."""
    assert parse_retry_after(DATE, date=date, now=EPOCH - 7) == 7.0
    assert parse_retry_after(DATE, date=date) is None


def test_without_any_clock_a_date_says_nothing() -> None:
    """A date cannot be read with neither a Date header nor a local clock."""
    assert parse_retry_after(DATE) is None


@pytest.mark.parametrize(("now", "seconds"), [(EPOCH, 0.0), (EPOCH + 1, 0.0), (EPOCH - 1, 1.0), (EPOCH + 1e6, 0.0)])
def test_a_date_in_the_past_is_now(now: float, seconds: float) -> None:
    """A date that has passed asks for no wait, and never for a negative one."""
    assert parse_retry_after(DATE, now=now) == seconds


def test_a_local_clock_at_the_epoch_is_a_clock() -> None:
    """0.0 is a time like any other."""
    assert parse_retry_after(DATE, now=0.0) == EPOCH


@pytest.mark.parametrize(
    "value",
    [
        "Mon, 99 Nov 1994 08:49:37 GMT",
        "Sun, 06 Foo 1994 08:49:37 GMT",
        "Sun, 06 Nov 1994 25:49:37 GMT",
        "6 Nov 99999999999999999999 08:49:37 GMT",
        "Sun, 06 Nov 1994 08:49:37 +999999999999999",
    ],
)
def test_impossible_dates_say_nothing(value: str) -> None:
    """A date that no calendar has is ignored, as is one that overflows."""
    assert parse_retry_after(value, now=EPOCH) is None


@pytest.mark.parametrize(
    "value",
    [
        "," * 65_000,
        "a," * 32_000,
        "06 Nov 1994 08:49:37 GMT," * 2600,
        "(" * 65_000,
        "1 " * 32_000,
        "06 Nov 1994 08:49:37 +" + "1" * 65_000,
        "06 Nov " + "1" * 4000 + " 08:49:37 GMT",
        "9" * 65_000,
    ],
)
def test_a_value_of_any_length_costs_no_more_than_a_short_one(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    """At most 16 parts are read as dates, however many commas a server sends, and none of them is long."""
    read: list[int] = []
    real = email.utils.parsedate_to_datetime

    def counted(text: str) -> datetime:
        read.append(len(text))
        return real(text)

    monkeypatch.setattr(email.utils, "parsedate_to_datetime", counted)
    seconds = parse_retry_after(value, DATE, EPOCH)
    assert seconds is None or seconds >= 0
    assert len(read) <= 17
    assert max(read, default=0) <= 64


@given(st.text(max_size=40), st.none() | st.text(max_size=40), st.none() | st.floats(0, 4e9))
def test_no_text_raises_or_asks_for_a_negative_wait(value: str, date: str | None, now: float | None) -> None:
    """Whatever a server sends is seconds from zero up, or nothing."""
    seconds = parse_retry_after(value, date, now)
    assert seconds is None or seconds >= 0


@given(st.integers(0, 10**9), st.integers(1, 3 * 10**9))
def test_dates_round_trip(wait: int, now: int) -> None:
    """The date that lies so many seconds ahead asks for so many seconds."""
    from email.utils import formatdate

    assert parse_retry_after(formatdate(now + wait, usegmt=True), date=formatdate(now, usegmt=True)) == wait
