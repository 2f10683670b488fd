"""Phase maps: the boundary of stability is where load times attempts is the capacity."""

from dataclasses import replace

import pytest

from forbear.core.backoff import Constant
from forbear.core.limits import Limits
from forbear.policy import Policy
from forbear_simulate.analysis.phase import phase_map
from forbear_simulate.scenario.fields import ScenarioError
from forbear_simulate.scenario.scenario import Clients, Scenario, Server

TWO = Policy(OSError, Limits(attempts=2), Constant(0.5))
CLIENTS = Clients(rate=200, attempt_timeout=1, policy=TWO)
SERVICE = Scenario(40, 0.2, CLIENTS, Server(workers=30, time=0.1))


def test_triggers_by_size_and_length() -> None:
    """A trigger that leaves enough capacity is none; larger and longer ones keep the goodput down."""
    done: list[int] = []
    plane = phase_map(SERVICE, (0.2, 0.5, 1.0), (1.0, 5.0), progress=lambda count, _: done.append(count))
    assert done == [1, 2, 3, 4, 5, 6]
    assert (plane.load, plane.capacity, plane.attempts, plane.worst_load) == (200, 300, 2, 400)
    assert plane.overload == pytest.approx(1 / 3)
    assert plane.boundary is None
    assert list(plane.recovery[0]) == [0, 0]
    assert not plane.stays(0.5, 1.0)
    assert plane.stays(1.0, 5.0)
    for row in plane.recovery:
        assert row[0] <= row[1]
    for small, large in zip(plane.recovery, plane.recovery[1:], strict=False):
        assert all(a <= b for a, b in zip(small, large, strict=True))
    safe = phase_map(replace(SERVICE, clients=replace(CLIENTS, rate=100)), (1.0,), (5.0,))
    assert safe.boundary == pytest.approx(1 / 3)
    assert not safe.stays(1.0, 5.0)


@pytest.mark.parametrize("size", [0, 1.1])
def test_impossible_sizes(size: float) -> None:
    """A size is a share of the capacity."""
    with pytest.raises(ScenarioError, match=rf"^`sizes` must be shares of the capacity .*, got {size}; write 0.5"):
        phase_map(SERVICE, (size,), (1.0,))
