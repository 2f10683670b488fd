"""Virtual time: waits take no real time in this context, and nowhere else."""

import asyncio
import random
import threading
import time as real

import anyio
import pytest

from forbear.core.backoff import Exponential
from forbear.policy import retry
from forbear.run.runtime import Runtime, current
from forbear.testing.virtual_clock import clock, virtual_time


def test_sync_sleep_advances_at_once() -> None:
    """Waits are recorded, and time moves by as much."""
    with virtual_time() as time:
        current.get().sleep(600)
        current.get().sleep(0.5)
        assert time.slept == [600, 0.5]
        assert time.elapsed == current.get().monotonic() == 600.5


def test_the_wall_clock_moves_along() -> None:
    """The wall clock starts at the real time, so that dates of real servers make sense."""
    before = real.time()
    with virtual_time() as time:
        began = time.now
        assert before <= began <= real.time()
        time.advance(3600)
        assert time.now == current.get().now() == began + 3600


def test_what_takes_time_is_not_a_wait() -> None:
    """`advance`, `sleep` and `asleep` stand for work, so `slept` does not record them."""

    async def main() -> None:
        await time.asleep(3)

    with virtual_time() as time:
        time.advance(1)
        time.sleep(2)
        anyio.run(main)
        assert time.elapsed == 6
        assert time.slept == []


@pytest.mark.parametrize("seconds", [-1, float("nan"), float("inf"), "1"])
def test_time_moves_forward_only(seconds: float) -> None:
    """Time accepts numbers that are not negative."""
    with virtual_time() as time:
        for move in (time.advance, time.sleep):
            with pytest.raises((ValueError, TypeError), match="`seconds` must be"):
                move(seconds)
        with pytest.raises((ValueError, TypeError), match="`seconds` must be"):
            anyio.run(time.asleep, seconds)
    assert time.elapsed == 0


def draws(seed: int | None) -> list[float]:
    """Return some jitter."""
    with virtual_time(seed):
        return [current.get().random() for _ in range(5)]


def test_a_seed_fixes_the_jitter() -> None:
    """The same seed gives the same jitter; without one it comes from the global generator, as in real runs."""
    assert draws(1) == draws(1) != draws(2)
    assert draws(0) == draws(0) != draws(None)
    state = random.getstate()
    expected = [random.random() for _ in range(5)]
    random.setstate(state)
    assert draws(None) == expected


def test_blocks_nest() -> None:
    """Each block has its own clock, and the outer clock is back after the inner block."""
    with virtual_time() as outer:
        current.get().sleep(1)
        with virtual_time() as inner:
            current.get().sleep(10)
            assert clock() is inner
        current.get().sleep(2)
        assert clock() is outer
    assert (outer.slept, inner.slept) == ([1, 2], [10])
    assert type(current.get()) is Runtime


def test_it_ends_with_the_block_whatever_happens() -> None:
    """Real time is back after an error, too; outside virtual time there is no clock to move."""
    with pytest.raises(LookupError), virtual_time():
        raise LookupError
    with pytest.raises(RuntimeError) as caught:
        clock()
    assert str(caught.value) == "there is no virtual time here: do this within `with virtual_time():`"


def test_as_a_decorator() -> None:
    """A whole test function can be decorated."""

    @virtual_time(seed=1)
    def test() -> float:
        current.get().sleep(5)
        return clock().elapsed

    assert (test(), test()) == (5, 5)


def test_only_the_callers_context_is_virtual() -> None:
    """Other threads wait for real, unless they run in a copy of the context."""
    seen: list[bool] = []

    def look() -> None:
        seen.append(type(current.get()) is Runtime)

    async def main() -> None:
        await asyncio.to_thread(look)

    with virtual_time():
        thread = threading.Thread(target=look)
        thread.start()
        thread.join()
        asyncio.run(main())
    assert seen == [True, False]


def test_threads_may_share_a_clock() -> None:
    """The waits of threads add up, because each blocks its own thread."""

    async def main() -> None:
        await asyncio.gather(*(asyncio.to_thread(work) for _ in range(8)))

    def work() -> None:
        for _ in range(200):
            current.get().sleep(1)

    with virtual_time() as time:
        asyncio.run(main())
    assert time.elapsed == len(time.slept) == 1600


def test_ten_minutes_of_backoff_in_a_moment() -> None:
    """Ten minutes of backoff take no real time."""
    policy = retry(on=OSError, attempts=None, timeout=600, backoff=Exponential(jitter="none"))

    def fail() -> None:
        raise OSError

    with virtual_time(seed=7) as time:
        with pytest.raises(OSError, match="gave up after 15 attempts"):
            policy.call(fail)
        assert time.slept == [1, 2, 4, 8, 16, 32, *(8 * [64])]
