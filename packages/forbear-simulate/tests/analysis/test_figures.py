"""Figures: what they are by definition, on time series made by hand."""

from collections.abc import Sequence
from dataclasses import replace
from math import inf, sqrt

import pytest

from forbear_simulate.analysis.figures import figure_rules, figures_of, mean_figures
from forbear_simulate.analysis.recovery import drain_time, peak_to_mean, recovery_time, trigger
from forbear_simulate.engines.time_series import TimeSeries
from forbear_simulate.scenario.scenario import Clients, RateChange, Scenario, Server, Window

OUT = Scenario(100, 1, Clients(rate=100), Server(), (Window("refuse", 20, 10),))


def series(successes: Sequence[float], gave_up: Sequence[float] | None = None, calls: float = 100) -> TimeSeries:
    """Return a time series in bins of one second, with `calls` new calls in each."""
    made = TimeSeries(1.0, len(successes))
    made.calls = made.first_attempts = [calls] * made.bins
    made.successes = list(successes)
    made.gave_up = list(gave_up or made.gave_up)
    return made


@pytest.mark.parametrize(
    ("scenario", "span"),
    [
        (replace(OUT, windows=()), None),
        (OUT, (20, 30)),
        (replace(OUT, windows=(Window("refuse", 20, 10), Window("slow", 50, 90))), (20, 100)),
        (replace(OUT, windows=(Window("refuse", 120, 10),)), None),
        (replace(OUT, clients=Clients(changes=(RateChange(5, 200, 2), RateChange(40, 100)))), (5, 40)),
        (Scenario(clients=Clients(arrivals="herd")), (0, 0)),
    ],
    ids=["none", "window", "cut", "later", "changes", "herd"],
)
def test_the_trigger(scenario: Scenario, span: tuple[float, float] | None) -> None:
    """It reaches from the first disturbance to the last, within the duration."""
    assert trigger(scenario) == span


@pytest.mark.parametrize(
    ("successes", "recovered"),
    [
        ([100] * 100, 0),
        ([100] * 20 + [0] * 10 + [100] * 70, 0),
        ([100] * 20 + [0] * 17 + [100] * 63, 7),
        ([100] * 20 + [0] * 17 + [89] * 63, inf),
        ([100] * 20 + [0] * 17 + [90] * 63, 7),
        ([50] * 20 + [0] * 17 + [45] * 63, 7),
        ([100] * 20 + [0] * 80, inf),
        ([100] * 20 + [0] * 10 + [100] * 20 + [0] * 50, inf),
        ([100] * 20 + [0] * 78 + [100] * 2, inf),
    ],
    ids=["always", "at once", "later", "too little", "enough", "as before", "never", "a relapse", "too late"],
)
def test_goodput_recovers_at_90_percent_for_five_seconds(successes: list[float], recovered: float) -> None:
    """The goodput is back when it is 90 % of what it should be, for five seconds and for the rest."""
    assert recovery_time(OUT, series(successes)) == recovered


def test_recovery_needs_a_trigger_and_calls() -> None:
    """Without a trigger there is nothing to recover from, and a herd makes no new calls."""
    assert recovery_time(replace(OUT, windows=()), series([100] * 100)) is None
    assert recovery_time(Scenario(clients=Clients(arrivals="herd")), series([100] * 100)) is None


def test_recovery_from_a_trigger_at_the_start() -> None:
    """If there was no time before the trigger, all calls should succeed."""
    scenario = replace(OUT, windows=(Window("refuse", 0, 10),))
    assert recovery_time(scenario, series([0] * 12 + [91] * 88)) == 2
    assert recovery_time(scenario, series([0] * 12 + [85] * 88)) == inf


@pytest.mark.parametrize(
    ("successes", "gave_up", "drained"),
    [
        ([100] * 20 + [0] * 10 + [200] * 10 + [100] * 60, [0] * 100, 10),
        ([100] * 20 + [0] * 10 + [100] * 70, [0] * 100, inf),
        ([100] * 20 + [0] * 10 + [100] * 70, [0] * 25 + [1000] + [0] * 74, 0),
        ([100] * 20 + [0] * 10 + [199] * 10 + [100] * 60, [0] * 100, 10),
        ([100 - 1e-10] * 100, [0] * 100, 0),
    ],
    ids=["a backlog", "for ever", "all gave up", "but 1 %", "rounding"],
)
def test_a_fleet_has_drained_at_99_percent(successes: list[float], gave_up: list[float], drained: float) -> None:
    """A fleet has drained when 99 % of the calls that were held up have ended."""
    assert drain_time(OUT, series(successes, gave_up)) == drained
    assert drain_time(replace(OUT, windows=()), series(successes, gave_up)) is None


def test_the_drain_of_a_herd_and_of_closed_clients() -> None:
    """A herd has drained when 99 % of it have ended, closed clients when most of them think."""
    herd = series([0, 40, 40, 19, 1] + [0] * 95, calls=0)
    herd.calls[0] = 100
    assert drain_time(Scenario(100, 1, Clients(arrivals="herd", count=100)), herd) == 4
    closed = Scenario(100, 1, Clients(arrivals="closed", count=100, think_time=1), Server(time=1), OUT.windows)
    held = series([50] * 20 + [0] * 10 + [50] * 70, calls=50)
    held.calls[20:30] = [5] * 10
    assert drain_time(replace(closed, windows=(Window("refuse", 0, 30),)), held) == 0


def test_peak_to_mean_in_any_window() -> None:
    """Attempts are counted by the second, from the start of the window."""
    made = TimeSeries(0.5, 20)
    made.first_attempts = [10.0] * 20
    made.retries = [0.0] * 10 + [30, 0] * 5
    assert peak_to_mean(made, 0, 5) == 1
    assert peak_to_mean(made, 5) == 1
    assert peak_to_mean(made) == 50 / 35
    assert peak_to_mean(made, 5, 5.5) == 1
    assert peak_to_mean(TimeSeries(1, 10)) is None


def test_figures_of_a_series() -> None:
    """Totals are sums over the bins, rates are per second, times are those of the calls."""
    made = series([60.0] * 100, [40.0] * 100)
    made.retries = [50.0] * 100
    made.queued[7] = 3.5
    made.delays = [float(n) for n in range(1, 101)]
    figures = figures_of(OUT, made)
    assert (figures.offered_load, figures.goodput, figures.gave_up_share) == (150, 60, 0.4)
    assert (figures.amplification, figures.longest_queue) == (1.5, 3.5)
    assert (figures.p50, figures.p99, figures.longest) == (51, 100, 100)
    nothing = figures_of(OUT, TimeSeries(1, 100))
    assert (nothing.gave_up_share, nothing.amplification, nothing.p50, nothing.peak_to_mean) == (0, 1, None, None)


def test_standard_errors() -> None:
    """A standard error is the deviation of the runs over the root of their number; infinity has none."""
    one = figures_of(OUT, series([100.0] * 100))
    runs = [replace(one, retries=value, recovery=time) for value, time in ((1, None), (2, 5), (6, inf))]
    mean, errors = mean_figures(runs)
    assert mean.retries == 3
    assert errors["retries"] == pytest.approx(sqrt(7 / 3))
    assert (mean.recovery, errors["recovery"]) == (inf, None)
    assert mean_figures(runs[:2])[1]["recovery"] is None
    assert mean_figures([replace(one, drain=None)])[0].drain is None


def test_every_figure_has_a_unit_and_a_meaning() -> None:
    """Docs and output say what a figure is from these texts."""
    assert all(rule.unit and rule.text for rule in figure_rules().values())
