"""The limiter: how many may be under way."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forbear_transfer.workers.worker_pool import Limiter


def test_it_doubles_with_each_round_until_it_is_cut() -> None:
    """Each success of the first rounds lets one more go."""
    limiter = Limiter(64, start=16)
    for _ in range(16):
        limiter.succeeded()
    assert limiter.limit == 32


def test_after_a_cut_it_grows_by_one_a_round() -> None:
    """Once it knows where it is too much, it feels its way."""
    limiter = Limiter(64, start=16)
    limiter.throttled(0)
    assert limiter.limit == 8
    for _ in range(9):
        limiter.succeeded()
    assert limiter.limit == 9


def test_those_who_were_under_way_together_cut_it_once() -> None:
    """Sixteen failures of one round halve it once; the next round may halve it again."""
    limiter = Limiter(64, start=16)
    seen = [limiter.throttled(0) for _ in range(16)]
    assert (limiter.limit, limiter.cuts) == (8, 1)
    for known in seen:
        limiter.throttled(known)
    assert (limiter.limit, limiter.cuts) == (4, 2)


@given(st.integers(1, 100), st.integers(1, 100), st.lists(st.booleans(), max_size=300))
def test_it_stays_between_one_and_its_maximum(maximum: int, start: int, successes: list[bool]) -> None:
    """Whatever happens, somebody may go on and never too many."""
    limiter = Limiter(maximum, start)
    for success in successes:
        if success:
            limiter.succeeded()
        else:
            limiter.throttled(limiter.cuts)
        assert 1 <= limiter.limit <= maximum


def test_it_must_allow_one() -> None:
    """Nothing at all would never end."""
    with pytest.raises(ValueError, match="`parallel` must be at least 1, got 0"):
        Limiter(0)


async def test_those_beyond_the_limit_wait_until_it_grows() -> None:
    """The third waits for the third place, and everybody goes when it is lifted."""
    limiter = Limiter(8, start=2)
    await limiter.admit(1)
    third, last = asyncio.create_task(limiter.admit(2)), asyncio.create_task(limiter.admit(7))
    await asyncio.wait([third], timeout=0)
    assert not third.done()
    limiter.succeeded()
    await third
    assert not last.done()
    limiter.lift()
    await last
