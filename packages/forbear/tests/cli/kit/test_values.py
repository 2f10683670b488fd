"""Reading durations, counts and exit codes, right and wrong ones."""

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st

from forbear.cli.kit import values
from forbear.cli.kit.options import PolicyOptions, apply_options
from forbear.cli.kit.output import BadInput
from forbear.core.backoff import Exponential
from forbear.core.decide import Stop, decide
from forbear.core.limits import Limits
from forbear.core.verdict import TRANSIENT

OPTIONS = ("timeout", "initial", "maximum", "constant")


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90", 90),
        ("0.5", 0.5),
        (".5", 0.5),
        ("1m30s", 90),
        ("500ms", 0.5),
        ("1h", 3600),
        ("1d2h3m4s5ms", 93784.005),
        ("1.5m", 90),
        (" 2S ", 2),
    ],
)
def test_durations_are_read_in_seconds_or_units(text: str, seconds: float) -> None:
    """Plain numbers are seconds; units may be put together."""
    assert values.duration(text) == pytest.approx(seconds)
    assert values.duration_or_none(text) == pytest.approx(seconds)
    assert values.duration_from_zero(text) == pytest.approx(seconds)


@pytest.mark.parametrize(
    "text",
    ["", " ", "-5", "+5", "1e3", "nan", "inf", "infinity", "1_000", "5 s", "s", "1x", "1.", "٣", "9" * 400, "1m-2s"],
)
def test_what_is_no_duration(text: str) -> None:
    """All else is refused in words that say what would be right, and repeat what was said."""
    for read in (values.duration, values.duration_or_none, values.duration_from_zero):
        with pytest.raises(click.BadParameter, match=r"a duration must be .* such as 90") as error:
            read(text)
        assert repr(text) in error.value.message


def test_zero_and_none() -> None:
    """Zero is a duration only where a wait may be none at all; "none" only where a limit may be left out."""
    assert values.duration_from_zero("0ms") == 0
    assert values.duration_or_none("None") is values.NO_LIMIT
    assert values.count_or_none("none") is values.NO_LIMIT
    for read in (values.duration, values.duration_or_none):
        with pytest.raises(click.BadParameter, match="more than zero"):
            read("0")
    for read in (values.duration, values.duration_from_zero):
        with pytest.raises(click.BadParameter):
            read("none")


@pytest.mark.parametrize(("text", "count"), [("1", 1), ("5", 5), (" 007 ", 7), ("100000", 100_000)])
def test_counts_are_whole_numbers_from_1(text: str, count: int) -> None:
    """Whole numbers from 1."""
    assert values.count_or_none(text) == count


@pytest.mark.parametrize("text", ["", "0", "-1", "1.5", "five", "1e3", "٣", "9" * 20])
def test_what_is_no_count(text: str) -> None:
    """All else is refused."""
    with pytest.raises(click.BadParameter, match="a whole number from 1, or none for no limit, got"):
        values.count_or_none(text)


@pytest.mark.parametrize(
    ("text", "codes"),
    [("1", {1}), ("1,75", {1, 75}), ("100-103", {100, 101, 102, 103}), (" 1 , 5 - 6 ", {1, 5, 6}), ("255", {255})],
)
def test_exit_codes(text: str, codes: set[int]) -> None:
    """Numbers and ranges, put together by commas."""
    assert values.exit_codes(text) == codes


@pytest.mark.parametrize("text", ["", "0", "256", "1,", "5-3", "0-3", "-1", "1-", "a", "1;2", "1-2-3", "1000", "٣"])
def test_what_are_no_exit_codes(text: str) -> None:
    """All else is refused; 0 is no failure."""
    with pytest.raises(click.BadParameter, match="exit codes must be from 1 to 255, such as"):
        values.exit_codes(text)


@given(st.text(max_size=12))
def test_any_text_is_read_or_refused(text: str) -> None:
    """No text leads to another error, nor to a value out of range."""
    for read, least in ((values.duration, 0.0), (values.duration_from_zero, -1.0)):
        try:
            assert least < read(text) < float("inf")
        except click.BadParameter:
            continue
    try:
        assert values.exit_codes(text) <= set(range(1, 256))
    except click.BadParameter:
        return


UNITS = st.sampled_from(["", "ms", "s", "m", "h", "d"])
DIGITS = st.one_of(
    st.integers(min_value=0).map(str), st.sampled_from(["0", "1", "9" * 308, "9" * 5000, "0." + "0" * 330 + "1"])
)


@given(DIGITS, UNITS, st.sampled_from(OPTIONS))
def test_durations_of_any_size_make_a_policy_or_are_refused(digits: str, unit: str, option: str) -> None:
    """Whatever the number: a limit and a backoff that can be used, or words that name what is wrong."""
    options = PolicyOptions(
        attempts=2, timeout=None, initial=None, maximum=None, multiplier=None, jitter=None, constant=None
    )
    read = values.duration_from_zero if option == "constant" else values.duration
    try:
        options[option] = read(digits + unit)  # type: ignore[literal-required]
        limits, backoff = apply_options(Limits(timeout=None), Exponential(), options)
    except (click.BadParameter, BadInput):
        return
    step = decide(limits, backoff, TRANSIENT, attempt=1, elapsed=0, u=0.5, repeatable=True)
    assert isinstance(step, Stop) or 0 <= step.delay < 4e9


@pytest.mark.parametrize(
    ("text", "count"), [("1", 1), ("500K", 512_000), ("1.5m", 1.5 * 1024**2), (" 2G ", 2 * 1024**3), ("0.5k", 512)]
)
def test_rates_are_read_in_bytes_or_units(text: str, count: float) -> None:
    """A rate is in bytes per second, or in units of 1024, 1024**2 and 1024**3 of them."""
    assert values.rate(text) == count


@pytest.mark.parametrize("text", ["", "0", "0K", "K", "-1", "1KB", "1e3", "nan", "1" * 13, "٣"])
def test_other_texts_are_no_rates(text: str) -> None:
    """Any other text is refused with the rule and what was used."""
    with pytest.raises(click.BadParameter, match="a rate must be a number of bytes per second"):
        values.rate(text)
