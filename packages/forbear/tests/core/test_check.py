"""Checks that several parameters share: timedeltas become seconds, and flags may be None where that means something."""

import itertools
import subprocess
import sys
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from forbear.core import check
from forbear.core.backoff import Constant, Exponential, Sequence
from forbear.core.events import Succeeded
from forbear.core.limits import Limits
from forbear.core.protocols import Backoff
from forbear.core.verdict import Kind, Verdict


@pytest.mark.parametrize(
    ("value", "seconds"),
    [(timedelta(minutes=1), 60.0), (timedelta(milliseconds=1), 0.001), (5, 5), (0.5, 0.5), (None, None), ("x", "x")],
)
def test_timedeltas_become_seconds(value: object, seconds: object) -> None:
    """Anything else stays as it is."""
    assert check.in_seconds(value) == seconds


@pytest.mark.unmutated
def test_without_datetime_nothing_is_a_timedelta() -> None:
    """The module is not loaded to find that out."""
    code = "import sys; from forbear.core.check import in_seconds; in_seconds('x'); print('datetime' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"


def test_without_the_module(monkeypatch: pytest.MonkeyPatch) -> None:
    """A value passes then, whatever it is."""
    monkeypatch.delitem(sys.modules, "datetime")
    value = object()
    assert check.in_seconds(value) is value


def test_where_seconds_are_taken() -> None:
    """All of the core takes timedeltas."""
    minute, second = timedelta(minutes=1), timedelta(seconds=1)
    assert Limits(timeout=minute, max_retry_after=second) == Limits(timeout=60, max_retry_after=1)
    assert Exponential(second, 2, minute, spread=second) == Exponential(1, 2, 60, spread=1)
    assert Constant(second, minute) == Constant(1, 60)
    assert Sequence([second, minute], second) == Sequence([1, 60], 1)
    assert Verdict(Kind.TRANSIENT, retry_after=minute, delay=second) == Verdict(Kind.TRANSIENT, 60, 1)


@pytest.mark.parametrize(
    ("value", "none", "text"),
    [
        ("yes", None, "`x` must be True or False, got 'yes'"),
        (None, None, "`x` must be True or False, got None"),
        (1, "auto", "`x` must be True, False or None (auto), got 1"),
    ],
)
def test_none_is_a_flag_only_where_it_has_a_meaning(value: Any, none: str | None, text: str) -> None:
    """None counts only where the check names its meaning."""
    for flag in (True, False, *([] if none is None else [None])):
        check.flag("x", flag, none=none)
    with pytest.raises(TypeError) as caught:
        check.flag("x", value, none=none)
    assert str(caught.value) == text


def test_succeeded_is_a_value() -> None:
    """As all events are."""
    assert Succeeded("work", 1, 0.5) == Succeeded(operation="work", attempt=1, elapsed=0.5)


def test_a_protocol_is_satisfied_by_position() -> None:
    """Names and defaults of a user's `delay` do not matter."""
    backoff: Backoff = Constant(2)
    assert backoff.delay(0, 0.5, None) == 2


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("12345678", "12345678"),
        ("1234567", None),
        ("*", None),
        ("*" * 8, "*" * 8),
        (b"\xff1234567", "\xff1234567"),
        (b"1234567", None),
        (UUID(int=5), str(UUID(int=5))),
        (10**9, "1000000000"),
        (10**9 - 1, None),
        (True, None),
        (None, None),
        (1e9, None),
        (type("Text", (str,), {})("12345678"), None),
    ],
    ids=itertools.count(),
)
def test_what_is_not_equal_by_chance(value: object, text: str | None) -> None:
    """Long texts, bytes, UUIDs and large numbers last; short ones, and subclasses whose code is the user's, do not."""
    assert check.lasting_text(value) == text


def test_one_value_or_several() -> None:
    """A text is one value, not its letters; what is neither a text nor several is refused."""
    assert check.list_values("INCR", "rule") == ("INCR",)
    assert check.list_values(iter(["INCR", 5]), "rule") == ("INCR", 5)
    with pytest.raises(TypeError, match="must be a name; got 5"):
        check.list_values(5, "`safe` must be a name")
