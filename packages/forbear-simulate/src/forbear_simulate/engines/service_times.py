"""The distribution of service times, for the cohort engine: shares that end in time, and the work that is done."""

from bisect import bisect_right
from itertools import accumulate
from math import exp, log
from statistics import NormalDist

from forbear_simulate.scenario.scenario import Server

_POINTS = 4096


class ServiceTimes:
    """The service times of a server as many equally likely values, in seconds; their mean is exact."""

    def __init__(self, server: Server) -> None:
        shares = [(i + 0.5) / _POINTS for i in range(_POINTS)]
        if server.times == "constant":
            values = [1.0] * _POINTS
        elif server.times == "exponential":
            values = [-log(1 - share) for share in shares]
        else:
            normal = NormalDist()
            values = [exp(server.sigma * normal.inv_cdf(share)) for share in shares]
        scale = server.time * _POINTS / sum(values)
        self.mean = server.time
        self.values = [value * scale for value in values]
        """The values, from the shortest to the longest."""
        self._sums = [0.0, *accumulate(self.values)]

    def share_within(self, limit: float, factor: float = 1.0) -> float:
        """Return the share of requests that need at most `limit` seconds, in a window slower by `factor`."""
        return bisect_right(self.values, limit / factor) / _POINTS

    def mean_within(self, limit: float, factor: float = 1.0) -> float:
        """Return the mean time in seconds that a worker spends on a request, if it stops after `limit` seconds."""
        i = bisect_right(self.values, limit / factor)
        stopped = (_POINTS - i) * max(limit, 0.0) if i < _POINTS else 0.0  # not 0 times infinity
        return (self._sums[i] * factor + stopped) / _POINTS
