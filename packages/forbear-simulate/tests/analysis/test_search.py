"""The inverse mode: values that keep a limit, on one side, on both, everywhere or nowhere; and errors in one line."""

from dataclasses import replace
from functools import cache

import pytest

from forbear.core.admission import RequestRatio
from forbear.core.backoff import Constant, Exponential
from forbear.core.budget import TokenBucket
from forbear.core.limits import Limits
from forbear.policy import Policy
from forbear_simulate.analysis.goal import MEASURES, read_goal
from forbear_simulate.analysis.runs import simulate
from forbear_simulate.analysis.search import find
from forbear_simulate.scenario.budgets import ClientBudget
from forbear_simulate.scenario.changes import full_key, usual_range, with_value
from forbear_simulate.scenario.fields import ScenarioError
from forbear_simulate.scenario.scenario import Clients, Scenario, Server, Window

POLICY = Policy(OSError, Limits(attempts=5), Exponential(0.2, 2, 2))
STORM = Scenario(
    60, 0.2, Clients(rate=240, attempt_timeout=1, policy=POLICY), Server(workers=30, time=0.1), (Window("hold", 10, 2),)
)
FINAGLE = replace(STORM, budget=ClientBudget(RequestRatio(0.1, 10, 0), "fleet"))
simulated = cache(simulate)


@pytest.fixture(autouse=True)
def _once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Simulate each scenario once, however many searches try it."""
    monkeypatch.setattr("forbear_simulate.analysis.search.simulate", simulated)


def test_a_boundary_by_bisection() -> None:
    """A ratio budget on first attempts recovers below the boundary that bisection finds, and not above it."""
    result = find(FINAGLE, "budget.ratio", such_that="recovery < 20 s")
    ratio = result.value
    assert isinstance(ratio, float)
    assert result.monotone
    assert result.fits == ((0.001, ratio),)
    assert 0.02 < ratio < 0.25  # of 1.25 the capacity, there is nothing left to drain with
    for factor, fits in ((1.0, True), (1.03, False)):
        figures = simulate(with_value(FINAGLE, "budget.ratio", ratio * factor)).figures
        assert (figures.recovery is not None and figures.recovery < 20) is fits
    assert str(result) == f"recovery < 20 s holds for budget.ratio from 0.001 to {ratio:.4g}"


@pytest.mark.soak
def test_whole_numbers() -> None:
    """Two attempts keep up 0.53 of the capacity, one attempt recovers, and only whole numbers are tried."""
    result = find(STORM, "attempts", such_that="recovery < 20 s", high=4)
    assert (result.key, result.value, result.fits) == ("clients.policy.attempts", 1, ((1, 1),))
    assert [trial.value for trial in result.trials] == [1, 2, 3, 4]
    assert str(result) == "recovery < 20 s holds for clients.policy.attempts 1"
    wide = find(STORM, "service.workers", such_that="gave_up <= 2 %", low=26, high=400)
    assert isinstance(wide.value, int | float)
    assert wide.value == int(wide.value)
    assert wide.fits == ((wide.value, 400),)


@pytest.mark.parametrize(
    ("key", "low", "high"),
    [("service.workers", 3, 300), ("service.time", 0.01, 1), ("clients.rate", 24, 2400), ("maximum", 1, 600)],
)
def test_a_search_without_a_range_begins_around_the_scenario(key: str, low: float, high: float) -> None:
    """It is from a tenth of the scenario's number to ten times as much, unless the key has a range of its own."""
    assert usual_range(STORM, full_key(key)) == pytest.approx((low, high))


def test_a_share_is_searched_up_to_one() -> None:
    """Ten times a share may be more than there is; a share of zero has no range."""
    assert usual_range(replace(STORM, service=Server(failure=0.2)), "service.failure") == pytest.approx((0.02, 1))
    assert usual_range(STORM, "service.failure") is None


def test_all_and_nothing() -> None:
    """The text says that every value fits, or none and which one is nearest."""
    every = find(STORM, "attempts", such_that="amplification < 5.1", high=3)
    assert str(every) == "amplification < 5.1 holds for every clients.policy.attempts from 1 to 3"
    assert every.value == 3
    none = find(STORM, "attempts", such_that="goodput > 1000/s", high=3)
    assert none.value is None
    assert str(none).startswith("goodput > 1000/s holds for no clients.policy.attempts from 1 to 3; the nearest is ")
    assert str(none).endswith("/s, at 1")


def test_a_goal_that_is_not_monotone() -> None:
    """With 3 or 4 attempts the outage is bridged; with fewer too few are made, and with more a retry storm begins.

    The interval in the middle is result, and the text warns if there are values between the tried ones.
    """
    policy = Policy(OSError, Limits(attempts=2), Constant(0.5))
    clients = replace(STORM.clients, rate=220, policy=policy)
    outage = replace(STORM, clients=clients, windows=(Window("refuse", 10, 2),))
    result = find(outage, "attempts", such_that="gave_up < 2 %", high=6)
    assert not result.monotone
    assert list(result.fits) == [(3, 4)]
    assert result.value == 4
    assert str(result) == "gave_up < 2% holds for clients.policy.attempts from 3 to 4"
    wide = find(outage, "attempts", such_that="gave_up < 2 %", high=20)
    assert list(wide.fits) == [(3, 4)]
    assert "more or less does not always help" in str(wide)


def test_kinds_of_jitter_are_tried_best_first() -> None:
    """Kinds of jitter are tried one by one, the best first; one that the engine cannot simulate is named."""
    result = find(STORM, "jitter", such_that="drain < 1000 s")
    figures = {trial.value: trial.figure for trial in result.trials}
    assert set(figures) == {"full", "equal", "documented", "decorrelated", "none"}
    assert figures["decorrelated"] is None
    assert "the engine cannot simulate decorrelated" in str(result)
    better = find(STORM, "jitter", such_that="amplification < 100")
    assert len(better.words) == 4
    shown = {trial.value: trial.figure or 0.0 for trial in better.trials}
    assert [shown[word] for word in better.words] == sorted(shown[word] for word in better.words)
    assert better.value == better.words[0]


@pytest.mark.parametrize(
    ("text", "limit"),
    [
        ("recovery < 60 s", 60),
        ("drain<=1m30s", 90),
        ("amplification < 1.1", 1.1),
        ("goodput >= 90 / m", 1.5),
        ("gave_up < 5 %", 0.05),
        ("gave_up < 0.05", 0.05),
        (" peak_to_mean > 2 ", 2),
        ("p99 < 500ms", 0.5),
    ],
)
def test_a_goal_has_the_unit_of_its_figure(text: str, limit: float) -> None:
    """Spaces are free, and a limit has the unit of its figure."""
    assert read_goal(text).limit == pytest.approx(limit)
    assert read_goal(str(read_goal(text))) == read_goal(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("recovery", r"`such_that` must be a figure, one of < <= > >=, and a limit, got 'recovery'; write"),
        ("recovery == 5 s", r"`such_that` must be a figure, .*, got 'recovery == 5 s'; write"),
        ("recovry < 5 s", r"`such_that` must be about one of .*, got 'recovry'; did you mean recovery\?"),
        ("recovery < 60", r"`such_that` must be recovery < a time with a unit, .*, got 'recovery < 60'; correct"),
        ("goodput > 60", r"`such_that` must be goodput > a rate with a unit, .*; correct the limit"),
        ("gave_up < x %", r"`such_that` must be gave_up < a share, such as 5 % or 0.05, got"),
        ("amplification < -1", r"`such_that` must be amplification < a number, such as 1.5, got"),
        ("amplification < nan", r"`such_that` must be amplification < a number"),
        ("__import__('os') < 1", r"`such_that` must be a figure"),
    ],
)
def test_wrong_goals(text: str, message: str) -> None:
    """A goal with another form, name or unit gets one line with rule, value and cure."""
    with pytest.raises(ScenarioError, match=f"^{message}"):
        read_goal(text)


@pytest.mark.parametrize(
    ("key", "message"),
    [
        ("budget.depsit", r"`budget.depsit` must be one of the keys .*; did you mean deposit\?"),
        ("nonsense", r"`key` must be a number of the scenario, or jitter, got 'nonsense'; write"),
        ("service.queue", r"`low and high` must be set for service.queue, which has no usual range"),
        ("attempts", r"`low` must be more than zero and below `high`, got"),
    ],
)
def test_wrong_keys(key: str, message: str) -> None:
    """An unknown key, or a missing or empty range, gets one line."""
    with pytest.raises(ScenarioError, match=message):
        find(STORM, key, such_that="drain < 5 s", low=20 if key == "attempts" else None)


def test_figures_that_a_scenario_does_not_have() -> None:
    """There is no recovery without a trigger, and no p99 in the cohort engine; the error has the cure."""
    for goal, cure in (
        ("recovery < 5 s", "add a window or a change of the rate"),
        ("p99 < 1 s", "choose the exact engine"),
    ):
        with pytest.raises(ScenarioError, match=rf"^`such_that` must be a goal that the scenario has, got .*; {cure}"):
            find(replace(STORM, duration=1, windows=()), "attempts", such_that=goal)
    exact = Scenario(5, 0.1, Clients(rate=20, policy=POLICY), Server(failure=0.3))
    result = find(exact, "attempts", such_that="p99 < 10 s", high=2, engine="exact")
    assert result.value == 2


def test_values_under_their_keys() -> None:
    """A key changes one value, and nothing else; a parameter of a budget keeps who shares it."""
    shared = replace(STORM, budget=ClientBudget(TokenBucket(20, 0.2), "process", 7))
    for key in (
        "clients.policy.timeout",
        "clients.policy.maximum",
        "clients.count",
        "service.queue",
        "throttle.k",
        "step",
    ):
        assert with_value(STORM, key, 5) != STORM
    changed = with_value(shared, "budget.deposit", 0.5).budget
    assert changed == ClientBudget(TokenBucket(20, 0.5), "process", 7)
    other = with_value(shared, "budget.ratio", 0.3).budget
    assert other is not None
    assert (other.per, other.clients, getattr(other.counts, "ratio", None)) == ("process", 7, 0.3)
    constant = Policy(OSError, Limits(attempts=5), Constant(1))
    waits = with_value(replace(STORM, clients=Clients(policy=constant)), "clients.policy.jitter", "equal")
    assert waits.clients.policy.backoff == Exponential(jitter="equal")
    with pytest.raises(ScenarioError, match=r"^`attempts` must be .* in `clients.policy`; change that value"):
        with_value(STORM, "clients.policy.attempts", -1)


def test_progress_counts_each_value_once() -> None:
    """The progress counts simulations, each value once."""
    counts: list[int] = []
    find(
        replace(STORM, duration=5, windows=()),
        "attempts",
        such_that="amplification < 9",
        high=3,
        progress=counts.append,
    )
    assert counts == [1, 2, 3]
    assert set(MEASURES) == {"recovery", "drain", "amplification", "goodput", "gave_up", "peak_to_mean", "p99"}
