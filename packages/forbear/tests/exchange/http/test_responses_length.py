"""The body of a response: which are short enough to be read at once."""

import pytest

from forbear.exchange.http.responses import is_read_at_once


@pytest.mark.parametrize(
    ("length", "settled"),
    [
        ("0", True),
        ("65536", True),
        ("65537", False),
        ("9" * 30, False),
        ("9" * 4400, False),
        ("-1", False),
        ("\u0663", False),
        ("3, 3", False),
        ("", False),
    ],
)
def test_only_a_length_that_can_be_is_short(length: str, settled: bool) -> None:
    """A length of thousands of digits raised a bare ValueError after the POST had been executed."""
    assert is_read_at_once("POST", 200, {"content-length": length}) is settled
