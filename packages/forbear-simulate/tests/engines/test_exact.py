"""The exact engine: windows, timeouts, abandoned work, budgets and seeds, in cases that can be counted by hand."""

import subprocess
import sys

import pytest

from forbear.core.backoff import Constant, Exponential
from forbear.core.budget import Ratio, TokenBucket
from forbear.core.limits import Limits
from forbear.policy import Policy
from forbear_simulate.engines.exact import simulate_exact
from forbear_simulate.scenario.budgets import ClientBudget, Throttling
from forbear_simulate.scenario.scenario import Clients, RateChange, Scenario, Server, Window

ONCE = Policy(OSError, Limits(attempts=1))


def regular(rate: float = 50, **changes: object) -> Clients:
    """Clients whose calls begin at equal distances, the first at 0."""
    return Clients(**{"arrivals": "regular", "rate": rate, "policy": ONCE} | changes)  # type: ignore[arg-type]


def constant(**changes: object) -> Server:
    """One worker that serves 100 requests a second."""
    return Server(**{"workers": 1, "time": 0.01, "times": "constant"} | changes)  # type: ignore[arg-type]


def test_a_seed_decides_all() -> None:
    """The same seed gives the same series, another one another; a policy does not change the arrivals."""
    scenario = Scenario(20, 0.1, Clients(rate=90), Server(failure=0.3))
    first, same, other = (simulate_exact(scenario, seed=seed) for seed in (1, 1, 2))
    assert first == same
    assert first != other
    once = simulate_exact(Scenario(20, 0.1, Clients(rate=90, policy=ONCE), Server(failure=0.3)), seed=1)
    assert once.calls == first.calls
    assert once.retries != first.retries


def test_a_backlog_drains_at_the_spare_capacity() -> None:
    """A service that holds for T seconds needs lambda T/(mu - lambda) to drain: 10 s at half load, 2.5 s at a fifth."""
    for rate, drain in ((50.0, 10.0), (20.0, 2.5)):
        windows = (Window("hold", 10, 10),)
        series = simulate_exact(Scenario(60, 0.1, regular(rate), constant(), windows))
        assert max(series.queued) == pytest.approx(10 * rate, rel=0.02)
        busy = [i * 0.1 for i, queued in enumerate(series.queued) if queued > 0.5]
        assert busy[0] == pytest.approx(10, abs=0.11)
        assert busy[-1] == pytest.approx(20 + drain, abs=0.25)
        assert series.total("gave_up") == 0


def test_slow_windows_and_the_queue_bound() -> None:
    """Three times slower, the service does 33 a second of 50, keeps 20 and refuses the rest."""
    windows = (Window("slow", 10, 30, factor=3),)
    series = simulate_exact(Scenario(60, 1, regular(), constant(queue=20), windows))
    assert series.mean("successes", 20, 40) == pytest.approx(100 / 3, rel=0.02)
    assert series.mean("refusals", 20, 40) == pytest.approx(50 / 3, rel=0.04)
    assert series.mean("queued", 20, 40) == pytest.approx(20, rel=0.03)
    assert series.mean("successes", 45) == 50


def test_an_outage_that_refuses() -> None:
    """Each call of an outage fails at once, and is given up after its attempts."""
    policy = Policy(OSError, Limits(attempts=3), Constant(0.5))
    series = simulate_exact(Scenario(40, 1, regular(policy=policy), constant(), (Window("refuse", 10, 10),)))
    assert series.total("refusals") == 50 * 3 * 9 + 25 * 2 + 25  # the last attempts of the last second succeed
    assert series.total("gave_up") == 50 * 9
    assert series.total("successes") + series.total("gave_up") == series.total("calls") == 2000


@pytest.mark.parametrize(("abandoned", "wasted"), [("done", 1), ("dropped", 0)])
def test_attempt_timeouts(abandoned: str, wasted: int) -> None:
    """A herd of ten meets one slow worker: after 2.5 s three have a response or none, and the rest gave up.

    Their requests are still done, or dropped: the worker then stops at once.
    """
    clients = Clients(arrivals="herd", count=10, attempt_timeout=2.5, policy=ONCE)
    series = simulate_exact(Scenario(20, 1, clients, constant(time=1.0, abandoned=abandoned)))
    assert series.delays == [1.0, 2.0]
    assert series.timeouts[2] == series.gave_up[2] == 8
    assert series.total("wasted") == 8 * wasted
    assert series.total("in_system", 3) == pytest.approx(28 * wasted)


def test_dropped_requests_get_no_response() -> None:
    """In a window that drops, every attempt ends with its timeout, and so does work that was under way."""
    clients = regular(10, attempt_timeout=1.5)
    series = simulate_exact(Scenario(30, 0.5, clients, constant(), (Window("drop", 10.005, 5),)))
    assert series.total("timeouts") == 50 + 1  # the one from 10.00 s, too
    assert series.total("timeouts", 0, 11) == 0
    assert series.total("timeouts", 11.5, 17) == 51


def test_the_attempt_timeout_ends_with_the_timeout() -> None:
    """An attempt is cut to what is left of the run's timeout, but the final one of `clamp` is not."""
    window = (Window("drop", 0, 60),)
    for clamp, sent, end in ((False, 2, 5.0), (True, 2, 5.0)):
        policy = Policy(OSError, Limits(9, 5, clamp), Constant(1))
        clients = Clients(arrivals="herd", count=1, attempt_timeout=3, policy=policy)
        series = simulate_exact(Scenario(60, 0.5, clients, constant(), window))
        assert series.total("retries") + 1 == sent
        assert series.gave_up.index(1) == end / 0.5
    policy = Policy(OSError, Limits(9, 3.5, clamp=True), Constant(1))
    clients = Clients(arrivals="herd", count=1, attempt_timeout=3, policy=policy)
    series = simulate_exact(Scenario(60, 0.5, clients, constant(), window))
    assert series.gave_up.index(1) == 6.5 / 0.5  # it starts at the deadline of 3.5 s and has its 3 s


def test_clamped_waits_end_at_the_deadline() -> None:
    """A deadline that float rounding moves by less than a microsecond is met once, not in ever shorter waits."""
    policy = Policy(OSError, Limits(attempts=None, timeout=12, clamp=True), Exponential(1, 2, 8, "equal"))
    series = simulate_exact(Scenario(40, 1, regular(policy=policy), constant(), (Window("refuse", 0, 60),)), seed=3)
    assert series.total("gave_up", 12, 40) == 50 * 28
    assert 4 < series.amplification < 6


def test_the_exact_engine_loads_no_numpy() -> None:
    """Scenarios and the exact engine are quick to import; numpy is for cohorts."""
    modules = "sys, forbear_simulate.engines.exact, forbear_simulate.scenario.reading"
    script = f"import {modules}; sys.exit('numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0


def test_a_herd_returns_by_the_backoff() -> None:
    """A herd's attempts in an outage stand where the waits put them: at 0, 1, 3 and 7 s without jitter."""
    policy = Policy(OSError, Limits(4), Exponential(jitter="none"))
    clients = Clients(arrivals="herd", count=100, policy=policy)
    series = simulate_exact(Scenario(10, 1, clients, constant(), (Window("refuse", 0, 60),)))
    assert series.first_attempts == [100, *[0] * 9]
    assert series.retries == [0, 100, 0, 100, 0, 0, 0, 100, 0, 0]
    assert series.amplification == 4


def test_steps_ramps_and_spikes() -> None:
    """The rate follows its changes: a step to 30, a ramp to 10 over ten seconds, and a stop."""
    changes = (RateChange(10, 30), RateChange(20, 10, 10), RateChange(40, 0))
    series = simulate_exact(Scenario(60, 10, regular(20, changes=changes), constant()))
    assert series.calls == [pytest.approx(value, abs=1) for value in (200, 300, 200, 100, 0, 0)]
    poisson = simulate_exact(Scenario(60, 10, Clients(rate=500, changes=changes), Server(workers=1000)))
    assert poisson.calls == [pytest.approx(value, rel=0.2) for value in (5000, 300, 200, 100)] + [0, 0]


@pytest.mark.parametrize(("per", "granted"), [("client", 8 * 5), ("process", 2 * 5), ("fleet", 5)])
def test_budgets_of_clients_processes_and_a_fleet(per: str, granted: int) -> None:
    """In an outage a bucket of five grants five retries to each client, each process, or the whole fleet."""
    policy = Policy(OSError, Limits(20), Constant(0.1))
    herd, budget = Clients(arrivals="herd", count=8, policy=policy), ClientBudget(TokenBucket(5, 0.1), per, clients=4)
    series = simulate_exact(Scenario(30, 1, herd, constant(), (Window("refuse", 0, 60),), budget))
    assert series.total("retries") == granted
    assert series.total("budget_refusals") == series.total("gave_up") == 8


def test_a_success_pays_the_budget() -> None:
    """With a deposit of half a token, successes of 20 s at 50 a second fill the bucket of ten again."""
    policy = Policy(OSError, Limits(2), Constant(0.1))
    windows = (Window("refuse", 0, 5), Window("refuse", 25, 5))
    budget = ClientBudget(TokenBucket(10, 0.5), "fleet")
    series = simulate_exact(Scenario(40, 1, regular(policy=policy), constant(), windows, budget))
    assert series.total("retries", 0, 5) == 10
    assert series.total("retries", 25, 30) == 10


def test_the_budget_of_a_scenario_sees_timeouts() -> None:
    """The older quota of the AWS SDKs: 100 retries after refusals in an outage, 50 after timeouts."""
    policy = Policy(OSError, Limits(200, None), Constant(0.1))
    budget = ClientBudget(TokenBucket(500, 1, 5, refund=True, timeout_cost=10))
    for kind, granted in (("refuse", 100), ("drop", 50)):
        clients = Clients(arrivals="herd", count=1, attempt_timeout=1, policy=policy)
        series = simulate_exact(Scenario(120, 1, clients, constant(), (Window(kind, 0, 120),), budget))
        assert series.total("retries") == granted


def test_a_rate_limit_and_its_retry_after() -> None:
    """The limit lets its burst and its rate through, and `decide` waits for as long as the response says."""
    server = Server(workers=1000, rate_limit=20, burst=30)
    series = simulate_exact(Scenario(20, 1, regular(50), server))
    assert series.total("successes") == pytest.approx(20 * 20 + 30, abs=2)
    assert series.total("gave_up") == series.total("refusals") == pytest.approx(570, abs=2)
    policy = Policy(OSError, Limits(9, 600), Constant(0.1))
    herd = Clients(arrivals="herd", count=100, policy=policy)
    server = Server(workers=1000, rate_limit=10, burst=10, retry_after=5)
    series = simulate_exact(Scenario(60, 1, herd, server))
    assert series.retries[1:5] == [0] * 4  # at least the 5 s that the server asks for, and up to 1 s of jitter
    assert series.total("retries", 5, 6) == 90
    short = Clients(arrivals="herd", count=100, policy=Policy(OSError, Limits(9, 4), Constant(0.1)))
    assert simulate_exact(Scenario(60, 1, short, server)).total("gave_up", 0, 1) == 90


def test_the_client_throttle_gates_first_attempts() -> None:
    """In an outage that halves the accepts, a throttle sends what the formula says: k times the accepts in the end."""
    clients = Clients(rate=200, count=1, policy=ONCE)
    server = Server(workers=1000, rate_limit=20, burst=40)
    series = simulate_exact(Scenario(120, 1, clients, server, throttle=Throttling(k=2, window=10, per="fleet")))
    sent, accepted = series.mean("first_attempts", 60), series.mean("successes", 60)
    assert accepted == pytest.approx(20, rel=0.05)
    assert sent == pytest.approx(2 * accepted, rel=0.1)
    assert series.total("gave_up", 60) == pytest.approx(
        series.total("refusals", 60) + series.total("budget_refusals", 60)
    )


def test_a_budget_and_a_throttle_gate_together() -> None:
    """With both, there are no more retries than with either, and first attempts are refused by the throttle."""
    server = Server(workers=1000, failure=0.5)
    scenario = Scenario(60, 1, Clients(rate=100, count=1), server, budget=ClientBudget(Ratio(0.5)))
    throttled = Scenario(60, 1, Clients(rate=100, count=1), server, throttle=Throttling(1.5, 5))
    both = Scenario(60, 1, Clients(rate=100, count=1), server, (), scenario.budget, throttled.throttle)
    retries = [simulate_exact(case, seed=2).total("retries") for case in (scenario, throttled, both)]
    assert 0 < retries[2] <= min(retries[:2])
    assert simulate_exact(both, seed=2).total("first_attempts") < 0.9 * simulate_exact(both, seed=2).total("calls")
