"""The service of the cohort engine: a response takes the time of its work, as in the exact engine."""

from itertools import product

import pytest

from forbear.core.backoff import Constant
from forbear.core.budget import TokenBucket
from forbear.core.limits import Limits
from forbear.policy import Policy
from forbear_simulate.analysis.recovery import recovery_time
from forbear_simulate.analysis.verdict import drop_triggers, try_trigger
from forbear_simulate.engines.cohort import simulate_cohort
from forbear_simulate.engines.exact import simulate_exact
from forbear_simulate.engines.response_bins import ResponseTimes
from forbear_simulate.scenario.budgets import ClientBudget
from forbear_simulate.scenario.scenario import Clients, Scenario, Server, Window
from forbear_testkit.rows import sampled

ONCE = Policy(OSError, Limits(attempts=1, timeout=None))
THREE = Policy(OSError, Limits(attempts=3, timeout=None), Constant(0))


@pytest.mark.parametrize("times", sampled(["constant", "exponential", "lognormal"], 1))
@pytest.mark.parametrize(("step", "think", "work"), [(1, 1, 1), (0.1, 1, 3), (0.1, 2, 0.01)])
def test_closed_clients_call_once_in_a_cycle(times: str, step: float, think: float, work: float) -> None:
    """N clients make N / (think + work) calls a second, whatever the step is."""
    clients = Clients("closed", count=1000, think_time=think, policy=ONCE)
    series = simulate_cohort(Scenario(40, step, clients, Server(workers=1000, time=work, times=times)))
    assert series.total("successes", 20) / 20 == pytest.approx(1000 / (think + work), rel=0.02)


@pytest.mark.parametrize("case", sampled(product(["exponential", "constant"], ["dropped", "done"]), 1))
def test_slow_work_outlasts_its_window(case: tuple[str, str]) -> None:
    """Work that began in a slow window takes its time, and its workers are busy until then.

    The engines are within a sixth of a second of each other, in which the service does 400 requests.
    """
    times, abandoned = case
    clients = Clients(rate=2000, attempt_timeout=4, policy=ONCE)
    server = Server(workers=1000, time=0.4, times=times, abandoned=abandoned)
    scenario = Scenario(14, 0.1, clients, server, (Window("slow", 2, 4, factor=6),))
    exact, cohort = simulate_exact(scenario), simulate_cohort(scenario)
    for start in range(0, 14, 2):
        for count in ("successes", "timeouts", "wasted"):
            expected = pytest.approx(exact.total(count, start, start + 2), abs=400)
            assert cohort.total(count, start, start + 2) == expected, (count, start)


def test_work_under_way_is_lost_in_a_drop_window_and_goes_on_in_a_hold() -> None:
    """A response that falls into a drop window never comes; a service that stands still ends what has begun."""
    for kind, lost in (("drop", 200.0), ("hold", 0.0)):
        clients = Clients("herd", count=200, attempt_timeout=5, policy=ONCE)
        server = Server(workers=200, time=1, times="constant")
        series = simulate_cohort(Scenario(10, 0.1, clients, server, (Window(kind, 0.5, 2),)))
        assert series.total("timeouts") == pytest.approx(lost, abs=1e-6)
        assert series.total("successes") == pytest.approx(200 - lost, abs=1e-6)


@pytest.mark.parametrize("work", sampled([0.1, 0.09, 0.11], 1))
def test_constant_work_as_long_as_the_step_keeps_no_fleet_down(work: float) -> None:
    """A load of 93 % and a shared bucket: the fleet recovers with both engines, at the same time, and in a verdict."""
    clients = Clients("regular", 28 / work, count=1, attempt_timeout=1.0, policy=THREE)
    server = Server(workers=30, time=work, times="constant")
    budget = ClientBudget(TokenBucket(100, 0.1), per="fleet")
    trigger = Window("slow", 20, 5, 5 / 3)
    scenario = Scenario(60, 0.1, clients, server, (trigger,), budget)
    exact, cohort = (
        recovery_time(scenario, simulate_exact(scenario)),
        recovery_time(scenario, simulate_cohort(scenario)),
    )
    assert cohort == pytest.approx(exact, rel=0.05)
    assert try_trigger(drop_triggers(scenario), trigger, 60).recovery == pytest.approx(exact, rel=0.05)


@pytest.mark.parametrize("kind", sampled(["refuse", "drop", "hold", "slow"], 1))
def test_a_rate_limit_is_refilled_in_a_window(kind: str) -> None:
    """A burst of 1000 that is spent before a window is there again after it, if nothing passes meanwhile."""
    server = Server(workers=1000, time=0.01, rate_limit=100.0, burst=1000)
    clients = Clients("regular", 200, attempt_timeout=1.0, policy=ONCE)
    scenario = Scenario(60, 0.1, clients, server, (Window(kind, 20, 20, factor=2),))
    exact, cohort = simulate_exact(scenario), simulate_cohort(scenario)
    assert cohort.total("successes", 42, 50) == pytest.approx(exact.total("successes", 42, 50), rel=0.02)


@pytest.mark.parametrize("step", [0.1, 1.0])
def test_a_herd_meets_the_places_and_the_tokens_of_one_moment(step: float) -> None:
    """Of 4000 calls at once, 300 get a worker, 500 a place and 1000 a token, however long the bin is."""
    clients = Clients("herd", count=4000, policy=ONCE)
    server = Server(workers=300, queue=500, time=0.3)
    assert simulate_cohort(Scenario(10, step, clients, server)).total("successes") == pytest.approx(800)
    limited = Server(workers=5000, time=0.1, rate_limit=250, burst=1000)
    assert simulate_cohort(Scenario(10, step, clients, limited)).total("successes") == pytest.approx(1000)


def test_endless_retries_end_at_the_timeout() -> None:
    """Waits that do not grow, and a timeout of 12 s: calls give up as in the exact engine."""
    policy = Policy(OSError, Limits(attempts=None, timeout=12, unlimited=True), Constant(0.5, spread=0.5))
    scenario = Scenario(24, 0.1, Clients(rate=100, policy=policy), windows=(Window("refuse", 0, 24),))
    exact, cohort = simulate_exact(scenario), simulate_cohort(scenario)
    for count in ("retries", "gave_up"):
        assert cohort.total(count) == pytest.approx(exact.total(count), rel=0.06), count


@pytest.mark.parametrize("times", ["constant", "exponential", "lognormal"])
@pytest.mark.parametrize("abandoned", ["done", "dropped"])
@pytest.mark.parametrize("wait", [None, 0, 3, 20, 800])
def test_every_request_leaves_its_worker(times: str, abandoned: str, wait: int | None) -> None:
    """Answers are as many as come in time, the others are wasted or dropped, and the mean of the work is exact."""
    bins = ResponseTimes(Server(time=0.25, times=times, abandoned=abandoned), 0.1).bins(wait, 2.0)
    assert bins.response.sum() == pytest.approx(bins.in_time)
    if abandoned == "done":
        assert bins.response.sum() + bins.wasted.sum() == pytest.approx(1)
        assert bins.busy.sum() == pytest.approx(5, rel=1e-3)  # 0.5 s of work are five bins
    else:
        assert not bins.wasted.any()
        assert bins.busy.sum() <= min(5, 5 if wait is None else wait / 8) * 1.001
