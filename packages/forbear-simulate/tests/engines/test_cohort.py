"""The cohort engine: it agrees with the exact engine on large fleets, and scales without cost."""

from dataclasses import replace
from math import exp, log
from typing import Any

import pytest

from forbear.core.backoff import Constant, Exponential
from forbear.core.budget import TokenBucket
from forbear.core.limits import Limits
from forbear.policy import Policy
from forbear_simulate.engines.cohort import simulate_cohort
from forbear_simulate.engines.exact import simulate_exact
from forbear_simulate.engines.response_bins import list_service_times
from forbear_simulate.scenario.budgets import ClientBudget
from forbear_simulate.scenario.fields import ScenarioError
from forbear_simulate.scenario.scenario import Clients, Layer, RateChange, Scenario, Server, Window
from forbear_testkit.rows import sampled

FIVE = Policy(OSError, Limits(attempts=5), Exponential())
CLAMPED = Policy(OSError, Limits(attempts=None, timeout=12, clamp=True), Exponential(1, 2, 8, "equal"))
TIMED = Policy(OSError, Limits(attempts=None, timeout=15), Exponential(0.5, 2, 8, "documented"))
APART = Policy(OSError, Limits(attempts=6), Exponential(0.5, 3, 8, "decorrelated"))
SERVER = Server(workers=30, time=0.1)
REFUSES = (Window("refuse", 10, 8),)

CASES: dict[str, tuple[Clients, Server, tuple[Window, ...]]] = {
    "failures": (Clients(rate=200, policy=FIVE), Server(workers=90, time=0.1, failure=0.4), ()),
    "an outage": (Clients(rate=200, policy=FIVE), Server(workers=90, time=0.1), REFUSES),
    "a timeout": (Clients(rate=200, policy=TIMED), Server(workers=90, time=0.1), (Window("refuse", 10, 25),)),
    "clamped": (Clients(rate=200, policy=CLAMPED), Server(workers=90, time=0.1), (Window("refuse", 10, 25),)),
    "overload": (Clients(rate=400, policy=FIVE), replace(SERVER, queue=100), ()),
    "timeouts, done": (Clients(rate=250, attempt_timeout=1, policy=FIVE), SERVER, (Window("slow", 10, 5, factor=4),)),
    "timeouts, dropped": (  # a large fleet: in a small one, chance decides how fast it recovers
        Clients(rate=4000, attempt_timeout=1, policy=FIVE),
        replace(SERVER, workers=480, abandoned="dropped"),
        (Window("slow", 10, 10, factor=4),),
    ),
    "hold": (Clients(rate=200, policy=FIVE), SERVER, (Window("hold", 10, 5),)),
    "drop": (Clients(rate=100, attempt_timeout=1.5, policy=FIVE), SERVER, (Window("drop", 10, 8),)),
    "short timeouts": (Clients(rate=100, attempt_timeout=0.15, policy=FIVE), SERVER, ()),
    "lognormal": (Clients(rate=100, attempt_timeout=0.2, policy=FIVE), replace(SERVER, times="lognormal"), ()),
    "closed": (Clients(arrivals="closed", count=400, think_time=2, policy=FIVE), SERVER, REFUSES),
    "closed, overload": (Clients(arrivals="closed", count=1500, think_time=2, policy=FIVE), SERVER, ()),
    "herd": (Clients(arrivals="herd", count=4000, policy=FIVE), replace(SERVER, queue=50), (Window("refuse", 0, 6),)),
    "ramp": (Clients(rate=50, changes=(RateChange(10, 450, 5),), policy=FIVE), replace(SERVER, queue=60), ()),
}


@pytest.mark.parametrize("name", sampled(CASES, 5))
def test_it_agrees_with_the_exact_engine(name: str) -> None:
    """Totals agree within 4 %, and sums of five seconds within 8 %, or 2 % of the total.

    Few calls may differ by five standard deviations.
    """
    clients, server, windows = CASES[name]
    short = clients.attempt_timeout is not None and clients.attempt_timeout < 0.5
    scenario = Scenario(40, 0.05 if short else 0.1, clients, server, windows)
    exact, cohort = simulate_exact(scenario, seed=3), simulate_cohort(scenario)
    for count in ("calls", "first_attempts", "retries", "successes", "refusals", "timeouts", "gave_up", "wasted"):
        total = exact.total(count)
        assert cohort.total(count) == pytest.approx(total, rel=0.04, abs=5 * max(total, 4) ** 0.5), count
        for start in range(0, 40, 5):
            part = exact.total(count, start, start + 5)
            expected = pytest.approx(part, rel=0.08, abs=max(5 * max(part, 4) ** 0.5, 0.02 * total))
            assert cohort.total(count, start, start + 5) == expected, (count, start)


@pytest.mark.parametrize("abandoned", ["done", "dropped"])
@pytest.mark.parametrize("kind", ["slow", "refuse", "drop", "hold"])
def test_every_call_is_somewhere(kind: str, abandoned: str) -> None:
    """Calls are neither lost nor made: each one is a success or given up, and each attempt has one end."""
    clients = Clients(rate=300, changes=(RateChange(20, 0),), attempt_timeout=1, policy=FIVE)
    server = replace(SERVER, queue=400, abandoned=abandoned, failure=0.05)
    series = simulate_cohort(Scenario(90, 0.1, clients, server, (Window(kind, 10, 8, factor=3),)))
    assert series.total("calls") == pytest.approx(300 * 20)
    assert series.total("successes") + series.total("gave_up") == pytest.approx(300 * 20, abs=0.01)
    attempts = series.total("first_attempts") + series.total("retries")
    ends = sum(series.total(end) for end in ("successes", "failures", "refusals", "timeouts"))
    assert ends == pytest.approx(attempts, abs=0.01)


def test_a_fleet_of_any_size_has_one_series() -> None:
    """A thousand times the clients and the workers: a thousand times the counts, bin by bin."""
    small = Scenario(30, 0.1, Clients(rate=100, attempt_timeout=2, policy=FIVE), Server(workers=12, time=0.1), REFUSES)
    large = replace(small, clients=replace(small.clients, rate=1e5), service=replace(small.service, workers=12_000))
    for count in ("retries", "successes", "timeouts", "gave_up"):
        scaled = [value * 1000 for value in getattr(simulate_cohort(small), count)]
        assert getattr(simulate_cohort(large), count) == pytest.approx(scaled, rel=1e-6, abs=1e-3)


def test_waits_with_a_memory_are_refused() -> None:
    """Decorrelated jitter gets one line with the cure, since its waits depend on each other."""
    with pytest.raises(ScenarioError, match=r"`clients.policy` must be .* got Exponential.*; choose another jitter"):
        simulate_cohort(Scenario(10, 0.1, Clients(policy=APART)))


def test_a_finer_step_tells_the_same() -> None:
    """Totals change by less than 2 % between steps of 0.1 s and 0.05 s."""
    clients, server, windows = CASES["timeouts, done"]
    coarse, fine = (simulate_cohort(Scenario(30, step, clients, server, windows)) for step in (0.1, 0.05))
    for count in ("retries", "successes", "timeouts", "wasted"):
        assert coarse.total(count) == pytest.approx(fine.total(count), rel=0.02)


def test_attempts_per_call_without_chance() -> None:
    """(1 - p^k)/(1 - p) attempts a call, exactly."""
    policy = Policy(OSError, Limits(attempts=4, timeout=None), Constant(0.3))
    clients = Clients(rate=100, changes=(RateChange(10, 0),), policy=policy)
    series = simulate_cohort(Scenario(20, 0.1, clients, Server(workers=1000, failure=0.3)))
    assert series.amplification == pytest.approx((1 - 0.3**4) / 0.7)
    assert series.total("gave_up") == pytest.approx(1000 * 0.3**4)


def test_a_shared_bucket_in_the_mean() -> None:
    """A bucket that the fleet shares grants as many retries in both engines, within 4 %."""
    scenario = Scenario(40, 0.1, Clients(rate=300, policy=FIVE), Server(workers=60, time=0.1, failure=0.1), REFUSES)
    shared = replace(scenario, budget=ClientBudget(TokenBucket(200, 0.05), "fleet"))
    exact, cohort = simulate_exact(shared, seed=3), simulate_cohort(shared)
    free = simulate_cohort(scenario)
    for count in ("retries", "budget_refusals", "gave_up"):
        assert cohort.total(count) == pytest.approx(exact.total(count), rel=0.04)
    assert cohort.total("retries") < free.total("retries") / 5


@pytest.mark.parametrize(
    ("times", "median"), [("exponential", 0.2 * log(2)), ("constant", 0.2), ("lognormal", 0.2 * exp(-0.5))]
)
def test_service_times(times: str, median: float) -> None:
    """The mean is exact, and the median follows from the distribution."""
    values = list_service_times(Server(time=0.2, times=times))
    assert values == sorted(values)
    assert sum(values) / len(values) == pytest.approx(0.2)
    assert values[len(values) // 2] == pytest.approx(median, rel=0.01)


def test_a_rate_limit_in_a_drop_window() -> None:
    """Requests that get no response get no throttling error either."""
    server = Server(workers=90, time=0.1, rate_limit=100)
    scenario = Scenario(10, 0.1, Clients(rate=200, attempt_timeout=1, policy=FIVE), server, (Window("drop", 0, 10),))
    for series in (simulate_exact(scenario, seed=3), simulate_cohort(scenario)):
        assert series.total("refusals") == 0
        assert series.total("timeouts") > 1500


@pytest.mark.parametrize("retry_after", [None, 3, 14])
@pytest.mark.parametrize("policy", [FIVE, TIMED, CLAMPED], ids=["attempts", "timeout", "clamped"])
def test_a_rate_limit(policy: Policy, retry_after: float | None) -> None:
    """A service that takes 150 of 200 requests a second refuses the rest; a Retry-After puts off the retries.

    By chance the excess of 50 a second differs by 5 %.
    """
    server = Server(workers=90, time=0.1, rate_limit=150, burst=30, retry_after=retry_after)
    scenario = Scenario(30, 0.1, Clients(rate=200, policy=policy), server)
    exact, cohort = simulate_exact(scenario, seed=3), simulate_cohort(scenario)
    for count in ("retries", "successes", "refusals", "gave_up"):
        assert cohort.total(count) == pytest.approx(exact.total(count), rel=0.08, abs=60), count


@pytest.mark.parametrize(
    ("change", "key"),
    [({"layers": (Layer(FIVE),)}, "layers")],
)
def test_what_has_no_mean_names_the_exact_engine(change: dict[str, Any], key: str) -> None:
    """Layers are for the exact engine, which the error names."""
    with pytest.raises(ScenarioError, match=rf"^`{key}` must be .* in the cohort engine.*; choose the exact engine"):
        simulate_cohort(replace(Scenario(10), **change))
