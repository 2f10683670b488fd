"""The rate of new calls over time: constant, or with steps and ramps."""

from bisect import bisect_right
from math import sqrt

from forbear_simulate.scenario.scenario import Clients


class RateCurve:
    """The rate of new calls as a function of time, made of straight lines.

    `expected(t)` is the mean number of calls before the time t, and `time_of` its inverse. Arrivals of any kind follow
    from it: regular ones at each whole number, Poisson ones with exponential gaps between the numbers.
    """

    def __init__(self, clients: Clients) -> None:
        points = [(0.0, float(clients.rate))]  # (time, rate); two points with one time are a step
        for change in clients.changes:
            points.append((change.start, points[-1][1]))
            points.append((change.start + change.length, float(change.rate)))
        self._times = [time for time, _ in points]
        self._rates = [rate for _, rate in points]
        self._sums = [0.0]  # the expected calls before each point
        for i in range(1, len(points)):
            mean = (self._rates[i - 1] + self._rates[i]) / 2
            self._sums.append(self._sums[-1] + mean * (self._times[i] - self._times[i - 1]))

    def count_expected(self, time: float) -> float:
        """Return the mean number of calls from 0 to `time`, in seconds."""
        i = bisect_right(self._times, time) - 1
        past = time - self._times[i]
        return self._sums[i] + past * (self._rates[i] + self._slope(i) * past / 2)

    def time_of(self, number: float) -> float:
        """Return the time in seconds by which `number` calls are expected, infinity if the rate stays 0 before."""
        i = bisect_right(self._sums, number) - 1
        rest, rate, slope = number - self._sums[i], self._rates[i], self._slope(i)
        if rest == 0 and (rate or slope):
            return self._times[i]
        if rate == 0 and slope == 0:
            return float("inf")
        # The root of rate * t + slope * t² / 2 = rest, in the form that loses no digits if the slope is small.
        return self._times[i] + 2 * rest / (rate + sqrt(max(rate * rate + 2 * slope * rest, 0.0)))

    def _slope(self, i: int) -> float:
        """Return how fast the rate changes after point i, in calls per second, per second."""
        if i + 1 == len(self._times) or self._times[i + 1] == self._times[i]:
            return 0.0
        return (self._rates[i + 1] - self._rates[i]) / (self._times[i + 1] - self._times[i])
