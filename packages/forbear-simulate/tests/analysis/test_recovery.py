"""When a service recovers from a trigger: the load of all attempts decides, if abandoned work is done."""

from math import log

import pytest

from forbear.core.admission import RequestRatio
from forbear.core.backoff import Constant
from forbear.core.budget import Ratio
from forbear.core.limits import Limits
from forbear.policy import Policy
from forbear_simulate.engines.exact import simulate_exact
from forbear_simulate.engines.time_series import TimeSeries
from forbear_simulate.scenario.budgets import ClientBudget
from forbear_simulate.scenario.scenario import Clients, Layer, Scenario, Server, Window

SERVER = Server(workers=10, time=0.1, times="constant")  # 100 requests a second
TRIGGER = (Window("hold", 10, 10),)


def attempts(most: int) -> Policy:
    """A policy with so many attempts and short waits."""
    return Policy(OSError, Limits(most, None), Constant(0.1, 0.2))


def after_a_trigger(rate: float, most: int, **changes: object) -> TimeSeries:
    """The time series of open clients that wait 0.5 s for a response, in a service that stops for 10 s."""
    clients = Clients(rate=rate, count=1, policy=attempts(most), attempt_timeout=0.5)
    return simulate_exact(Scenario(200, 1, clients, SERVER, TRIGGER, **changes), seed=2)  # type: ignore[arg-type]


def recovers(series: TimeSeries, rate: float) -> bool:
    """Return whether the goodput of the last 20 s is the load again; otherwise it must be less than a tenth of it."""
    goodput = series.mean("successes", 180)
    assert goodput == pytest.approx(rate, rel=0.15) or goodput < rate / 10
    return goodput > rate / 2


@pytest.mark.parametrize(("rate", "most", "stable"), [(30, 3, True), (45, 3, False), (45, 2, True), (90, 1, True)])
def test_the_load_of_all_attempts(rate: float, most: int, stable: bool) -> None:
    """A fleet recovers if lambda times attempts is below mu: 90 of 100, but not 135."""
    assert recovers(after_a_trigger(rate, most), rate) is stable
    assert (rate * most < SERVER.capacity) is stable


@pytest.mark.parametrize(("rate", "stable"), [(22, True), (40, False)])
def test_the_product_of_attempts_in_layers(rate: float, stable: bool) -> None:
    """In layers it is the product of the attempts, here 2 times 2: 88 of 100 recover, but not 160."""
    series = after_a_trigger(rate, 2, layers=(Layer(attempts(2), attempt_timeout=0.5),))
    assert recovers(series, rate) is stable


@pytest.mark.parametrize(("ratio", "stable"), [(0.05, True), (0.3, False)])
def test_a_ratio_of_first_attempts(ratio: float, stable: bool) -> None:
    """With retries for a share r of first attempts, lambda (1 + r) counts: 94.5 of 100 recover, not 117."""
    series = after_a_trigger(90, 5, budget=ClientBudget(RequestRatio(ratio, 10, 0), "fleet"))
    assert recovers(series, 90) is stable
    assert (90 * (1 + ratio) < SERVER.capacity) is stable


def test_a_ratio_of_successes_recovers_below_capacity() -> None:
    """If a share of the successes pays for retries, a collapse stops the retries, and the load is lambda alone."""
    assert recovers(after_a_trigger(80, 5, budget=ClientBudget(Ratio(0.5), "fleet")), 80)


class Exponentially:
    """A backoff of a user, for the theory: an exponential wait of mean `1 / rate`."""

    def __init__(self, rate: float) -> None:
        self.rate = rate

    def delay(self, n: int, u: float, previous: float | None = None) -> float:
        """The wait in seconds."""
        return -log(1 - u) / self.rate


@pytest.mark.parametrize(("rho", "retrial"), [(0.5, 20.0), pytest.param(0.4, 100.0, marks=pytest.mark.soak)])
def test_the_m_m_1_retrial_queue(rho: float, retrial: float) -> None:
    """No queue, and refused calls return after exponential times: rho (lambda + rho theta)/((1 - rho) theta) wait.

    Retries per second, and the time to success by Little's law, within 6 %; a share rho of the first attempts is
    refused.
    """
    rate = 100 * rho
    waiting = rho * (rate + rho * retrial) / ((1 - rho) * retrial)
    policy = Policy(OSError, Limits(None, None, unlimited=True), Exponentially(retrial))
    server = Server(workers=1, time=0.01, queue=0)
    series = simulate_exact(Scenario(400, 1, Clients(rate=rate, policy=policy), server), seed=1)
    assert series.mean("retries", 20) == pytest.approx(retrial * waiting, rel=0.06)
    assert sum(series.delays) / len(series.delays) == pytest.approx(waiting / rate + 0.01, rel=0.06)
    assert series.mean("in_system", 20) == pytest.approx(rho, rel=0.03)
