"""The verdict about a scenario: stable, vulnerable or metastable, with the evidence.

The words are those of Bronson, Aghayev, Charapko and Zhu, Metastable Failures in Distributed Systems (HotOS 2021), and
Huang et al., Metastable Failures in the Wild (OSDI 2022). A *trigger* is a temporary overload or loss of capacity. A
*sustaining effect*, here the retries, can keep the goodput low after it is gone. A state in which this happens is
metastable. A system is stable if its load is low enough to recover from every trigger. It is vulnerable if it works,
but a large enough trigger can take it to the bad state.

A verdict says it by what was tried, all at a load below the capacity:

- "stable": the goodput comes back after every trigger, and the Markov chain has one mode.
- "vulnerable": the chain has a bad mode, but no trigger that was tried leads there for good. Or the goodput is down for
  long after a trigger, and comes back by itself.
- "metastable": after a trigger, the goodput does not come back for as long as the simulation lasts, and the queue does
  not shrink either. Or the goodput is low without a trigger.

A recovery is long if it takes more than ten times the trigger and the time to drain, which `ChainModes.drain` defines.
"""

from dataclasses import dataclass, replace
from math import inf, isinf
from typing import Literal

from forbear_simulate.analysis.markov import ChainModes, chain_modes
from forbear_simulate.analysis.recovery import ENOUGH, recovery_time
from forbear_simulate.engines.cohort import simulate_cohort
from forbear_simulate.engines.time_series import TimeSeries
from forbear_simulate.scenario.fields import refuse
from forbear_simulate.scenario.scenario import Scenario, Window

START = 20.0
"""The second at which a trigger begins. Until then, budgets count the successes of a healthy service."""

_LENGTHS = (5.0, 20.0, 60.0)  # seconds
_OVERLOADS = (1.5, 3.0)  # load over the capacity that is left
_MOST_BINS = 3000  # after the start of a trigger
_LONG = 10  # times the trigger; a recovery that takes longer, apart from draining, is a long one

FleetState = Literal["stable", "vulnerable", "metastable"]


@dataclass(frozen=True, slots=True)
class TriggerTrial:
    """A trigger that was tried, as a window of the scenario, and what followed."""

    window: Window
    recovery: float
    """The seconds from the end of the trigger until the goodput is back, infinity if it does not come back.

    If the goodput is not back after `watched` seconds, but the queue shrinks, this is when it will be empty then.
    """
    watched: float
    """The seconds from the end of the trigger to the end of the simulation."""

    def __str__(self) -> str:
        kind, length = self.window.kind, f"for {self.window.length:g} s"
        if kind == "slow":
            return f"the service is {self.window.factor:.3g} times slower {length}"
        return f"the service {'stands still' if kind == 'hold' else f'{kind}s requests'} {length}"


@dataclass(frozen=True, slots=True)
class FleetVerdict:
    """A verdict and its evidence; `forbear_simulate.analysis.verdict` defines the three states.

    Example: see `verdict`.
    """

    state: FleetState
    evidence: tuple[str, ...]
    """Plain sentences with the numbers."""
    load: float
    """New calls per second; for closed clients, what they would call for if no response took time."""
    capacity: float
    """The requests that the service can serve per second."""
    chain: ChainModes
    trials: tuple[TriggerTrial, ...]

    def __str__(self) -> str:
        return "\n".join((self.state, *self.evidence))


def verdict(scenario: Scenario, *, triggers: tuple[Window, ...] | None = None) -> FleetVerdict:
    """Return whether a scenario is stable, vulnerable or metastable, with evidence.

    Its load is `clients.rate`, without changes. The cohort engine tries each of the `triggers` alone; when they start
    does not matter. None (default) are outages and overloads of 5, 20 and 60 s, and the windows of the scenario. Raises
    ScenarioError for a load that is not below the capacity, for a herd, and for what the cohort engine cannot simulate.

    >>> scenario = Scenario(duration=30, step=1, clients=Clients(rate=80, attempt_timeout=1), service=Server(workers=5))
    >>> verdict(scenario, triggers=(Window(length=5),)).state
    'metastable'
    """
    load, capacity = load_and_capacity(scenario)
    healthy = drop_triggers(scenario)
    tried = default_triggers(scenario) if triggers is None else triggers
    chain = chain_modes(healthy)
    trials = tuple(try_trigger(healthy, window, scenario.duration) for window in tried)
    quiet = replace(healthy, duration=min(max(scenario.duration, 2 * START), _MOST_BINS * healthy.step))
    share = _share(simulate_cohort(quiet))
    stays = [trial for trial in trials if isinf(trial.recovery)]
    slow = [trial for trial in trials if trial.recovery > _LONG * trial.window.length + chain.drain]
    state: FleetState = "stable"
    if stays or share < ENOUGH * (1 - scenario.service.failure):
        state = "metastable"
    elif len(chain.modes) > 1 or slow:
        state = "vulnerable"
    evidence = (
        _explain_load(load, capacity, chain),
        *([] if share >= 0.995 else [f"Without a trigger, {share:.1%} of the calls succeed."]),
        _explain_chain(chain),
        *_explain_trials(trials, slow),
    )
    return FleetVerdict(state, evidence, load, capacity, chain, trials)


def default_triggers(scenario: Scenario) -> tuple[Window, ...]:
    """Return the triggers that a verdict tries: outages, standstills and overloads, and the scenario's own windows."""
    load, capacity = load_and_capacity(scenario)
    kinds = [("refuse", 1.0), ("hold", 1.0)]
    kinds += [("slow", max(size * capacity / load, size)) for size in _OVERLOADS]
    windows = [Window(kind, START, length, factor) for length in _LENGTHS for kind, factor in kinds]
    return (*windows, *(window for window in scenario.windows if window not in windows))


def drop_triggers(scenario: Scenario) -> Scenario:
    """Return the scenario without its windows and changes, until the start of a trigger.

    Its step is fine enough for the attempt timeout, and not finer than a verdict needs.
    """
    timeout = scenario.clients.attempt_timeout
    step = min(max(scenario.step, 0.1), inf if timeout is None else timeout / 5)
    clients = replace(scenario.clients, changes=())
    return replace(scenario, windows=(), clients=clients, step=step, duration=START)


def try_trigger(healthy: Scenario, window: Window, watch: float) -> TriggerTrial:
    """Return what follows a trigger, in the cohort engine, for at most `watch` seconds and 3000 bins after it.

    `healthy` is the scenario without windows. The window begins at `START`, whatever its own start is.
    """
    after = min(watch, _MOST_BINS * healthy.step)
    moved = replace(window, start=START)
    tried = replace(healthy, windows=(moved,), duration=moved.end + after)
    series = simulate_cohort(tried)
    recovery = recovery_time(tried, series)
    if recovery is None or isinf(recovery):
        recovery = after + _empty_after(series, moved.end + after / 2)
    return TriggerTrial(moved, recovery, after)


def _empty_after(series: TimeSeries, middle: float) -> float:
    """Return the seconds until the queue is empty, if it goes on shrinking as it did from `middle` on; or infinity."""
    end = series.bins * series.step
    width = (end - middle) / 10
    before, now = series.mean("in_system", middle, middle + width), series.mean("in_system", end - width)
    rate = (before - now) / (end - middle - width)
    return now / rate if rate > 1e-4 * before else inf


def load_and_capacity(scenario: Scenario) -> tuple[float, float]:
    """Return the load and the capacity of a scenario; raise ScenarioError where a verdict makes no sense."""
    clients, server = scenario.clients, scenario.service
    capacity = server.capacity if server.rate_limit is None else min(server.capacity, server.rate_limit)
    if clients.arrivals == "herd":
        refuse("clients.arrivals", "poisson, regular or closed for a verdict", "herd", "a herd ends by itself")
    if clients.arrivals == "closed":
        return clients.count / clients.think_time, capacity
    if clients.rate == 0:
        refuse("clients.rate", "more than zero for a verdict", clients.rate, "write the usual rate of calls")
    if clients.rate >= capacity:
        rule = f"below the capacity of {capacity:g} requests/s for a verdict"
        refuse("clients.rate", rule, clients.rate, "lower the rate, or add workers")
    return clients.rate, capacity


def _share(series: TimeSeries) -> float:
    """Return the share of the calls that succeed in the second half of a time series; 1 without calls."""
    half = series.bins // 2 * series.step
    calls = series.total("calls", half)
    return min(series.total("successes", half) / calls, 1.0) if calls else 1.0


def _explain_load(load: float, capacity: float, chain: ChainModes) -> str:
    worst = load * chain.attempts
    text = (
        f"The load is {_number(load)} calls/s, {load / capacity:.0%} of the capacity of {_number(capacity)} requests/s."
    )
    if chain.attempts == 1:
        return f"{text} There are no retries."
    limit = "more" if worst > capacity else "less"
    return (
        f"{text} If every attempt fails, a call makes {_number(chain.attempts)} attempts. That is {_number(worst)} "
        f"requests/s, {limit} than the capacity."
    )


def _explain_chain(chain: ChainModes) -> str:
    head = f"The Markov chain ({chain.states} states) has"
    calm = chain.modes[0]
    if len(chain.modes) == 1:
        return (
            f"{head} one mode, with a goodput of {_number(calm.goodput)} calls/s. What deviates from it fades at a "
            f"rate of {_number(chain.gap)} per second (the spectral gap)."
        )
    busy = chain.modes[1]
    lasts = "practically for ever" if isinf(busy.lasts) else f"for {_number(busy.lasts)} s on average"
    left = "" if isinf(calm.lasts) else f" By chance alone, it leaves the good one after {_number(calm.lasts)} s."
    gap = f"{chain.gap:.1g}" if chain.gap else "too small to compute"
    return (
        f"{head} two modes, with a goodput of {_number(calm.goodput)} and of {_number(busy.goodput)} calls/s. It stays "
        f"in the bad one {lasts}, with {_number(busy.in_service)} requests in the service and {_number(busy.waiting)} "
        f"clients that wait for a retry (spectral gap per second: {gap}).{left}"
    )


def _explain_trials(trials: tuple[TriggerTrial, ...], slow: list[TriggerTrial]) -> list[str]:
    stays = [trial for trial in trials if isinf(trial.recovery)]
    back = [trial for trial in trials if not isinf(trial.recovery)]
    texts: list[str] = []
    if stays:
        least = min(stays, key=lambda trial: (trial.window.length, trial.window.kind != "slow", trial.window.factor))
        texts.append(
            f"{len(stays)} of {len(trials)} triggers keep the goodput down. One is enough: after {least}, it is not "
            f"back {_number(least.watched)} s later."
        )
    if back:
        slowest = max(back, key=lambda trial: trial.recovery)
        time = (
            f"within {_number(slowest.recovery)} s, the latest after {slowest}" if slowest.recovery > 0 else "at once"
        )
        texts.append(f"After {len(back)} of {len(trials)} triggers, the goodput comes back {time}.")
    long = [trial for trial in slow if not isinf(trial.recovery)]
    if long:
        worst = max(long, key=lambda trial: trial.recovery / trial.window.length)
        texts.append(f"That is long: after {worst}, the goodput is down for {_number(worst.recovery)} s more.")
    return texts


def _number(value: float) -> str:
    """Return a number for a sentence, with three digits or all before the point."""
    if abs(value) < 0.005:
        return "0"
    return f"{value:,.0f}" if 100 <= abs(value) < 1e6 else f"{value:.3g}"
