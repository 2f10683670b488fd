"""The service of the cohort engine: counts of requests that wait in the queue, have a worker, and are answered.

A request occupies a worker from the bin in which it begins until the bin of its response. So many begin in a bin that
not more than all workers are busy at its end.
"""

from typing import TYPE_CHECKING

import numpy as np

from forbear_simulate.engines.response_bins import ResponseTimes
from forbear_simulate.scenario.scenario import Scenario

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Counts = NDArray[np.float64]

NONE = 1e-9  # fewer calls than this are none
_ROUNDS = 4  # after which a share and a wait that depend on each other change no more


class MeanService:
    """The workers and the queue. In every array, row n is attempt n + 1 and a column is a time bin."""

    def __init__(self, scenario: Scenario, step: float, bins: int, rows: int, patience: int) -> None:
        self._settings = server = scenario.service
        self._step, self._bins = step, bins
        self._patience = patience  # the bins that a client waits for a response
        timeout = scenario.clients.attempt_timeout
        self._limit = None if timeout is None else timeout / step
        self.kinds = [""] * bins
        """The kind of the window in the middle of each bin, "" for none."""
        self._factors = [1.0] * bins
        for t in range(bins):
            window = scenario.window_at((t + 0.5) * step) if scenario.windows else None
            if window is not None:
                self.kinds[t] = window.kind
                self._factors[t] = window.factor if window.kind == "slow" else 1.0
        lost = np.array([kind == "drop" for kind in self.kinds], dtype=np.float64)
        self._lost = lost if lost.any() else None  # the bins whose responses are lost
        self._response_times = ResponseTimes(server, step)
        self._rounds = _ROUNDS if server.abandoned == "dropped" else 1
        self._waiting = np.zeros((rows, bins))  # requests in the queue by the bin they were sent in
        self._answers = np.zeros((rows, bins))
        self._ages = np.zeros((rows, bins))  # the sum of the ages of the calls that get an answer
        self._late = np.zeros((rows, bins + self._patience))  # attempts that will time out in a bin
        self._busy = np.zeros(bins)  # the workers that began before a bin and are not free at its end
        self._wasted = np.zeros(bins)
        self._head = 0  # the oldest bin that may have requests in the queue
        self._part: float = 0.0  # of the requests of that bin, which has begun
        self._tokens = float(server.burst)  # of the rate limit
        self.queued = 0.0
        """The requests in the queue at the end of a bin."""
        self.busy = 0.0
        """The workers that are not free at the end of a bin."""

    def refill(self) -> None:
        """Begin a bin: put in the tokens of the rate limit, as if there was room for all of them."""
        if self._settings.rate_limit is not None:
            self._tokens += self._settings.rate_limit * self._step

    def limit_rate(self, due: "Counts") -> "Counts":
        """Take tokens of the rate limit for requests, and return those that get none."""
        count = float(due.sum())
        passed = min(count, self._tokens)
        self._tokens -= passed
        return due * (1 - passed / count) if passed < count else np.zeros(len(due))

    def accept(self, t: int, due: "Counts") -> None:
        """Put the requests that are sent in a bin into the queue, or nowhere if they are lost."""
        if self.kinds[t] == "drop":
            self._late[:, t + self._patience] += due
        else:
            self._waiting[:, t] = due
            self.queued += float(due.sum())

    def time_out(self, t: int) -> "Counts | None":
        """Return the attempts whose clients have waited for the attempt timeout; None if it is too early for any."""
        sent = t - self._patience
        if sent < 0:
            return None
        waiting = self._waiting[:, sent]
        late: Counts = self._late[:, t] + waiting
        if self._settings.abandoned == "dropped":
            self.queued -= float(waiting.sum())
            waiting[:] = 0.0
        return late

    def serve(self, t: int, ages: "Counts") -> None:
        """Give workers to the requests that have waited longest; `ages` are those of calls by the bin of an attempt."""
        if self._settings.rate_limit is not None:
            self._tokens = min(self._tokens, float(self._settings.burst))
        factor = self._factors[t]
        free = room = 0.0 if self.kinds[t] == "hold" else max(self._settings.workers - float(self._busy[t]), 0.0)
        while self._head <= t and room > 0:
            waiting = self._waiting[:, self._head]
            count = float(waiting.sum())
            if count > NONE:
                first = t - self._head + 1 - room / free - self._part  # the wait of the first one, in bins
                cost, share, waited = self._share_served(count, first, room, free, factor)
                taken = count * share * cost
                self._begin(t, waiting * share, waited, ages[:, self._head])
                waiting -= waiting * share
                room -= taken
                self.queued -= count * share
                if share < 1:
                    self._part += (1 - self._part) * share
                    break
            if self._head == t:
                break
            self._head += 1
            self._part = 0.0
        self.busy = float(self._busy[t]) + free - room

    def _share_served(
        self, count: float, first: float, room: float, free: float, factor: float
    ) -> tuple[float, float, float]:
        """Return the worker that a request takes on average, the share of `count` that begins, and its mean wait.

        Each depends on the others: where abandoned work is dropped, who has waited longer keeps a worker for less time.
        """
        waited, cost, share = first, 0.0, 0.0
        for number in range(self._rounds):
            cost = float(self._response_times.bins(self._eighths_left(waited), factor).busy[0])
            share = min(room / (count * cost), 1.0) if cost > 0 else 1.0
            mean = max(first + (count * share * cost / free - (1 - self._part) * share) / 2, 0.0)
            waited = mean if number == 0 else (waited + mean) / 2
        return cost, share, waited

    def refuse_excess(self, t: int, workers: float = 0.0) -> "Counts | None":
        """Take the requests of a bin that find the queue full out of it, and return them; None for none.

        So many `workers` have yet to begin.
        """
        most = self._settings.queue
        if most is None or (excess := self.queued - most - workers) <= NONE:
            return None
        fresh = self._waiting[:, t]
        arrived = float(fresh.sum())
        if arrived <= 0:
            return None
        refused: Counts = fresh * min(excess / arrived, 1.0)
        fresh -= refused
        self.queued -= float(refused.sum())
        return refused

    def answers(self, t: int) -> "tuple[Counts, Counts]":
        """Return the responses of a bin to clients that wait for them, and the sum of the ages of their calls."""
        return self._answers[:, t], self._ages[:, t]

    def count_wasted(self, t: int) -> float:
        """Return the requests that were done in a bin after their clients gave up on them."""
        return float(self._wasted[t])

    def _eighths_left(self, waited: float) -> int | None:
        """Return how many eighths of a bin a client still waits after so many bins; None is without end."""
        return None if self._limit is None else max(int((self._limit - max(waited, 0.0)) * 8 + 0.5), 0)

    def _begin(self, t: int, begun: "Counts", waited: float, age: "Counts") -> None:
        """Let workers begin with requests in a bin, after they have waited so many bins."""
        left = -1 if t - self._head >= self._patience else self._eighths_left(waited)  # nobody waits for it any more
        bins = self._response_times.bins(left, self._factors[t])
        count, rest = float(begun.sum()), self._bins - t
        busy, response, wasted = bins.busy[1:rest], bins.response[:rest], bins.wasted[:rest]
        self._busy[t + 1 : t + 1 + len(busy)] += count * busy
        if len(wasted):
            self._wasted[t : t + len(wasted)] += count * wasted
        in_time = bins.in_time
        if self._lost is not None:
            kept = response * (1 - self._lost[t : t + len(response)])
            in_time -= float(response.sum() - kept.sum())
            response = kept
        if in_time < 1 and left != -1:
            self._late[:, self._head + self._patience] += begun * (1 - in_time)
        end = t + len(response)
        answers = begun[:, None] * response
        self._answers[:, t:end] += answers
        if self._settings.failure:
            delays = (np.arange(len(response)) + (t - self._head)) * self._step
            self._ages[:, t:end] += answers * (age[:, None] + delays)
