"""The script on a real Valkey: deposits, grants, the start of a bucket, and its end."""

from collections.abc import Generator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forbear.core.budget import MICRO
from forbear.shared_budget.script import IDLE, BucketState, LocalBucket, command, parse
from forbear.shared_budget.wire import ErrorResponse
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
    assert isinstance(seconds, list)
    assert abs(int(seconds[0]) - epoch / 1000) < 5
    left = server.run(b"PTTL", KEY)
    assert isinstance(left, int)
    assert IDLE - 5000 < left <= IDLE


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
    response = server.run(*command(KEY, TEN, 0, MICRO))
    assert isinstance(response, ErrorResponse)
    assert "WRONGTYPE" in str(response)


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
