"""Compressed time: clocks that run faster, waits that are shorter by the same factor."""

import time

import pytest

from forbear.core.backoff import Constant
from forbear.policy import retry
from forbear.run.runtime import AttemptTimeout, FastClock, current

FACTOR = 10_000


@pytest.mark.parametrize("clock", ["monotonic", "now"])
def test_clocks_run_faster(clock: str) -> None:
    """While a real clock advances by a little, the compressed ones advance by `factor` times as much."""
    runtime = FastClock(FACTOR)
    real = time.monotonic()
    before = getattr(runtime, clock)()
    runtime.sleep(20)
    passed = getattr(runtime, clock)() - before
    assert 20 <= passed <= (time.monotonic() - real) * FACTOR + 1


def test_the_wall_clock_starts_at_the_real_time() -> None:
    """The time of the wall clock at the start is the real one."""
    assert FastClock(1).now() == pytest.approx(time.time(), abs=60)


def test_a_run_waits_by_its_clock() -> None:
    """An hour of backoff within a timeout of a year is over at once, and the report tells compressed seconds."""
    policy = retry(on=OSError, attempts=2, timeout=86_400 * 365, backoff=Constant(3_600))
    token = current.set(FastClock(1_000_000))
    failures: list[float] = []

    def fail() -> None:
        failures.append(current.get().monotonic())
        raise OSError

    try:
        with pytest.raises(OSError, match="gave up after 2 attempts"):
            policy.call(fail)
    finally:
        current.reset(token)
    assert failures[1] - failures[0] >= 3_600


@pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])
async def test_coroutines_sleep_and_are_cut_short(anyio_backend: str) -> None:
    """Async waits and attempt timeouts are compressed too, in both event loops."""
    runtime = FastClock(FACTOR)
    before = runtime.monotonic()
    await runtime.asleep(100)
    assert runtime.monotonic() - before >= 100
    with pytest.raises(AttemptTimeout):
        async with runtime.within(100):
            await runtime.asleep(86_400 * 365)


@pytest.mark.parametrize(("factor", "error"), [(0.5, ValueError), (float("inf"), ValueError), ("60", TypeError)])
def test_a_factor_that_does_not_compress_is_refused(factor: float, error: type[Exception]) -> None:
    """Time cannot be stretched, stopped or skipped."""
    with pytest.raises(error, match="`factor`"):
        FastClock(factor)
