"""Durations with units, and plain ones where they are allowed."""

import pytest

from forbear.text.duration import parse_duration


@pytest.mark.parametrize(
    ("text", "with_units", "plain"),
    [
        ("1m30s", 90, 90),
        (" 500MS ", 0.5, 0.5),
        ("50us", 50e-6, 50e-6),
        (".5h", 1800, 1800),
        ("1d0s", 86_400, 86_400),
        ("90", None, 90),
        ("0.5", None, 0.5),
        ("", None, None),
        ("-1s", None, None),
        ("1e3", None, None),
        ("inf", None, None),
        ("٣s", None, None),
        ("1s 2s", None, None),
        ("9" * 400, None, None),
        ("9" * 400 + "s", None, None),
    ],
)
def test_durations(text: str, with_units: float | None, plain: float | None) -> None:
    """A duration is a sum of numbers with units; a plain number counts only where it is allowed."""
    assert parse_duration(text) == (None if with_units is None else pytest.approx(with_units))
    assert parse_duration(text, plain=True) == (None if plain is None else pytest.approx(plain))
