"""The trigger of a scenario, and how long a time series takes to recover from it and to drain."""

from itertools import accumulate
from math import ceil, inf, sqrt

from forbear_simulate.engines.time_series import TimeSeries
from forbear_simulate.scenario.scenario import Scenario

SPAN = 5.0
"""The seconds over which goodput is compared with new calls; one bin if it is longer."""

ENOUGH = 0.9
"""The share of the usual goodput that counts as recovered."""

LEFT = 0.01
"""The share of the excess of open calls that may be left when a fleet has drained."""


def trigger(scenario: Scenario) -> tuple[float, float] | None:
    """Return the begin and the end of the trigger in seconds, None if nothing disturbs the service.

    It reaches from the first window or change of the rate to the end of the last one. The trigger of a herd without
    windows is the moment 0. What lies after the end of the scenario does not count.
    """
    spans = [(window.start, window.end) for window in scenario.windows]
    spans += [(change.start, change.start + change.length) for change in scenario.clients.changes]
    if scenario.clients.arrivals == "herd":
        spans.append((0.0, 0.0))
    begun = [(start, min(end, scenario.duration)) for start, end in spans if start < scenario.duration]
    return (min(start for start, _ in begun), max(end for _, end in begun)) if begun else None


def recovery_time(scenario: Scenario, series: TimeSeries) -> float | None:
    """Return the seconds from the end of the trigger until the goodput is back; None without a trigger or for a herd.

    It is back at the first bin from which on the successes are at least 90 % of the new calls. That must be true of the
    next 5 s, and of all the time that is left. If only a share of the calls succeeds before the trigger too, then 90 %
    of that share is enough. The result is infinity if the goodput does not come back.
    """
    span = trigger(scenario)
    if span is None or scenario.clients.arrivals == "herd":
        return None
    calls, successes = _sums(series.calls), _sums(series.successes)
    width = max(round(SPAN / series.step), 1)
    begin, end = _bin_of(series, span[0]), _bin_of(series, span[1])
    usual = min(successes[begin] / calls[begin], 1.0) if begin >= width and calls[begin] else 1.0
    for i in range(end, series.bins - width + 1):
        near = successes[i + width] - successes[i]
        enough = ENOUGH * usual
        if (
            near > 0
            and near >= enough * (calls[i + width] - calls[i])
            and successes[-1] - successes[i] >= enough * (calls[-1] - calls[i])
        ):
            return max(i * series.step - span[1], 0.0)
    return inf


def drain_time(scenario: Scenario, series: TimeSeries) -> float | None:
    """Return the seconds from the end of the trigger until 99 % of the calls that it held up have ended.

    A call is open from its begin until its success or its end without one. The excess is the number of open calls at
    the end of the trigger, less their mean before it; for a herd it is all clients. The fleet has drained when 1 % of
    the excess is left, or one call, or no more than three standard deviations of chance. The result is infinity if that
    does not happen, None without a trigger.
    """
    span = trigger(scenario)
    if span is None:
        return None
    open_calls = _open_calls(series)
    usual = _usual(scenario, series, open_calls, _bin_of(series, span[0]))
    end = _bin_of(series, span[1])
    if scenario.clients.arrivals == "herd":
        enough = LEFT * scenario.clients.count
    else:
        enough = usual + max(LEFT * (open_calls[end] - usual), 3 * sqrt(usual), 1.0)
    for i in range(max(end, 1), series.bins + 1):  # before the first bin, no call is open
        if open_calls[i] <= enough:
            return max(i * series.step - span[1], 0.0)
    return inf


def peak_to_mean(series: TimeSeries, start: float = 0.0, end: float | None = None) -> float | None:
    """Return the most attempts in a second over their mean per second, from `start` to `end` in seconds.

    Seconds are counted from `start`; bins longer than a second count as they are. None is the end of the series.
    The result is None without attempts.
    """
    first = round(start / series.step)
    last = series.bins if end is None else min(round(end / series.step), series.bins)
    width = max(round(1 / series.step), 1)
    load = [a + b for a, b in zip(series.first_attempts[first:last], series.retries[first:last], strict=True)]
    seconds = [sum(load[i : i + width]) for i in range(0, len(load) - width + 1, width)] or [sum(load)]
    mean = sum(seconds) / len(seconds)
    return max(seconds) / mean if mean else None


def _sums(values: list[float]) -> list[float]:
    """Return the sums of the first 0, 1, 2 … values."""
    return list(accumulate(values, initial=0.0))


def _bin_of(series: TimeSeries, time: float) -> int:
    """Return the first bin that begins at `time` or later."""
    return min(ceil(time / series.step - 1e-9), series.bins)


def _open_calls(series: TimeSeries) -> list[float]:
    """Return the number of open calls at the begin of each bin, and at the end of all."""
    ended = [a + b for a, b in zip(series.successes, series.gave_up, strict=True)]
    return [max(a - b, 0.0) for a, b in zip(_sums(series.calls), _sums(ended), strict=True)]


def _usual(scenario: Scenario, series: TimeSeries, open_calls: list[float], begin: int) -> float:
    """Return the mean number of open calls before the trigger, or what the workers would have at least.

    A trigger in the first seconds leaves no time to measure. Then it is the product of rate and service time.
    """
    if begin * series.step >= SPAN:
        return sum(open_calls[begin // 2 : begin]) / (begin - begin // 2)
    clients, time = scenario.clients, scenario.service.time
    if clients.arrivals == "closed":
        return clients.count * time / (time + clients.think_time)
    return (clients.changes[-1].rate if clients.changes else clients.rate) * time
