"""The line protocol: whole responses, parts of them, and what is none."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forbear.shared_budget.script import BucketState, NonsenseResponse, command, key_of, parse
from forbear.shared_budget.wire import ErrorResponse, decode, encode

RESPONSES = [
    (b"+OK\r\n", b"OK"),
    (b":-7\r\n", -7),
    (b"$-1\r\n", None),
    (b"$4\r\na\r\nb\r\n", b"a\r\nb"),
    (b"*3\r\n:1\r\n:99000000\r\n:1700000000000\r\n", [1, 99_000_000, 1_700_000_000_000]),
    (b"*-1\r\n", []),
]


@pytest.mark.parametrize(("data", "value"), RESPONSES)
def test_a_response_is_read_once_it_is_complete(data: bytes, value: object) -> None:
    """Each part of it is no response yet, and what follows is left alone."""
    assert decode(data + b"+more", 0) == (value, len(data))
    assert all(decode(data[:end]) is None for end in range(len(data)))


def test_an_error_response_is_a_value() -> None:
    """The server's text is kept, whatever its bytes are."""
    value, end = decode(b"-OOM command not allowed \xff\r\n") or (None, 0)
    assert isinstance(value, ErrorResponse)
    assert (str(value), end) == ("OOM command not allowed \\xff", 28)


@pytest.mark.parametrize(
    "data",
    [
        b"HTTP/1.1 400 Bad Request\r\n",
        b"\x15\x03\x03\x00\x02",
        b"+" + b"x" * 2000,
        b":1x\r\n",
        b":" + b"9" * 30 + b"\r\n",
        b"$99999\r\n",
        b"$1\r\nabc",
        b"*99\r\n",
        b"*1\r\n*1\r\n:1\r\n",
    ],
)
def test_nonsense_is_refused(data: bytes) -> None:
    """Other protocols, endless lines, and sizes that the script never sends end the connection."""
    with pytest.raises(NonsenseResponse):
        decode(data)


@given(st.binary(max_size=60))
def test_any_bytes_end(data: bytes) -> None:
    """They are a response, a part of one, or refused."""
    try:
        result = decode(data)
    except NonsenseResponse:
        return
    assert result is None or 0 < result[1] <= len(data)


def test_a_command_is_encoded_by_lengths() -> None:
    """The bucket's key keeps it on one node of a cluster."""
    words = command(key_of("a b"), 10, 2, 1, now=5)
    assert encode((b"SELECT", b"3")) == b"*2\r\n$6\r\nSELECT\r\n$1\r\n3\r\n"
    assert words[2:4] == (b"1", b"{fb:a b}")
    assert words[4:] == (b"10", b"2", b"1", b"3600000", b"5")


@pytest.mark.parametrize("response", [[2, 0, 0], [1, -1, 0], [1, 2], [1, 2, b"3"], [True, 1, 1], b"OK", None, 7])
def test_only_what_the_script_returns_is_parsed(response: object) -> None:
    """Anything else is nonsense: a grant must not be read from it."""
    with pytest.raises(NonsenseResponse, match="that the script does not send"):
        parse(response)
    assert parse([1, 2, 3]) == BucketState(granted=True, tokens=2, epoch=3)
