"""Asking for a whole body again: which second response is of the same bytes as the first."""

import pytest

from forbear.http import ranges
from forbear.http.ranges import Unresumable

ETAG = '"abc"'
SPAN = {"content-range": "bytes 4-9/10"}


@pytest.mark.parametrize(
    ("first", "second", "length"),
    [
        ({}, {}, None),
        ({}, {"content-length": "5"}, 5),
        ({"content-length": "5"}, {}, 5),
        ({"content-length": "5"}, {"content-length": "5", "transfer-encoding": "chunked"}, 5),
        ({"content-length": "5"}, {"content-length": "5"}, 5),
        ({"etag": ETAG, "x-goog-generation": "1"}, {"etag": ETAG, "x-goog-generation": "1"}, None),
        ({"etag": 'W/"abc"'}, {"etag": 'W/"abc"'}, None),
        ({"content-encoding": "identity"}, {}, None),
        ({"content-encoding": "gzip"}, {"content-encoding": "x-gzip"}, None),
        (SPAN, SPAN, None),
        (SPAN, {"content-range": "bytes 4-9/*"}, None),
        ({"content-range": "bytes 4-9/*"}, SPAN, None),
        ({"content-range": "odd"}, {"content-range": "odd"}, None),
    ],
)
def test_a_second_response_of_the_same(first: dict[str, str], second: dict[str, str], length: int | None) -> None:
    """Both responses must agree; a length that one of them leaves out does not differ."""
    for status in (200, 206):
        assert ranges.verify_again((status, first), (status, second)) == length


@pytest.mark.parametrize(
    ("first", "second", "why"),
    [
        ({"content-length": "5"}, {"content-length": "6"}, "another content-length"),
        ({"etag": ETAG}, {"etag": '"new"'}, "another etag"),
        ({"etag": ETAG}, {}, "another etag"),
        ({}, {"etag": ETAG}, "another etag"),
        ({"x-goog-generation": "1"}, {"x-goog-generation": "2"}, "another x-goog-generation"),
        ({"content-encoding": "gzip"}, {}, "another content-encoding"),
        ({}, {"content-encoding": "gzip"}, "another content-encoding"),
        ({"content-encoding": "gzip"}, {"content-encoding": "br"}, "another content-encoding"),
        (SPAN, {}, "another content-range"),
        ({}, SPAN, "another content-range"),
        (SPAN, {"content-range": "bytes 5-9/10"}, "another content-range"),
        (SPAN, {"content-range": "bytes 4-9/11"}, "another content-range"),
        (SPAN, {"content-range": "odd"}, "another content-range"),
    ],
)
def test_a_second_response_of_something_else(first: dict[str, str], second: dict[str, str], why: str) -> None:
    """Each difference is named."""
    with pytest.raises(Unresumable, match=why):
        ranges.verify_again((200, first), (200, second))


@pytest.mark.parametrize(
    ("first", "second", "asked", "same"),
    [
        ((200, SPAN), (206, SPAN), "bytes=4-", True),
        ((206, SPAN), (200, SPAN), "bytes=4-", True),
        ((200, SPAN), (206, SPAN), "", False),
        ((200, {}), (206, SPAN), "bytes=4-", False),
        ((206, SPAN), (200, {}), "bytes=4-", False),
        ((200, {}), (204, {}), "", False),
        ((200, {}), (404, {}), "", False),
        ((200, SPAN), (304, SPAN), "bytes=4-", False),
    ],
)
def test_a_second_response_with_another_status(
    first: tuple[int, dict[str, str]], second: tuple[int, dict[str, str]], asked: str, same: bool
) -> None:
    """Only a server that calls one and the same range 200 now and 206 then is believed."""
    if same:
        assert ranges.verify_again(first, second, asked) is None
    else:
        with pytest.raises(Unresumable):
            ranges.verify_again(first, second, asked)


def test_a_response_that_takes_the_place_of_another() -> None:
    """It has its own length and its own names; only its coding must be that of the first."""
    first = {"etag": '"a"', "content-length": "9", "content-encoding": "gzip"}
    assert ranges.verify_anew(first, {"etag": '"b"', "content-length": "7", "content-encoding": "x-gzip"}) == 7
    assert ranges.verify_anew(first, {"content-encoding": "gzip"}) is None
    with pytest.raises(ranges.Unresumable, match="another content-encoding"):
        ranges.verify_anew(first, {"content-length": "7"})
