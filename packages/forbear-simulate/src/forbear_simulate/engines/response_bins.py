"""The bins in which workers answer, for the cohort engine: a request has a worker from its begin to its response.

Requests begin anywhere in their bin. So one that needs 2.3 bins is answered in the second bin after it with 70 %, and
in the third with 30 %.
"""

from math import exp, inf, log
from statistics import NormalDist
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from forbear_simulate.scenario.scenario import Server

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Counts = NDArray[np.float64]

_POINTS = 4096  # service times
_EDGE = 1e-9  # of a bin: rounding does not make a response late


def list_service_times(server: Server) -> list[float]:
    """Return equally likely service times in seconds, from the shortest to the longest; their mean is exact."""
    if server.times == "constant":
        return [server.time]
    shares = [(i + 0.5) / _POINTS for i in range(_POINTS)]
    if server.times == "exponential":
        values = [-log(1 - share) for share in shares]
    else:
        normal = NormalDist()
        values = [exp(server.sigma * normal.inv_cdf(share)) for share in shares]
    scale = server.time * _POINTS / sum(values)
    return [value * scale for value in values]


class ResponseBins(NamedTuple):
    """The ends of requests that get a worker in one bin; index 0 is that bin, index 1 the next one, and so on."""

    response: "Counts"
    """The share whose response comes in a bin, within the limit."""
    wasted: "Counts"
    """The share whose work is done in a bin, after the limit; none if abandoned work is dropped."""
    busy: "Counts"
    """The share that still has a worker at the end of a bin."""
    in_time: float
    """The share whose response comes within the limit: the sum of `response`."""


class ResponseTimes:
    """The bins of answers for the service times of a server, by how many bins a client still waits."""

    def __init__(self, server: Server, step: float) -> None:
        self._drops = server.abandoned == "dropped"
        self._values = np.asarray(list_service_times(server)) / step
        self._known: dict[tuple[int | None, float], ResponseBins] = {}

    def bins(self, eighths: int | None, factor: float) -> ResponseBins:
        """Return what becomes of requests whose clients wait so many eighths of a bin more; None is without end.

        Work takes `factor` times longer.
        """
        key = eighths, factor
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = self._bins(inf if eighths is None else eighths / 8, factor)
        return known

    def _bins(self, limit: float, factor: float) -> ResponseBins:
        times = self._values * factor
        worked = np.minimum(times, limit) if self._drops else times
        size = int(worked[-1]) + 2
        in_time = times <= limit + _EDGE
        done = _spread(worked, size)
        response = _spread(times[in_time], size) * in_time.mean() if in_time.any() else np.zeros(size)
        wasted = np.zeros(0) if self._drops or in_time.all() else np.maximum(done - response, 0.0)
        busy = np.maximum(1 - np.cumsum(done), 0.0)
        last = int(times[in_time][-1]) + 2 if in_time.any() else 0
        return ResponseBins(response[:last], wasted, busy[:-1], float(in_time.mean()))


def _spread(times: "Counts", size: int) -> "Counts":
    """Return the share of `times` (in bins) that end 0, 1, 2 … bins later, from anywhere in their bin on."""
    low = times.astype(np.int64)
    part = times - low
    bins = np.bincount(low, 1 - part, size) + np.bincount(low + 1, part, size)
    return np.asarray(bins, dtype=np.float64) / np.float64(len(times))
