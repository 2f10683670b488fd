"""Limits: their defaults, and every value they refuse."""

import pytest

from forbear.core.limits import Limits

NAN, INFINITY = float("nan"), float("inf")
A_COUNT = "must be a whole number or None (no limit), got"
BOTH_NONE = (
    "`attempts` and `timeout` must not both be None, or a run may never end; "
    "set one of them, or pass unlimited=True if that is what you want"
)
A_TIMEOUT = "must be a number of seconds or None (no limit), got"


def test_the_defaults_of_limits() -> None:
    """Five attempts in a minute, no clamp, fifteen minutes for the server's word."""
    assert Limits() == Limits(attempts=5, timeout=60, clamp=False, max_retry_after=900, unlimited=False)


@pytest.mark.parametrize(
    "arguments",
    [
        {"attempts": 1},
        {"attempts": None},
        {"timeout": None},
        {"timeout": 0.001},
        {"max_retry_after": 0},
        {"attempts": None, "timeout": None, "unlimited": True},
    ],
    ids=str,
)
def test_good_values_are_kept(arguments: dict[str, object]) -> None:
    """Whatever is allowed is stored as it was given."""
    made = Limits().replace(**arguments)
    assert {name: getattr(made, name) for name in arguments} == arguments


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        ({"attempts": 0}, ValueError, "`attempts` must be 1 or more, got 0"),
        ({"attempts": -1}, ValueError, "`attempts` must be 1 or more, got -1"),
        ({"attempts": 2.0}, TypeError, f"`attempts` {A_COUNT} 2.0"),
        ({"attempts": INFINITY}, TypeError, f"`attempts` {A_COUNT} inf"),
        ({"attempts": NAN}, TypeError, f"`attempts` {A_COUNT} nan"),
        ({"attempts": True}, TypeError, f"`attempts` {A_COUNT} True"),
        ({"attempts": "5"}, TypeError, f"`attempts` {A_COUNT} '5'"),
        ({"timeout": 0}, ValueError, "`timeout` must be positive and finite or None (no limit), got 0"),
        ({"timeout": -0.5}, ValueError, "`timeout` must be positive and finite or None (no limit), got -0.5"),
        ({"timeout": INFINITY}, ValueError, "`timeout` must be positive and finite or None (no limit), got inf"),
        ({"timeout": NAN}, TypeError, f"`timeout` {A_TIMEOUT} nan"),
        ({"timeout": False}, TypeError, f"`timeout` {A_TIMEOUT} False"),
        ({"timeout": "60"}, TypeError, f"`timeout` {A_TIMEOUT} '60'"),
        ({"max_retry_after": -1}, ValueError, "`max_retry_after` must be zero or more and finite, got -1"),
        ({"max_retry_after": INFINITY}, ValueError, "`max_retry_after` must be zero or more and finite, got inf"),
        ({"max_retry_after": None}, TypeError, "`max_retry_after` must be a number of seconds, got None"),
        ({"clamp": 1}, TypeError, "`clamp` must be True or False, got 1"),
        ({"unlimited": "yes"}, TypeError, "`unlimited` must be True or False, got 'yes'"),
        (
            {"attempts": None, "timeout": None},
            ValueError,
            BOTH_NONE,
        ),
    ],
    ids=str,
)
def test_bad_values_are_refused_by_name(arguments: dict[str, object], error: type[Exception], text: str) -> None:
    """Every text names the parameter, the rule, the value and, where it is not plain, the cure."""
    with pytest.raises(error) as caught:
        Limits().replace(**arguments)
    assert str(caught.value) == text
