"""Verdicts: retries on refusal alone are stable, retries after timeouts with abandoned work done are metastable."""

from dataclasses import replace
from functools import cache
from math import isinf

import pytest

from forbear.core.backoff import Constant, Exponential
from forbear.core.budget import Ratio, TokenBucket
from forbear.core.limits import Limits
from forbear.policy import Policy
from forbear_simulate.analysis.recovery import recovery_time
from forbear_simulate.analysis.verdict import FleetVerdict, default_triggers, drop_triggers, try_trigger, verdict
from forbear_simulate.engines.exact import simulate_exact
from forbear_simulate.scenario.budgets import ClientBudget
from forbear_simulate.scenario.fields import ScenarioError
from forbear_simulate.scenario.scenario import Clients, RateChange, Scenario, Server, Window
from forbear_testkit.rows import sampled

FIVE = Policy(OSError, Limits(attempts=5), Exponential())
TWO = Policy(OSError, Limits(attempts=2), Exponential())
QUICK = Policy(OSError, Limits(attempts=3), Constant(0.1))
STORM = Scenario(40, 0.1, Clients(rate=240, attempt_timeout=1, policy=FIVE), Server(workers=30, time=0.1))
QUEUE = Scenario(40, 0.1, Clients(rate=80, policy=FIVE), Server(workers=1, time=0.01, queue=20))
OUTAGE = Window("refuse", 0, 5)
HOLD = Window("hold", 0, 5)


def storm(rate: float, policy: Policy, **changes: object) -> Scenario:
    """The retry storm under another load and policy."""
    return replace(STORM, clients=replace(STORM.clients, rate=rate, policy=policy), **changes)  # type: ignore[arg-type]


# The scenario, the trigger, the state, and the modes of the chain.
CASES: dict[str, tuple[Scenario, Window, str, int]] = {
    "M/M/1/K, retries on refusal": (QUEUE, HOLD, "stable", 1),
    "a retry storm": (STORM, OUTAGE, "metastable", 2),
    "the same with a ratio budget": (replace(STORM, budget=ClientBudget(Ratio(0.1), "fleet")), HOLD, "stable", 1),
    "abandoned work dropped": (replace(STORM, service=Server(30, None, 0.1, abandoned="dropped")), HOLD, "stable", 1),
    "no retries": (storm(240, Policy(OSError, Limits(attempts=1))), HOLD, "stable", 1),
    "2 attempts at 0.47 of the capacity": (storm(140, TWO, duration=60), HOLD, "stable", 1),
    "2 attempts at 0.53 of the capacity": (storm(160, TWO), HOLD, "metastable", 2),
    "a trigger that is too small": (storm(240, QUICK), OUTAGE, "vulnerable", 2),
    "a rate limit below the capacity": (
        replace(STORM, clients=replace(STORM.clients, rate=120), service=Server(30, None, 0.1, rate_limit=150)),
        HOLD,
        "stable",
        1,
    ),
    "full buckets of clients": (replace(STORM, budget=ClientBudget(TokenBucket())), HOLD, "vulnerable", 1),
}


@cache
def judged(name: str) -> FleetVerdict:
    """The verdict of a case."""
    scenario, trigger, _, _ = CASES[name]
    return verdict(scenario, triggers=(trigger,))


@pytest.mark.parametrize("name", sampled(CASES, 4))
def test_the_state_follows_from_the_chain_and_one_trigger(name: str) -> None:
    """The state follows from the chain and one trigger; the boundary is where load times attempts is the capacity."""
    _, _, state, modes = CASES[name]
    result = judged(name)
    assert (result.state, len(result.chain.modes)) == (state, modes)
    assert result.chain.modes[0].goodput == pytest.approx(result.load, rel=0.03)
    if modes == 2:
        assert result.chain.modes[1].goodput < 0.01 * result.load


def test_evidence_in_words() -> None:
    """The evidence has the numbers of load, chain and triggers in plain sentences."""
    storms = str(judged("a retry storm"))
    assert storms.startswith("metastable\nThe load is 240 calls/s, 80% of the capacity of 300 requests/s. If every")
    assert "a call makes 5 attempts. That is 1,200 requests/s, more than the capacity." in storms
    assert "two modes, with a goodput of 240 and of 0 calls/s. It stays in the bad one practically for ever" in storms
    assert "after the service refuses requests for 5 s, it is not back 40 s later." in storms
    quiet = str(judged("M/M/1/K, retries on refusal"))
    assert "has one mode, with a goodput of 80 calls/s." in quiet
    assert "After 1 of 1 triggers, the goodput comes back at once." in quiet
    assert "There are no retries." in str(judged("no retries"))
    assert "That is long: after the service stands still for 5 s" in str(judged("full buckets of clients"))


def test_a_backlog_that_shrinks_is_not_metastable() -> None:
    """Without retries, a backlog of 60 s drains in 240 s, also if the simulation looks for 40 s only."""
    scenario = storm(240, Policy(OSError, Limits(attempts=1)))
    result = verdict(scenario, triggers=(Window("hold", 0, 60),))
    assert result.state == "stable"
    assert result.trials[0].recovery == pytest.approx(240, rel=0.05)
    assert result.trials[0].watched == 40


def test_a_service_that_is_down_without_a_trigger() -> None:
    """Attempts that time out before the service can end them succeed seldom, and the evidence has the share."""
    clients = Clients(rate=20, attempt_timeout=0.5, policy=Policy(OSError, Limits(attempts=2)))
    result = verdict(Scenario(60, 0.1, clients, Server(workers=60, time=2)), triggers=())
    assert result.state == "metastable"
    assert any(text.startswith("Without a trigger, ") for text in result.evidence)


def test_triggers_of_a_verdict() -> None:
    """There are outages, standstills and overloads of three lengths; an overload is measured in what is left."""
    own = Window("slow", 30, 7, factor=2)
    windows = default_triggers(replace(STORM, windows=(own,)))
    assert len(windows) == 13
    assert own in windows
    assert {window.length for window in windows} == {5, 20, 60, 7}
    assert max(window.factor for window in windows) == pytest.approx(3 * 300 / 240)


@pytest.mark.parametrize(
    ("clients", "text"),
    [
        (
            Clients(rate=300),
            r"`clients.rate` must be below the capacity of 200 requests/s for a verdict, got 300; lower",
        ),
        (
            Clients(arrivals="herd"),
            r"`clients.arrivals` must be poisson, regular or closed for a verdict, got 'herd'; a",
        ),
    ],
)
def test_no_verdict(clients: Clients, text: str) -> None:
    """An overloaded service and a herd have no verdict; one line says why."""
    with pytest.raises(ScenarioError, match=f"^{text}"):
        verdict(Scenario(60, 0.1, clients))


def test_changes_and_closed_clients() -> None:
    """A verdict is about the rate without its changes; closed clients wait for their calls, and recover."""
    changed = replace(QUEUE, clients=replace(QUEUE.clients, changes=(RateChange(5, 500),)))
    assert verdict(changed, triggers=()).evidence == verdict(QUEUE, triggers=()).evidence
    closed = Clients(arrivals="closed", count=400, think_time=2, attempt_timeout=1, policy=FIVE)
    assert verdict(replace(STORM, clients=closed), triggers=(HOLD,)).state == "stable"


@pytest.mark.parametrize(("attempts", "stays"), [(1, False), (5, True)])
def test_triggers_agree_with_the_exact_engine(attempts: int, stays: bool) -> None:
    """A trigger does in the mean what it does with chance: the goodput stays down, or is back within 20 s."""
    clients = Clients(rate=70, attempt_timeout=1, policy=Policy(OSError, Limits(attempts=attempts), Exponential()))
    healthy = drop_triggers(Scenario(30, 0.1, clients, Server(workers=20, time=0.2)))
    trial = try_trigger(healthy, HOLD, 30)
    tried = replace(healthy, windows=(trial.window,), duration=trial.window.end + 30)
    recovery = recovery_time(tried, simulate_exact(tried, seed=2))
    assert recovery is not None
    assert isinf(recovery) is isinf(trial.recovery) is stays
    if not stays:
        assert recovery == pytest.approx(trial.recovery, abs=4)
