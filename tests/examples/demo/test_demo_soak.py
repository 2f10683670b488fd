"""Eight real processes share a bucket; half of them are killed, and the server stops and starts."""

import pytest

from examples.demo.shared import PROCESSES, share_a_budget
from examples.demo.shared_worker import CAPACITY, DEPOSIT


@pytest.mark.soak
def test_a_fleet_of_processes() -> None:
    """They get at most the bound, and at least 0.9 of what one bucket would grant that sees all their calls."""
    result = share_a_budget(calls=30_000, every=(4,))
    assert result.successes > 10_000
    assert result.processes == PROCESSES * 3 // 2
    # The window is all the time, so nothing was earned before it; the bucket began with a tenth, and again once.
    assert result.granted <= DEPOSIT * result.successes + result.processes + 2 * CAPACITY / 10
    assert result.granted >= 0.9 * result.unshared
