"""The compiled engine: the course of the plain one, and when it is used."""

import os
import subprocess
import sys
from dataclasses import replace

import pytest

from forbear.core.backoff import Constant, Exponential, Sequence
from forbear.core.budget import Ratio
from forbear.core.decide import Limits
from forbear.policy import Policy
from forbear_simulate import exact
from forbear_simulate.compiled import fits, simulate_compiled
from forbear_simulate.course import Course
from forbear_simulate.exact import simulate_exact
from forbear_simulate.load import expected_calls
from forbear_simulate.scenario import ClientBudget, Clients, Layer, RateChange, Scenario, Server, Throttling
from forbear_testkit import ROOT

SCRIPT = ROOT / "tools" / "testkit" / "forbear_testkit" / "simulate" / "engines.py"


def run_script(*arguments: str, interpreted: bool) -> str:
    """Return what the script prints; `interpreted` runs the same code without the compiler, which takes seconds."""
    environment = os.environ | ({"NUMBA_DISABLE_JIT": "1"} if interpreted else {})
    command = [sys.executable, str(SCRIPT), *arguments]
    return subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True).stdout


@pytest.mark.soak
def test_where_nothing_is_left_to_chance_both_engines_agree_bit_by_bit() -> None:
    """Windows, timeouts, abandoned work, queues, budgets, limits: every list of the course is the same."""
    assert run_script(interpreted=True) == "done\n"


@pytest.mark.soak
def test_both_engines_agree_when_compiled_and_by_chance() -> None:
    """The same with the compiler; and random scenarios have the same totals within 6 %."""
    assert run_script("random", interpreted=False) == "done\n"


@pytest.mark.soak
def test_a_large_fleet_has_the_course_of_a_small_one() -> None:
    """A million clients have a thousand times the counts of a thousand."""
    clients = Clients(rate=10, count=1000, policy=Policy(OSError, Limits(4), Exponential(0.2)))
    small = Scenario(60, 1, clients, Server(workers=4, time=0.1, failure=0.2))
    large = replace(
        small, clients=replace(clients, rate=1e4, count=10**6), service=replace(small.service, workers=4000)
    )
    assert expected_calls(large) > exact.LARGE
    course = simulate_exact(large)
    assert course == simulate_compiled(large)
    for count in ("calls", "retries", "successes", "gave_up"):
        mean = sum(simulate_exact(small, seed=seed).total(count) for seed in range(50)) / 50
        assert course.total(count) / 1000 == pytest.approx(mean, rel=0.03, abs=2)


def test_which_scenarios_fit() -> None:
    """Parts that the engine lacks, and waits that no table has exactly, are left to the plain engine."""
    plain = Scenario(clients=Clients(policy=Policy(OSError, backoff=Exponential())))
    assert fits(plain)
    assert fits(replace(plain, budget=ClientBudget(), service=Server(rate_limit=5)))
    others = (
        replace(plain, layers=(Layer(),)),
        replace(plain, throttle=Throttling()),
        replace(plain, budget=ClientBudget(Ratio())),
        replace(plain, service=Server(rate_limit=5, retry_after=1)),
    )
    assert not any(map(fits, others))
    for backoff, limits, exactly in (
        (Exponential(jitter="documented"), Limits(), True),
        (Exponential(maximum=4.5, jitter="documented"), Limits(), False),
        (Exponential(jitter="decorrelated"), Limits(), False),
        (Exponential(multiplier=1.01), Limits(None, 60), False),
        (Exponential(multiplier=1.01), Limits(60), True),
        (Sequence([1] * 65), Limits(), False),
        (Constant(1, 2), Limits(None, 60), True),
    ):
        policy = Policy(OSError, limits, backoff)
        assert fits(replace(plain, clients=Clients(policy=policy))) is exactly, backoff
    with pytest.raises(ValueError, match="must be one that the compiled engine can simulate exactly"):
        simulate_compiled(others[0])


def test_it_is_used_for_large_fleets_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """From so many calls on, unless the scenario does not fit or numba is missing."""
    course = Course(1, 1)
    course.delays = [17.0]

    def fake(scenario: Scenario, *, seed: int) -> Course:
        return course

    monkeypatch.setattr("forbear_simulate.compiled.simulate_compiled", fake)
    large = Scenario(1, 1, Clients(arrivals="regular", rate=200))
    assert simulate_exact(large) != course
    monkeypatch.setattr(exact, "LARGE", 150)
    assert simulate_exact(large) == course
    assert simulate_exact(replace(large, clients=Clients(rate=100))) != course
    assert simulate_exact(replace(large, throttle=Throttling())) != course
    monkeypatch.setitem(sys.modules, "forbear_simulate.compiled", None)
    assert simulate_exact(large) != course


def test_expected_calls() -> None:
    """A herd calls once, closed clients once for each think and service time, open ones at their rate."""
    assert expected_calls(Scenario(10, 1, Clients(arrivals="herd", count=7))) == 7
    assert expected_calls(Scenario(10, 1, Clients(arrivals="closed", count=7), Server(time=1))) == 7 * 6
    assert expected_calls(Scenario(10, 1, Clients(rate=5, changes=(RateChange(5, 0),)))) == 25
