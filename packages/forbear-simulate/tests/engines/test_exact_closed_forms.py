"""The exact engine against the closed forms of queueing theory, each within the error that stands beside it.

Runs are seeded, so a result is the same each time. The errors are about three standard errors of the run.
"""

from math import exp, factorial

import pytest

from forbear.core.backoff import Constant
from forbear.core.limits import Limits
from forbear.policy import Policy
from forbear_simulate.engines.exact import simulate_exact
from forbear_simulate.engines.time_series import TimeSeries
from forbear_simulate.scenario.scenario import Clients, Scenario, Server

ONCE = Policy(OSError, Limits(attempts=1))
WARM_UP = 20
SOAK = pytest.mark.soak
LOGNORMAL = pytest.param("lognormal", 0.5, exp(0.25), marks=SOAK)


def run(service: Server, rate: float, *, duration: float = 400, policy: Policy = ONCE) -> TimeSeries:
    """The time series of Poisson calls at `rate` per second, without retries unless the policy has them."""
    clients = Clients(rate=rate, policy=policy)
    return simulate_exact(Scenario(duration=duration, step=1, clients=clients, service=service), seed=1)


def states(rate: float, server: Server, queue: int = 2000) -> list[float]:
    """The probabilities of n requests in the system, of a birth-death chain with `queue` places to wait."""
    weights = [1.0]
    for n in range(1, server.workers + queue + 1):
        weights.append(weights[-1] * rate * server.time / min(n, server.workers))
    total = sum(weights)
    return [weight / total for weight in weights]


def mean(probabilities: list[float], busy: int = 0) -> float:
    """The mean number in the system, or beyond `busy`."""
    return sum(max(n - busy, 0) * p for n, p in enumerate(probabilities))


@pytest.mark.parametrize(("p", "k", "error"), [(0.1, 3, 0.01), (0.5, 5, 0.02), (0.9, 10, 0.02), (1.0, 4, 0.002)])
def test_attempts_per_call(p: float, k: int, error: float) -> None:
    """With failures of probability p and k attempts: (1 - p^k)/(1 - p) attempts a call, and a share p^k given up.

    At p = 1, only the calls under way at the end have fewer than k attempts.
    """
    policy = Policy(OSError, Limits(attempts=k, timeout=None), Constant(0))
    series = run(Server(workers=1000, time=0.001, failure=p), 40, duration=60, policy=policy)
    assert series.amplification == pytest.approx(k if p == 1 else (1 - p**k) / (1 - p), rel=error)
    gave_up = series.total("gave_up") / series.total("calls")
    assert gave_up == pytest.approx(p**k, abs=0.02)


@pytest.mark.parametrize("rho", [pytest.param(0.3, marks=SOAK), 0.6])
def test_m_m_1(rho: float) -> None:
    """One worker: rho/(1 - rho) in the system within 5 %, and exponential times to success of mean 1/(mu - lambda)."""
    series = run(Server(workers=1, time=0.01), 100 * rho)
    assert series.mean("in_system", WARM_UP) == pytest.approx(rho / (1 - rho), rel=0.05)
    times = 1 / (100 - 100 * rho)
    assert sum(series.delays) / len(series.delays) == pytest.approx(times, rel=0.05)
    for share, factor in ((0.5, 0.6931), (0.9, 2.3026), (0.99, 4.6052)):
        assert sorted(series.delays)[int(share * len(series.delays))] == pytest.approx(times * factor, rel=0.08)


def test_m_m_c() -> None:
    """Four workers, 70 % busy: the Erlang C formula's queue within 8 %."""
    server = Server(workers=4, time=0.04)
    load, c = 70 * 0.04, 4
    waits = load**c / factorial(c) / (1 - load / c)
    erlang_c = waits / (sum(load**n / factorial(n) for n in range(c)) + waits)
    queue = erlang_c * load / (c - load)
    assert mean(states(70, server), 4) == pytest.approx(queue, rel=1e-9)
    assert run(server, 70).mean("queued", WARM_UP) == pytest.approx(queue, rel=0.08)


def test_erlang_b() -> None:
    """No queue: five workers refuse the share that the Erlang B formula says, within 4 %, for any service times."""
    load, c = 4.0, 5
    erlang_b = load**c / factorial(c) / sum(load**n / factorial(n) for n in range(c + 1))
    for times in ("exponential", "constant"):
        series = run(Server(workers=5, time=0.05, queue=0, times=times), 80, duration=150)
        assert series.total("refusals") / series.total("calls") == pytest.approx(erlang_b, rel=0.04)
        assert series.total("gave_up") == series.total("refusals")


@pytest.mark.parametrize("rate", [pytest.param(30.0, marks=SOAK), 60.0])
def test_m_m_c_k(rate: float) -> None:
    """Two workers and three places: refusals and number in the system within 5 %, below and above the capacity."""
    server = Server(workers=2, time=0.05, queue=3)
    probabilities = states(rate, server, 3)
    series = run(server, rate)
    assert series.total("refusals") / series.total("calls") == pytest.approx(probabilities[-1], rel=0.05)
    assert series.mean("in_system", WARM_UP) == pytest.approx(mean(probabilities), rel=0.05)


@pytest.mark.parametrize(("times", "sigma", "square"), [("constant", 1.0, 1.0), LOGNORMAL])
def test_m_d_1_and_m_g_1(times: str, sigma: float, square: float) -> None:
    """Pollaczek and Khinchine: rho² E[S²]/E[S]² / 2(1 - rho) in the queue within 6 %; M/D/1 has E[S²] = E[S]²."""
    series = run(Server(workers=1, time=0.01, times=times, sigma=sigma), 60)
    assert series.mean("queued", WARM_UP) == pytest.approx(0.36 * square / (2 * 0.4), rel=0.06)


def test_closed_clients() -> None:
    """Thirty clients that think: the goodput of the machine-repair model within 2 %."""
    chain = [1.0]  # n requests in the system
    for n in range(30):
        chain.append(chain[-1] * (30 - n) * 0.05 / min(n + 1, 2))
    goodput = sum(p * min(n, 2) / 0.05 for n, p in enumerate(chain)) / sum(chain)
    clients = Clients(arrivals="closed", count=30, think_time=1.0, policy=ONCE)
    series = simulate_exact(Scenario(200, 1, clients, Server(workers=2, time=0.05)), seed=1)
    assert series.mean("successes", WARM_UP) == pytest.approx(goodput, rel=0.02)
