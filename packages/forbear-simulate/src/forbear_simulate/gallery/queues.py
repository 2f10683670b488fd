"""A negative study: retries after refusals alone, without timeouts, do not keep a service down."""

from collections.abc import Iterator

from forbear import Constant, Limits, Policy
from forbear_simulate.engines.exact import simulate_exact
from forbear_simulate.gallery.studies import Comparison, Study
from forbear_simulate.scenario.scenario import Clients, Scenario, Server, Window

_RATE, _CAPACITY, _QUEUE, _ATTEMPTS = 80.0, 100.0, 9, 4
_WAIT = 2.0  # seconds: long against the queue, so that retries arrive like new calls


def share_blocked(load: float, places: int) -> float:
    """Return the share of requests that an M/M/1/K queue refuses; `load` is that of all requests, K is `places`."""
    weights = [load**n for n in range(places + 1)]
    return weights[-1] / sum(weights)


def find_fixed_point() -> float:
    """Return the attempts per second of calls that retry refusals: the load that causes itself.

    The load grows with the refusals, and the refusals with the load, but there is one solution only.
    """
    load = _RATE
    for _ in range(200):
        refused = share_blocked(load / _CAPACITY, _QUEUE + 1)
        load = _RATE * (1 - refused**_ATTEMPTS) / (1 - refused)
    return load


def _compare() -> Iterator[Comparison]:
    policy = Policy(OSError, Limits(attempts=_ATTEMPTS, timeout=None), Constant(_WAIT, spread=_WAIT))
    clients, service = Clients(rate=_RATE, policy=policy), Server(1, _QUEUE, 1 / _CAPACITY)
    scenario = Scenario(300, 1, clients, service, (Window("hold", 130, 30),))
    series = simulate_exact(scenario, seed=1)
    goodput = _RATE * (1 - share_blocked(find_fixed_point() / _CAPACITY, _QUEUE + 1) ** _ATTEMPTS)
    for when, start, end in (("before the trigger", 10, 130), ("after it", 180, 300)):
        attempts = series.mean("first_attempts", start, end) + series.mean("retries", start, end)
        yield Comparison(f"attempts per second {when}", find_fixed_point(), attempts, 0.04, "/s")
        yield Comparison(f"goodput {when}", goodput, series.mean("successes", start, end), 0.03, "/s")


NO_HYSTERESIS = Study(
    "no-hysteresis",
    "M/M/1/K with retries after refusals: the service recovers from every trigger",
    "queueing theory: the blocking probability of M/M/1/K, with the load that the retries cause",
    "Refused work costs the service nothing. Without timeouts no work is wasted, so the same load has the same goodput "
    "before and after a trigger. Metastable failures need wasted work.",
    "The figures are those of the fixed point: the load that makes as many refusals as cause it. It treats retries as "
    "new Poisson calls, which costs up to 3 %.",
    "80 Poisson calls per second, three retries after 2 to 4 s, before one worker of 100 calls per second and nine "
    "places to wait. The trigger stops the worker for 30 s.",
    _compare,
)
