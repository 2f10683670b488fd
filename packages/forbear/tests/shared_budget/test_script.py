"""The script on a real Valkey: deposits, grants, the start and the end of a bucket; command and response as bytes."""

from collections.abc import Generator

import pytest
from hypothesis import given
from hypothesis import strategies as st
from redis import ResponseError

from forbear.core.budget import MICRO
from forbear.shared_budget.script import (
    DIGEST,
    IDLE,
    SCRIPT,
    BucketState,
    LinkFailed,
    LocalBucket,
    command,
    decode,
    encode,
    key_of,
    parse,
)
from forbear_testkit.shared_budget.fleet import Server, running_server

KEY = b"{fb:x}"
TEN = 10 * MICRO


@pytest.fixture(scope="module")
def server() -> Generator[Server]:
    """Run one server for all tests of this module."""
    with running_server() as running:
        yield running


@pytest.fixture(autouse=True)
def empty(server: Server) -> None:
    """Delete the bucket."""
    server.run(b"FLUSHALL")


def run(server: Server, deposit: int, cost: int, now: int | None = 1000, capacity: int = TEN) -> BucketState:
    """Run the script once."""
    return parse(server.run(*command(KEY, capacity, deposit, cost, now)))


def test_a_new_bucket_has_a_tenth_of_its_capacity(server: Server) -> None:
    """It grants so much, and then nothing, and keeps its epoch."""
    assert run(server, 0, MICRO) == (True, 0, 1000)
    assert run(server, 0, MICRO, now=2000) == (False, 0, 1000)


def test_a_deposit_counts_for_the_ask_that_brings_it(server: Server) -> None:
    """The bucket never holds more than its capacity, and an ask for nothing is no grant."""
    run(server, 0, MICRO)
    assert run(server, MICRO, MICRO) == (True, 0, 1000)
    assert run(server, 50 * MICRO, 0) == (False, TEN, 1000)
    assert run(server, 50 * MICRO, MICRO) == (True, TEN - MICRO, 1000)
    assert run(server, 0, 0, capacity=2 * MICRO) == (False, 2 * MICRO, 1000)


@pytest.mark.parametrize(("later", "starts_anew"), [(IDLE - 1, False), (IDLE, True), (-5000, False)])
def test_an_idle_bucket_starts_anew(server: Server, later: int, starts_anew: bool) -> None:
    """After an hour without a change it has a new epoch; a clock that is set back changes nothing."""
    run(server, TEN, 0)
    state = run(server, 0, 0, now=1000 + later)
    assert state == ((False, MICRO, 1000 + later) if starts_anew else (False, TEN, 1000))


def test_it_reads_the_servers_clock_and_expires(server: Server) -> None:
    """Without `now` the epoch is the time in milliseconds, and the server deletes the key after an hour."""
    epoch = run(server, 0, 0, now=None).epoch
    seconds = server.run(b"TIME")
    assert abs(int(seconds[0]) - epoch / 1000) < 5
    assert IDLE - 5000 < server.run(b"PTTL", KEY) <= IDLE


@pytest.mark.parametrize("field", ["tokens", "time", "epoch"])
def test_a_damaged_bucket_starts_anew(server: Server, field: str) -> None:
    """A field without a number counts as missing."""
    run(server, TEN, 0)
    server.run(b"HSET", KEY, field.encode(), b"much")
    assert run(server, 0, 0, now=5000) == (False, MICRO, 5000)


def test_large_numbers_stay_whole(server: Server) -> None:
    """The largest capacity keeps every micro-token."""
    largest = 1_000_000_000 * MICRO
    run(server, largest, 0, capacity=largest)
    assert run(server, 0, MICRO + 1, capacity=largest).tokens == largest - MICRO - 1


def test_a_key_of_another_type_is_an_error(server: Server) -> None:
    """The script changes nothing then."""
    server.run(b"SET", KEY, b"v")
    with pytest.raises(ResponseError, match="WRONGTYPE"):
        server.run(*command(KEY, TEN, 0, MICRO))


@given(
    st.lists(
        st.tuples(
            st.integers(0, 3 * TEN),
            st.sampled_from([0, MICRO]),
            st.sampled_from([0, 1, 5000, IDLE - 1, IDLE]),
            st.sampled_from([MICRO, TEN]),
        ),
        max_size=20,
    )
)
def test_the_bucket_in_memory_is_that_of_the_server(server: Server, steps: list[tuple[int, int, int, int]]) -> None:
    """Command by command they answer the same: deposits, grants, overflow, idle times and other capacities."""
    server.run(b"FLUSHALL")
    bucket, now = LocalBucket(), 1000
    for deposit, cost, later, capacity in steps:
        now += later
        sent = command(KEY, capacity, deposit, cost, now)
        assert bucket.run(sent) == server.run(*sent)


def test_the_digest_names_the_script(server: Server) -> None:
    """It is what the server itself computes."""
    assert server.run(b"SCRIPT", b"LOAD", SCRIPT) in (DIGEST, DIGEST.decode())


RESPONSES = [
    (b"+OK\r\n", b"OK"),
    (b"+\r\n", b""),
    (b"*3\r\n:1\r\n:99000000\r\n:1700000000000\r\n", [1, 99_000_000, 1_700_000_000_000]),
]


@pytest.mark.parametrize(("data", "value"), RESPONSES)
def test_a_response_is_read_once_it_is_complete(data: bytes, value: object) -> None:
    """Each part of it is no response yet, and what follows is left alone."""
    assert decode(data + b"+more") == (value, len(data))
    assert all(decode(data[:end]) is None for end in range(len(data)))


def test_an_error_response_is_a_value() -> None:
    """The server's text is kept, whatever its bytes are."""
    value, end = decode(b"-OOM command not allowed \xff\r\n") or (None, 0)
    assert isinstance(value, LinkFailed)
    assert (str(value), end) == ("OOM command not allowed \\xff", 28)


@pytest.mark.parametrize(
    "data",
    [
        b"HTTP/1.1 400 Bad Request\r\n",
        b"\x15\x03\x03\x00\x02",
        b"+" + b"x" * 2000,
        b"-" + b"x" * 2000,
        b"*2\r\n",
        b"*3\r\n:1x\r\n",
        b"*3\r\n:1\r\n:2\r\n:" + b"9" * 30 + b"\r\n",
        b"*3\r\n:1\r\n+OK\r\n",
        b"*3\r\n:-1\r\n",
        b":1\r\n",
        b"$1\r\na\r\n",
    ],
)
def test_nonsense_is_refused(data: bytes) -> None:
    """Other protocols, endless lines, and sizes that the script never sends end the connection."""
    with pytest.raises(LinkFailed):
        decode(data)


@given(st.binary(max_size=60))
def test_any_bytes_end(data: bytes) -> None:
    """They are a response, a part of one, or refused."""
    try:
        result = decode(data)
    except LinkFailed:
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
    with pytest.raises(LinkFailed, match="that the script does not send"):
        parse(response)
    assert parse([1, 2, 3]) == BucketState(granted=True, tokens=2, epoch=3)
