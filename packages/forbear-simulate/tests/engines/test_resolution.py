"""The bins of the cohort engine: a step that is too coarse for a scenario is divided, and the result keeps it."""

from dataclasses import replace
from typing import Any

import pytest

from forbear.core.backoff import Constant, Exponential
from forbear.core.budget import Ratio, TokenBucket
from forbear.core.limits import Limits
from forbear.policy import Policy
from forbear_simulate.analysis.recovery import drain_time
from forbear_simulate.engines.cohort import simulate_cohort
from forbear_simulate.engines.resolution import step_parts
from forbear_simulate.engines.waits import wait_table
from forbear_simulate.scenario.budgets import ClientBudget, Throttling
from forbear_simulate.scenario.fields import ScenarioError
from forbear_simulate.scenario.scenario import Clients, Scenario, Server, Window
from forbear_testkit.rows import sampled

ENDLESS = Limits(attempts=None, timeout=None, unlimited=True)


def parts(step: float, duration: float = 600, limits: Limits | None = None, backoff: Any = None, **fields: Any) -> int:
    """Return the parts of a step of a scenario with these fields; those of its clients are in `clients`."""
    policy = Policy(OSError, limits or Limits(attempts=3, timeout=None), backoff or Exponential())
    clients = Clients(policy=policy, **fields.pop("clients", {}))
    table = wait_table(policy.limits, policy.backoff)
    return step_parts(Scenario(duration, step, clients, **fields), table)


@pytest.mark.parametrize(
    ("step", "fields", "expected"),
    [
        (0.1, {}, 1),
        (10, {}, 1),
        (0.1, {"clients": {"attempt_timeout": 1}}, 1),
        (0.5, {"clients": {"attempt_timeout": 1}}, 5),
        (0.1, {"clients": {"attempt_timeout": 0.95}}, 2),  # 9.5 steps
        (0.1, {"clients": {"attempt_timeout": 10.01}}, 1),  # within 5 %
        (
            0.1,
            {"clients": {"attempt_timeout": 1}, "service": Server(time=0.1, times="constant", abandoned="dropped")},
            4,
        ),
        (
            0.1,
            {"clients": {"attempt_timeout": 1}, "service": Server(time=1e-4, times="constant", abandoned="dropped")},
            40,
        ),
        (0.1, {"clients": {"attempt_timeout": 1}, "service": Server(time=0.1, abandoned="dropped")}, 1),
        (0.5, {"clients": {"arrivals": "closed", "think_time": 1}}, 5),
        (0.5, {"clients": {"arrivals": "closed", "think_time": 10}}, 1),
        (1, {"backoff": Exponential(1, 2, 32, "documented")}, 10),  # a second of jitter is all that keeps waves apart
        (1, {"backoff": Exponential(1, 2, 32, "full")}, 1),
        (1, {"backoff": Constant(1)}, 1),
        (1, {"backoff": Constant(1, spread=0.0001)}, 1),  # no jitter to speak of
        (1, {"backoff": Constant(1), "limits": ENDLESS}, 4),
        (1, {"backoff": Constant(0), "limits": ENDLESS}, 1),
        (1, {"limits": Limits(attempts=3, timeout=4)}, 5),
        (1, {"windows": (Window("refuse", 10, 2),)}, 1),
        (1, {"windows": (Window("refuse", 10.5, 2),)}, 10),
        (1, {"windows": (Window("refuse", 10, 2.5),)}, 8),
        (2, {"budget": ClientBudget(Ratio(0.1, window=10))}, 2),
        (2, {"budget": ClientBudget(TokenBucket())}, 1),
        (2, {"throttle": Throttling(window=5)}, 4),
    ],
)
def test_parts_of_a_step(step: float, fields: dict[str, Any], expected: int) -> None:
    """A time that decides about the time series has several bins; other times do not matter."""
    assert parts(step, **fields) == expected


def test_too_many_bins_are_refused() -> None:
    """The error says how long a scenario with so short a time may be; without a division any number will do."""
    with pytest.raises(
        ScenarioError, match=r"^`duration` must be at most 500 s in the cohort engine .*, got 600; choose"
    ):
        parts(0.1, clients={"attempt_timeout": 0.01})
    assert parts(0.001, duration=900) == 1


@pytest.mark.parametrize("step", sampled([1.0, 0.3], 1))
def test_waves_of_the_documented_formula_do_not_depend_on_the_step(step: float) -> None:
    """300 clients fail at once, for 60 s, before a service of 20 a second: drain and counts are the same."""
    policy = Policy(OSError, ENDLESS, Exponential(1, 2, 32, "documented"))
    server = Server(workers=2, queue=0, time=0.1, times="constant")
    clients = Clients("herd", count=300, policy=policy)
    fine = Scenario(250, 0.1, clients, server, (Window("refuse", 0, 60),))
    coarse = replace(fine, step=step)
    one, other = simulate_cohort(fine), simulate_cohort(coarse)
    assert drain_time(coarse, other) == pytest.approx(drain_time(fine, one), rel=0.02)
    assert len(other.successes) == len(other.queued) == coarse.bins
    for count in ("retries", "successes", "refusals"):
        assert other.total(count) == pytest.approx(one.total(count), rel=0.02)
    assert other.mean("in_system", 60, 240) == pytest.approx(one.mean("in_system", 60, 240), rel=0.05)


def test_a_coarse_step_does_not_shorten_the_attempt_timeout() -> None:
    """A timeout of 500 ms in two steps of 200 ms would keep no fleet down; each step has parts instead."""
    policy = Policy(OSError, Limits(attempts=5, timeout=None), Exponential(0.1, 2, 1))
    clients = Clients(rate=90, attempt_timeout=0.5, policy=policy)
    scenario = Scenario(60, 0.1, clients, Server(workers=10, time=0.1), (Window("hold", 10, 5),))
    fine, coarse = simulate_cohort(scenario), simulate_cohort(replace(scenario, step=0.2))
    assert coarse.total("timeouts") == pytest.approx(fine.total("timeouts"), rel=0.02)
    assert fine.total("successes", 40) < 100
    assert coarse.total("successes", 40) < 100
