"""Rules in the mean grant what they grant in the exact engine, for a fleet, processes and clients."""

from dataclasses import replace
from typing import Any

import pytest

from forbear.core.admission import ActiveShare, ClientThrottle, RequestRatio
from forbear.core.backoff import Constant, Exponential
from forbear.core.budget import Ratio, Throttle, TokenBucket
from forbear.core.limits import Limits
from forbear.policy import Policy
from forbear_simulate.analysis.runs import Engine, simulate
from forbear_simulate.engines.budgets.base import SteadyState
from forbear_simulate.engines.budgets.rules import RULES, simulate_rule
from forbear_simulate.engines.cohort import simulate_cohort
from forbear_simulate.engines.exact import simulate_exact
from forbear_simulate.scenario.budgets import ClientBudget, SharedBucket, Throttling
from forbear_simulate.scenario.fields import ScenarioError
from forbear_simulate.scenario.scenario import Clients, Scenario, Server, Window
from forbear_testkit.rows import sampled

AWS = TokenBucket(500, 1, 14, refund=True, throttled_cost=5)
OLD = TokenBucket(500, 1, 5, refund=True, timeout_cost=10)
POLICY = Policy(OSError, Limits(attempts=5), Exponential())
CLIENTS = Clients(rate=200, count=600, policy=POLICY)
OUTAGE = Scenario(24, 0.1, CLIENTS, Server(workers=50, time=0.1, failure=0.1), (Window("refuse", 8, 6),))
FULL = Scenario(12, 0.1, replace(CLIENTS, rate=800), Server(workers=50, time=0.1, queue=20))


# The rule, the clients that share a budget, and the largest error of the retries.
CASES: dict[str, tuple[Any, int, float]] = {
    "bucket, fleet": (TokenBucket(), 600, 0.05),
    "bucket, processes": (TokenBucket(), 20, 0.05),
    "bucket, clients": (TokenBucket(), 1, 0.15),
    "AWS, fleet": (AWS, 600, 0.05),
    "AWS, processes": (AWS, 20, 0.08),
    "gRPC, fleet": (Throttle(100, 0.3), 600, 0.05),
    "gRPC, processes": (Throttle(), 6, 0.15),
    "gRPC, clients": (Throttle(), 1, 0.3),
    "ratio, fleet": (Ratio(), 600, 0.05),
    "ratio, processes": (Ratio(0.5, 5), 30, 0.08),
    "floors, clients": (Ratio(0.2, 10, 0.3), 1, 0.2),
    "Finagle, processes": (RequestRatio(0.2, 10, 0.3), 30, 0.08),
    "Envoy, few active calls": (ActiveShare(0.3), 600, 0.5),
    "SRE, fleet": (ClientThrottle(2, 20), 600, 0.1),
}


@pytest.mark.parametrize("name", sampled(CASES, 4))
def test_rules_grant_as_many_retries_in_an_outage(name: str) -> None:
    """The retries in all agree within the error of the case. The calls that are given up agree within 10 %.

    Single clients are given up more often in the exact engine, since the retries of one call meet one budget.
    """
    rule, clients, error = CASES[name]
    scenario = replace(OUTAGE, budget=ClientBudget(rule, "process", clients))
    exact, cohort = simulate_exact(scenario, seed=3), simulate_cohort(scenario)
    noise = 4 * exact.total("retries") ** 0.5
    assert cohort.total("retries") == pytest.approx(exact.total("retries"), rel=error, abs=noise)
    if clients > 1:
        assert cohort.total("gave_up") == pytest.approx(exact.total("gave_up"), rel=0.1)
    else:
        assert 0.4 * exact.total("gave_up") < cohort.total("gave_up") < 1.1 * exact.total("gave_up")
    assert cohort.total("retries") < simulate_cohort(OUTAGE).total("retries")


@pytest.mark.parametrize("engine", ["exact", "cohort"])
def test_envoys_base_is_the_active_calls(engine: Engine) -> None:
    """200 calls a second hang for 1 s and are retried 1 s later: of R retries, 2 R = 0.2 (200 + R), so R is 22.2."""
    policy = Policy(OSError, Limits(attempts=2, timeout=None), Constant(1))
    clients = Clients(rate=200, count=100, attempt_timeout=1, policy=policy)
    budget = ClientBudget(ActiveShare(0.2, 3), per="fleet")
    scenario = Scenario(30, 0.1, clients, Server(workers=100, time=0.01), (Window("drop", 0, 30),), budget)
    assert sum(simulate(scenario, engine=engine).bins["retries"][100:]) / 20 == pytest.approx(22.2, abs=1)


@pytest.mark.parametrize("processes", [1])
def test_a_herd_has_what_a_throttle_allows(processes: int) -> None:
    """If all calls fail at once, gRPC's throttle lets the first four of each process retry, not none."""
    herd = Clients(arrivals="herd", count=3000, policy=POLICY)
    budget = ClientBudget(Throttle(), "process", 3000 // processes)
    scenario = Scenario(20, 0.1, herd, windows=(Window("refuse", 0, 20),), budget=budget)
    assert simulate_exact(scenario).total("retries") == 4 * processes
    assert simulate_cohort(scenario).total("retries") == pytest.approx(4 * processes)


def test_a_throttle_in_a_large_fleet_does_not_depend_on_the_step() -> None:
    """A percent of failures costs no retry, also if a bin has more of them than the throttle has tokens."""
    server, budget = Server(workers=900, time=0.1, failure=0.01), ClientBudget(Throttle(), "fleet")
    scenario = Scenario(10, 1, Clients(rate=2000, policy=POLICY), server, budget=budget)
    assert simulate_cohort(scenario).total("budget_refusals") == 0


@pytest.mark.parametrize("rule", [AWS, OLD, TokenBucket(100, 0.2)])
def test_throttled_retries_have_a_cost_of_their_own(rule: TokenBucket) -> None:
    """A full service refuses with throttling errors: the costs and refunds of the AWS quotas are those of the rule."""
    scenario = replace(FULL, budget=ClientBudget(rule, "fleet"))
    exact, cohort = simulate_exact(scenario, seed=3), simulate_cohort(scenario)
    assert cohort.total("retries") == pytest.approx(exact.total("retries"), rel=0.08)
    assert cohort.total("successes") == pytest.approx(exact.total("successes"), rel=0.02)


def test_a_small_process_is_like_a_large_one() -> None:
    """The shares of levels and the fluid agree where a group has many calls in a bin."""
    counts = []
    for small in (False, True):
        bucket = simulate_rule(TokenBucket(50, 0.1)).make_mean(10, rate=1 if small else 1000, step=0.1)
        bucket.succeeded(0.0, 100, 0)
        granted = [bucket.grant(0.1 * bin, 200) for bin in range(1, 5)]
        bucket.succeeded(0.5, 4000, 0)
        counts.append([*granted, bucket.grant(0.6, 300)])
    assert counts[0] == [200, 200, 100, 0, 300]
    assert counts[1] == pytest.approx(counts[0], abs=15)


def test_a_budget_and_a_throttle() -> None:
    """A retry needs both: with a bucket of 50 and an SRE throttle, fewer are granted than with either one."""
    budget, throttle = ClientBudget(TokenBucket(50, 0.05), "fleet"), Throttling(2, 20, "fleet")
    alone = [replace(OUTAGE, budget=budget), replace(OUTAGE, throttle=throttle)]
    least = min(simulate_cohort(each).total("retries") for each in alone)
    assert 40 < simulate_cohort(replace(OUTAGE, budget=budget, throttle=throttle)).total("retries") <= least


class OwnRule(TokenBucket):
    """A rule of the user."""


@pytest.mark.parametrize(
    ("rule", "key"), [(ActiveShare(), "budget.per"), (ClientThrottle(), "throttle.per"), (OwnRule(), "budget.rule")]
)
def test_what_a_mean_cannot_say_names_the_exact_engine(rule: TokenBucket, key: str) -> None:
    """A rule of the user, and small groups under rules that count active or accepted calls, are refused."""
    with pytest.raises(ScenarioError, match=rf"^`{key}` must be .* got .*; choose the exact engine"):
        simulate_rule(rule).make_mean(600, rate=1, step=0.1)


@pytest.mark.parametrize("per", ["client", "process", "fleet"])
def test_the_budget_of_a_scenario(per: str) -> None:
    """Both engines take the budget and the throttle of the scenario by themselves."""
    budget = ClientBudget(TokenBucket(5, 0.2), per, clients=60)
    scenario = replace(OUTAGE, budget=budget, throttle=Throttling(3, 20, "fleet"))
    exact, cohort = simulate_exact(scenario, seed=3), simulate_cohort(scenario)
    assert cohort.total("retries") == pytest.approx(exact.total("retries"), rel=0.15)
    assert cohort.total("retries") < simulate_cohort(OUTAGE).total("retries")


# Half of 100 attempts per second fail, 8 calls are under way, and 2 wait for a retry. What is granted of the failures.
LONG_RUN: dict[str, tuple[Any, float]] = {
    "a tenth of the successes": (TokenBucket(10, 0.1), 0.1),
    "dear after timeouts": (TokenBucket(10, 0.1, timeout_cost=2), 0.05),
    "refunds": (TokenBucket(10, 1, 14, refund=True), 1 / 7.5),
    "fewer tokens than failures": (Throttle(), 0.0),
    "more tokens than failures": (Throttle(10, 1), 1.0),
    "successes of a ratio": (Ratio(0.2), 0.2),
    "floors of 20 groups": (Ratio(0.2, 10, 0.5), 0.4),
    "first attempts of Finagle": (RequestRatio(0.25, 10, 0), 0.4),
    "a place for a retry": (ActiveShare(0.3, 0), 1.0),
    "no place for a retry": (ActiveShare(0.2, 0), 0.0),
    "two requests for an accept": (ClientThrottle(2), 1.0),
    "less than that": (ClientThrottle(1.9), 0.0),
    "deposits of all processes": (SharedBucket(), 0.1),
}


@pytest.mark.parametrize("name", LONG_RUN)
def test_what_is_granted_in_the_long_run(name: str) -> None:
    """The share follows from what the rule says; without failures it is all."""
    rule, granted = LONG_RUN[name]
    state = SteadyState(100, 0.5, throttled=False, timed_out=True, active=8, waiting=2)
    assert simulate_rule(rule).grant_in_long_run(20, state) == pytest.approx(granted)
    assert simulate_rule(rule).grant_in_long_run(20, replace(state, failing=0)) == 1


@pytest.mark.parametrize("rule", RULES)
def test_only_a_throttle_refuses_first_attempts_in_the_long_run(rule: Any) -> None:
    """k = 2 and a fifth of accepted attempts admit two fifths."""
    state = SteadyState(100, 0.8, throttled=True, timed_out=False, active=8, waiting=2)
    admitted = 0.4 if rule is ClientThrottle else 1.0
    assert simulate_rule(rule()).admit_in_long_run(state) == pytest.approx(admitted)


def test_a_rule_of_the_user_has_no_long_run() -> None:
    """The error names the engine that can count by it."""
    state = SteadyState(100, 0.8, throttled=True, timed_out=False, active=8, waiting=2)
    with pytest.raises(ScenarioError, match="exact engine"):
        simulate_rule(OwnRule()).grant_in_long_run(20, state)
