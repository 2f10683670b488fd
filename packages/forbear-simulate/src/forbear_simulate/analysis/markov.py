"""A small Markov chain of a fleet and its service, which has one mode of operation, or a bad one besides.

A state is a pair: the requests in the service, and the clients that wait for a retry ("the orbit" of a retrial queue).
An arrival that meets a long queue will time out. Its client then waits for a retry, while the service still does the
work, unless it drops it. A client goes on retrying with the chance that makes the mean number of attempts right. The
grid has a few hundred states. Its moves have the means of the fleet, and its variance as far as the grid allows. So
there is little chance in a large fleet. (This is a Markov chain approximation of a diffusion.)

After Alvaro, Isaacs, Majumdar, Muniswamy-Reddy, Salamati, Soudjani: Formal Analysis of Metastable Failures in Software
Systems (2025). There, too, a slow eigenvalue shows a metastable mode, and its value the time until the mode is left.
"""

from bisect import bisect_right
from dataclasses import dataclass
from math import inf
from statistics import NormalDist
from typing import TYPE_CHECKING

import numpy as np

from forbear_simulate.engines.budgets.base import SteadyState
from forbear_simulate.engines.budgets.rules import simulate_rule
from forbear_simulate.engines.response_bins import list_service_times
from forbear_simulate.engines.waits import mean_waits, wait_table
from forbear_simulate.scenario.scenario import Scenario

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Reals = NDArray[np.float64]

_QUEUE, _ORBIT = 24, 12  # the most steps of the grid
_MOST_ATTEMPTS = 1000.0
_LONG = 5.0  # a mode is left after this many times what a backlog takes to drain, or more
_Z = [NormalDist().inv_cdf((i + 0.5) / 16) for i in range(16)]


@dataclass(frozen=True, slots=True)
class ChainMode:
    """A mode of the chain: a set of states that it seldom leaves, with the means of its quasi-stationary state."""

    goodput: float
    """The successful calls per second."""
    in_service: float
    """The requests in the service, waiting or served."""
    waiting: float
    """The clients that wait for a retry."""
    lasts: float
    """The mean time in seconds until the chain leaves the mode; infinity if that is too long to compute."""


@dataclass(frozen=True, slots=True)
class ChainModes:
    """The modes of a chain, the one with fewer calls in it first, and the spectral gap."""

    gap: float
    """The spectral gap per second: the rate at which the slowest deviation from the stationary state fades."""
    drain: float
    """The seconds that the longest backlog of the grid takes to drain without retries, and one retry more."""
    attempts: float
    """The attempts of a call if every attempt fails."""
    modes: tuple[ChainMode, ...]
    """One mode, or two, of which the second has a worse goodput and lasts at least five times as long as `drain`."""
    states: int


@dataclass(frozen=True, slots=True)
class _Grid:
    """The states and the rates of the moves between neighbours."""

    queue: "Reals"  # requests in the service, by the number of the state
    orbit: "Reals"
    goodput: "Reals"
    generator: "Reals"


def chain_modes(scenario: Scenario) -> ChainModes:
    """Return the modes of the Markov chain of a scenario, without its windows and changes of the rate.

    Raises ScenarioError for budgets of a rule of the user.
    """
    chain = _Chain(scenario)
    grid = chain.grid()
    second = _second(grid.generator)
    high = second > (float(second.min()) + float(second.max())) / 2
    parts = [_mode(grid, states) for states in (high, ~high) if states.any()]
    parts.sort(key=lambda mode: mode.in_service + mode.waiting)
    gap = sum(1 / part.lasts for part in parts)
    calm, busy = parts[0], parts[-1]
    two = len(parts) == 2 and busy.lasts >= _LONG * chain.drain and busy.goodput < 0.9 * calm.goodput
    modes = (calm, busy) if two else (_mode(grid, np.ones(len(second), dtype=bool)),)
    return ChainModes(gap, chain.drain, chain.attempts, modes, len(second))


class _Chain:
    """The parameters of the chain."""

    def __init__(self, scenario: Scenario) -> None:
        self._scenario = scenario
        clients, server = scenario.clients, scenario.service
        self._limit = inf if clients.attempt_timeout is None else clients.attempt_timeout
        self._capacity = server.capacity
        self._rate_limit = inf if server.rate_limit is None else server.rate_limit
        table = wait_table(clients.policy.limits, clients.policy.backoff)
        waits = mean_waits(table)
        spent = 0.0 if self._limit == inf else self._limit  # by an attempt, in the bad mode
        most = min(table.attempts or _MOST_ATTEMPTS, _MOST_ATTEMPTS)
        attempts, elapsed, self._wait = 1.0, spent, 0.0
        while attempts < most:
            wait = waits[min(int(attempts), len(waits)) - 1]
            elapsed += wait + spent
            if not wait < inf or (table.timeout is not None and elapsed - spent > table.timeout):
                break
            attempts += 1
            self._wait += wait
        self._wait /= max(attempts - 1, 1)
        self._goes_on = 1 - 1 / attempts
        self.attempts = attempts
        self._load = clients.rate
        if clients.arrivals == "closed":
            self._load = min(clients.count / (clients.think_time + server.time), 3 * self._capacity)
        self._longest = self._longest_queue()
        self._orbit = min(1.2 * self._load * (attempts - 1), 3 * self._capacity) * (self._wait + spent)
        spare = max(self._capacity - self._load, 0.02 * self._capacity)
        self.drain = self._longest / spare + self._wait + spent
        self._times = list_service_times(server)
        self._budgets = [
            (simulate_rule(budget.counts), clients.count / budget.group(clients.count)) for budget in scenario.budgets
        ]

    def _longest_queue(self) -> float:
        """Return the most requests in the service that the grid has."""
        server = self._scenario.service
        longest = server.workers * 4.0 + 50.0
        if self._limit < inf:
            longest = 3 * (server.workers + self._capacity * self._limit)
        return longest if server.queue is None else min(longest, float(server.workers + server.queue))

    def grid(self) -> _Grid:
        """Return the states of the chain, and the generator of its moves."""
        steps = min(int(self._longest), _QUEUE)
        rows = min(int(self._orbit), _ORBIT) if self._goes_on > 0 else 0
        unit, orbit_unit = self._longest / steps, max(self._orbit, 1e-9) / max(rows, 1)
        count = (steps + 1) * (rows + 1)
        queue, orbit, goodput = np.zeros(count), np.zeros(count), np.zeros(count)
        generator = np.zeros((count, count))
        for i in range(steps + 1):
            late = self._late(i * unit)
            for j in range(rows + 1):
                state = i * (rows + 1) + j
                queue[state], orbit[state] = i * unit, j * orbit_unit
                gains, losses, goodput[state] = self._flows(i * unit, j * orbit_unit, late, full=self._full(i, steps))
                sides = ((i, steps, rows + 1, unit), (j, rows, 1, orbit_unit))
                for (place, last, apart, width), gain, loss in zip(sides, gains, losses, strict=True):
                    drift, noise = (gain - loss) / width, (gain + loss) / width**2
                    chance = max(noise - abs(drift), 0.0) / 2
                    if place < last:
                        generator[state, state + apart] += max(drift, 0.0) + chance
                    if place > 0:
                        generator[state, state - apart] += max(-drift, 0.0) + chance
        generator[np.diag_indices(count)] = -generator.sum(1)
        return _Grid(queue, orbit, goodput, generator)

    def _full(self, i: int, steps: int) -> bool:
        """Return whether the service refuses in the row i of the grid; one without a bound never does."""
        server = self._scenario.service
        return i == steps and server.queue is not None and server.workers + server.queue <= self._longest

    def _late(self, queued: float) -> float:
        """Return the share of requests that are not done within the attempt timeout, if they meet so many others."""
        if self._limit == inf:
            return 0.0
        ahead = max(queued + 1 - self._scenario.service.workers, 0.0)
        spread = 0.0 if self._scenario.service.times == "constant" else ahead**0.5
        waits = [max(ahead + z * spread, 0.0) / self._capacity for z in _Z]
        in_time = sum(bisect_right(self._times, self._limit - wait) for wait in waits)
        return 1 - in_time / (len(waits) * len(self._times))

    def _flows(
        self, queued: float, waiting: float, late: float, *, full: bool
    ) -> tuple[tuple[float, float], tuple[float, float], float]:
        """Return what queue and orbit gain and lose per second in a state, and the goodput."""
        clients, server = self._scenario.clients, self._scenario.service
        served_badly = 1 - (1 - late) * (1 - server.failure)
        spent = self._limit * late / served_badly if late > 0 and not full else 0.0
        leaving = waiting / max(self._wait + spent, 1e-6)
        new = clients.rate
        if clients.arrivals == "closed":
            served = min(queued, server.workers + self._capacity * min(self._limit, 1e9))  # the rest has no client
            new = max(clients.count - waiting - served, 0.0) / clients.think_time
        passed = 0.0 if full else min(self._rate_limit / max(new + leaving, 1e-9), 1.0)
        failing = 1 - passed * (1 - served_badly)
        refused, timed_out = passed < 0.5, late > 0.5 and not full
        granted, admitted = 1.0, 1.0
        for rule, groups in self._budgets:
            active = min(queued, (new + leaving) * min(self._limit, 1e9))  # the rest has no client
            state = SteadyState(new + leaving, failing, refused, timed_out, active, waiting)
            granted = min(granted, rule.grant_in_long_run(groups, state))
            admitted = min(admitted, rule.admit_in_long_run(state))
        sent = new * admitted + leaving
        work = sent * passed * (1.0 if server.abandoned == "done" else 1 - late)
        done = min(queued / server.time, self._capacity)
        return (work, sent * failing * self._goes_on * granted), (done, leaving), sent * (1 - failing)


def _second(generator: "Reals") -> "Reals":
    """Return the right eigenvector of the second slowest mode, which tells the states of the modes apart."""
    count = len(generator)
    scale = max(float(np.abs(np.diag(generator)).max()), 1e-9)  # nothing moves without calls
    resolvent = np.linalg.inv(np.eye(count) * scale * 1e-9 - generator)
    vectors = np.random.default_rng(0).standard_normal((count, 4))
    vectors[:, 0] = 1.0
    for _ in range(40):
        vectors, _ = np.linalg.qr(resolvent @ vectors)
    second: Reals = vectors[:, 1]  # QR keeps the constant vector first
    return second


def _mode(grid: _Grid, states: "NDArray[np.bool_]") -> ChainMode:
    """Return the mode of a set of states: the distribution to which the chain tends while it does not leave it."""
    inside = grid.generator[np.ix_(states, states)]
    count = len(inside)
    scale = max(float(np.abs(np.diag(inside)).max()), 1e-9)  # nothing moves without calls
    resolvent = np.linalg.inv(np.eye(count) * scale * 1e-13 - inside)
    shares = np.full(count, 1 / count)
    for _ in range(60):
        shares = np.abs(shares @ resolvent)
        shares /= shares.sum()
    outflow = float(shares @ -inside.sum(1))
    return ChainMode(
        goodput=float(shares @ grid.goodput[states]),
        in_service=float(shares @ grid.queue[states]),
        waiting=float(shares @ grid.orbit[states]),
        lasts=1 / outflow if outflow > scale * 1e-12 else inf,
    )
