"""The bins of the cohort engine: it divides a step that is coarse for a scenario into parts.

A time that decides about the result must be longer than a bin: the timeouts, the time that closed clients think, the
jitter that alone keeps waves of retries apart, the waits of endless retries, a window, or the window of a budget.
"""

from math import ceil, inf

from forbear_simulate.engines.wait_bins import endless_retries
from forbear_simulate.engines.waits import WaitTable, mean_waits
from forbear_simulate.scenario.fields import refuse
from forbear_simulate.scenario.scenario import Scenario

_MOST_BINS = 500_000
_ROUNDED = 0.05  # the part by which whole bins may change the attempt timeout
_WAVES = 0.5  # the part of a wait that is random, from which on waves do not last
_NO_JITTER = 1e-3  # the part of a wait that is no jitter to speak of
_ROUNDING = 1e-9


def step_parts(scenario: Scenario, table: WaitTable) -> int:
    """Return into how many parts the cohort engine divides a step, 1 for none. `table` has the waits of its clients.

    Raises ScenarioError if it would have too many bins then.
    """
    least = min(_finest(scenario, table), scenario.step)
    timeout = scenario.clients.attempt_timeout
    parts = ceil(scenario.step / least - _ROUNDING)
    while timeout is not None and _round(timeout, scenario.step / parts) > _ROUNDED:
        parts += 1
    if parts > 1 and parts * scenario.bins > _MOST_BINS:
        refuse(
            "duration", f"at most {_MOST_BINS * scenario.step / parts:g} s in the cohort engine with times as short",
            scenario.duration, "choose a shorter one, or the exact engine",
        )  # fmt: skip
    return parts


def _finest(scenario: Scenario, table: WaitTable) -> float:
    """Return how long a bin may be, in seconds."""
    clients = scenario.clients
    limits = [scenario.duration]
    if clients.attempt_timeout is not None:
        limits.append(clients.attempt_timeout / 10)
        if scenario.service.abandoned == "dropped" and scenario.service.times != "exponential":
            # In an overload, the head of the queue is always about to time out: less than its work may be left.
            limits.append(max(scenario.service.time / 4, clients.attempt_timeout / 400))
    if table.timeout is not None:
        limits.append(table.timeout / 20)
    if clients.arrivals == "closed":
        limits.append(clients.think_time / 10)
    for row in table.rows:
        spread = max(row) - min(row) if max(row) < inf else 0.0
        if _NO_JITTER * max(row) < spread <= _WAVES * max(row):
            limits.append(spread / 10)
    longest = max(mean_waits(table))
    if endless_retries(table) and longest > 0:
        limits.append(longest / 4)
    step = scenario.step
    limits += [
        window.length / 20
        for window in scenario.windows
        if _round(window.start, step) > 0 or _round(window.length, step) > 0
    ]
    limits += [getattr(budget.counts, "window", inf) / 10 for budget in scenario.budgets]
    return min(limits)


def _round(time: float, step: float) -> float:
    """Return the part by which a time changes in whole steps, 0 for rounding."""
    if time == 0:
        return 0.0
    change = abs(max(round(time / step), 1) * step - time) / time
    return change if change > 1e-6 else 0.0
