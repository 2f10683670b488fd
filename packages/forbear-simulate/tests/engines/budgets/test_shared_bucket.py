"""A simulated `SharedBudget` beside the real one: the same processes on a real Valkey, in virtual time."""

from collections.abc import Generator
from dataclasses import replace
from itertools import count
from random import Random
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

import forbear
from forbear.core.budget import MICRO, micro
from forbear.core.verdict import TRANSIENT
from forbear.testing.virtual_clock import virtual_time
from forbear_simulate import ClientBudget, Clients, Scenario, Server, Throttling, Window, simulate
from forbear_simulate.engines.budgets.rules import make_exact_budgets, simulate_rule
from forbear_simulate.engines.budgets.shared_bucket import SharedBudgets
from forbear_simulate.scenario.budgets import SharedBucket
from forbear_testkit.shared_budget.fleet import Fleet, retried, running_server
from forbear_testkit.shared_budget.fleet import Server as Valkey

OUTAGE = 4.0
_names = count()


@pytest.fixture(scope="module")
def valkey() -> Generator[Valkey]:
    """Run one server for all tests of this module."""
    with running_server() as running:
        yield running


class Case(NamedTuple):
    """A fleet with so many `processes` and calls per second: `healthy` seconds with some failures, then an outage."""

    healthy: float
    failure: float = 0.0
    outage: float = OUTAGE
    processes: int = 20
    rate: float = 500.0
    capacity: float = 100


CASES = {
    "a cold start": Case(0),
    "own tokens and half a bucket": Case(0.75),
    "a window of healthy seconds": Case(8),
    "many failures": Case(8, failure=0.3, outage=0),
    "many processes with few calls": Case(20, processes=100, rate=50),
}
MORE = {
    "some healthy seconds": Case(3),
    "a quiet half minute": Case(30),
    "many processes with many calls": Case(10, processes=200, rate=1500, capacity=300),
    "a few failures": Case(20, failure=0.05, outage=0),
    "failures, then an outage": Case(10, failure=0.15),
}
LONG = [pytest.param(case, id=name, marks=pytest.mark.soak) for name, case in MORE.items()]


def real(valkey: Valkey, case: Case, seed: int) -> int:
    """Return how many retries real processes get; the calls come to them by chance, as in a simulation."""
    dice, granted = Random(seed), 0
    with virtual_time(seed=seed) as clock:
        fleet = Fleet(valkey, f"simulated{next(_names)}", capacity=case.capacity)
        shares = [fleet.make() for _ in range(case.processes)]
        while clock.elapsed < case.healthy + case.outage:
            clock.advance(1 / case.rate)
            share = shares[int(dice.random() * case.processes)]
            out = clock.elapsed >= case.healthy
            if not out and dice.random() >= case.failure:
                share.put()
            elif retried(share):
                granted += 1
                if not out and dice.random() >= case.failure:
                    share.put()
    return granted


def scenario(case: Case) -> Scenario:
    """Return the same fleet as a scenario."""
    policy = forbear.retry(OSError, attempts=2, timeout=None, backoff=forbear.Constant(0.02))
    budget = forbear.budgets.SharedBudget("redis://127.0.0.1:1", "x", capacity=case.capacity)
    return Scenario(
        case.healthy + case.outage,
        0.1,
        Clients("regular", case.rate, count=case.processes, policy=policy),
        Server(workers=1000, time=0.001, failure=case.failure),
        (Window("refuse", case.healthy, case.outage),) if case.outage else (),
        ClientBudget(budget, per="fleet"),
    )


@pytest.mark.parametrize("case", [*(pytest.param(case, id=name) for name, case in CASES.items()), *LONG])
def test_as_many_retries_as_on_a_real_server(valkey: Valkey, case: Case) -> None:
    """Both engines grant within 5 % of what the real fleet gets."""
    runs = 2
    got = sum(real(valkey, case, seed) for seed in range(runs)) / runs
    for engine in ("exact", "cohort"):
        outcome = simulate(scenario(case), engine=engine, runs=runs if engine == "exact" else 1, workers=1)
        assert sum(outcome.bins["retries"]) == pytest.approx(got, rel=0.05), engine


_dice = Random(1)


@pytest.mark.parametrize(
    ("order", "least", "most"),
    [
        pytest.param([number % 20 for number in range(4500)], 139, 139, id="in turn"),
        pytest.param([_dice.randrange(20) for _ in range(4500)], 165, 200, id="by chance"),
        pytest.param([number // 10 % 20 for number in range(4500)], 230, 290, id="ten calls in a row"),
    ],
)
def test_the_order_of_the_processes_decides_what_is_granted(
    valkey: Valkey, order: list[int], least: int, most: int
) -> None:
    """In step, every process pays its surplus into a bucket that is full: what overflows is lost, really and simulated.

    The simulation grants what the real fleet gets if the calls come to the same processes. Its own come by chance.
    """
    simulated, granted = SharedBudgets(SharedBucket(), 1), [0, 0]
    simulated._dice = Random(0)
    with virtual_time(0) as clock:
        fleet = Fleet(valkey, f"order{next(_names)}", capacity=100)
        shares = [fleet.make() for _ in range(20)]
        for number, process in enumerate(order):
            clock.advance(1 / 500)
            now = clock.elapsed
            if number < 4000:
                shares[process].put()
                simulated.succeeded(process, now, 0)
            else:
                granted[0] += retried(shares[process])
                granted[1] += simulated.take(process, now, TRANSIENT) is not None
    assert granted[0] == granted[1]
    assert least <= granted[0] <= most


@given(
    processes=st.integers(1, 4),
    capacity=st.sampled_from([1, 3.5, 10, 40]),
    steps=st.lists(
        st.tuples(st.sampled_from([0, 1, 9, 40]), st.booleans(), st.integers(0, 3), st.sampled_from([0, 0.01, 1, 9])),
        max_size=40,
    ),
    seed=st.integers(0, 100),
)
def test_every_decision_is_that_of_a_real_process(
    valkey: Valkey, processes: int, capacity: float, steps: list[tuple[int, bool, int, float]], seed: int
) -> None:
    """With the same lots, each retry is granted or refused alike, and the bucket has as many tokens."""
    simulated = SharedBudgets(SharedBucket(capacity, 0.1, 5), 2)
    simulated._dice = Random(seed)
    with virtual_time(seed) as clock:
        fleet = Fleet(valkey, f"step{next(_names)}", capacity=capacity)
        shares = [fleet.make() for _ in range(processes)]
        for successes, fails, number, seconds in steps:
            clock.advance(seconds)
            now, index = clock.elapsed, number % processes
            for _ in range(successes):
                shares[index].put()
                simulated.succeeded(2 * index, now, 0)
            if fails:
                assert simulated.take(2 * index + 1, now, TRANSIENT) == (MICRO if retried(shares[index]) else None)
            assert simulated.level(processes) == fleet.level() / micro(capacity)


def test_the_bucket_is_shown_and_the_processes_are_the_clients() -> None:
    """A new bucket is a tenth full, and fills; with ten clients in a process there are fewer own tokens."""
    case = Case(8)
    fleet = scenario(case)
    few = replace(fleet, budget=ClientBudget(SharedBucket(), per="process", clients=10))
    for engine in ("exact", "cohort"):
        series = simulate(fleet, engine=engine, workers=1)
        levels = series.bins["budget_level"]
        assert levels[0] == pytest.approx(0.1)
        assert levels[70] > 0.9
        assert levels[-1] < 0.1
        assert sum(simulate(few, engine=engine, workers=1).bins["retries"]) < sum(series.bins["retries"]) - 15


def test_another_seed_draws_other_lots() -> None:
    """When surplus is paid in is chance, which the seed of the simulation decides."""
    fleet = replace(scenario(Case(3)), throttle=Throttling())
    budget = fleet.budget
    assert budget is not None
    first, again, other = (make_exact_budgets(budget, 20, seed) for seed in (1, 1, 2))
    levels: list[list[float | None]] = []
    for budgets in (first, again, other):
        for number in range(1500):
            budgets.succeeded(number % 20, number / 500, 0)
        levels.append([budgets.level(20)])
    assert levels[0] == levels[1] != levels[2]
    assert sum(simulate(fleet, engine="exact", workers=1).bins["retries"]) > 0


def test_the_mean_of_no_retries_is_none() -> None:
    """Nothing is granted without a request, and own tokens need no bucket."""
    mean = simulate_rule(SharedBucket()).make_mean(10, rate=1, step=0.1)
    assert mean.grant(0, 0) == 0
    mean.succeeded(0, 1000, 0)
    assert mean.grant(0, 0.01) == pytest.approx(0.01)
