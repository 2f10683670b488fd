"""The exact engine: every call, attempt and request is an event. It decides with `forbear.verdicts.decide` itself."""

from math import inf
from random import Random

from forbear.verdicts import TRANSIENT, Stop, Verdict, decide
from forbear_simulate.engines.budgets.base import FleetBudget
from forbear_simulate.engines.budgets.rules import make_exact_budgets, make_fleet_budget
from forbear_simulate.engines.service_queue import Agenda, QueuedRequest, ServiceQueue
from forbear_simulate.engines.time_series import TimeSeries
from forbear_simulate.scenario.load import RateCurve
from forbear_simulate.scenario.scenario import Clients, Layer, Scenario

_ROUNDING = 1e-6  # seconds
_TIMED_OUT = TRANSIENT.replace(timed_out=True)


class FleetCall:
    """One call of a client, or of a layer for its `parent`: the attempts so far, the last wait, its cost."""

    __slots__ = ("attempt", "tier", "client", "cost", "ended", "parent", "previous", "request", "started")

    def __init__(self, client: int, started: float, tier: "Tier", parent: "AttemptRequest | None" = None) -> None:
        self.client = client
        self.started = started
        self.tier = tier
        self.parent = parent
        self.request: AttemptRequest | None = None
        self.attempt = 0
        self.previous: float | None = None
        self.cost = 0
        self.ended = False

    @property
    def first(self) -> bool:
        """True at the first attempt, if those of all callers above are first ones, too."""
        return self.attempt == 1 and (self.parent is None or self.parent.call.first)


class AttemptRequest(QueuedRequest):
    """The request of an attempt, with its call; `ended` once the client has a response or stopped waiting."""

    __slots__ = ("below", "call", "ended")

    def __init__(self, call: FleetCall) -> None:
        super().__init__()
        self.call = call
        self.below: FleetCall | None = None
        self.ended = False


class Tier:
    """The clients, or a layer: the policy of their calls, the budgets, and the `below` that they call.

    `below` is the next layer, None for the service.
    """

    __slots__ = ("attempt_timeout", "backoff", "below", "budget", "limits", "retry_exhausted")

    def __init__(self, setting: Clients | Layer, budget: FleetBudget | None, below: "Tier | None") -> None:
        policy = setting.policy
        self.limits, self.backoff, self.retry_exhausted = policy.limits, policy.backoff, policy.retry_exhausted
        self.attempt_timeout = setting.attempt_timeout
        self.budget = budget
        self.below = below


def simulate_exact(scenario: Scenario, *, seed: int = 0, series: TimeSeries | None = None) -> TimeSeries:
    """Return the time series of a scenario, event by event; the same seed gives the same series.

    Arrivals, service times and waits are drawn independently, so that two policies with one seed meet the same
    arrivals. With layers, attempts are those that the last layer makes: a first attempt is one that no layer repeats.
    `series` is an empty one to fill, which the caller can read after an interruption; None for a new one.
    """
    series = TimeSeries(scenario.step, scenario.bins) if series is None else series
    return _Fleet(scenario, seed, series).run()


class _Fleet:
    """The clients of one simulation."""

    def __init__(self, scenario: Scenario, seed: int, series: TimeSeries) -> None:
        self._scenario = scenario
        self._clients = scenario.clients
        self._series = series
        self._agenda = Agenda()
        self._arrivals, service, self._waits = (Random(f"{name} {seed}") for name in ("arrivals", "service", "waits"))
        self._service = ServiceQueue(scenario, self._agenda, service, self._series, self._respond)
        self._curve = RateCurve(self._clients)
        below = None
        for layer in reversed(scenario.layers):
            own = None if layer.budget is None else make_exact_budgets(layer.budget, self._clients.count, seed)
            below = Tier(layer, own, below)
        self._fleet = Tier(self._clients, make_fleet_budget(scenario, seed), below)
        self._used_up = TRANSIENT.replace(exhausted=scenario.nested_guard)

    def run(self) -> TimeSeries:
        """Let the scenario happen and return its time series."""
        clients = self._clients
        if self._level() is not None:
            self._series.budget_level = [0.0] * self._series.bins
            self._agenda.at(self._series.step, self._read_level, 0)
        if clients.arrivals == "closed":
            for client in range(clients.count):
                self._think(client)
        elif clients.arrivals == "herd":
            for client in range(clients.count):
                self._agenda.at(0.0, self._begin, client)
        else:
            self._next_arrival(-1.0 if clients.arrivals == "regular" else 0.0)
        self._agenda.run(self._scenario.duration)
        self._agenda.now = self._scenario.duration
        self._service.count_time()
        if self._series.budget_level:
            self._read_level(self._series.bins - 1)
        return self._series

    def _level(self) -> float | None:
        """Return the mean share of tokens left in the budgets of the clients; None if there are no tokens."""
        budget = self._fleet.budget
        return None if budget is None else budget.level(self._clients.count)

    def _read_level(self, number: int) -> None:
        """Write down the level of the budgets at the end of a bin, and enter the next reading."""
        series = self._series
        series.budget_level[number] = self._level() or 0.0
        if number + 2 < series.bins:
            self._agenda.at((number + 2) * series.step, self._read_level, number + 1)

    def _next_arrival(self, number: float) -> None:
        """Enter the arrival after the one at `number` expected calls."""
        number += 1.0 if self._clients.arrivals == "regular" else self._arrivals.expovariate(1.0)
        self._agenda.at(self._curve.time_of(number), self._arrive, number)

    def _arrive(self, number: float) -> None:
        self._next_arrival(number)
        self._begin(int(self._arrivals.random() * self._clients.count))

    def _think(self, client: int) -> None:
        think = self._arrivals.expovariate(1 / self._clients.think_time)
        self._agenda.at(self._agenda.now + think, self._begin, client)

    def _begin(self, client: int) -> None:
        self._count("calls")
        self._start(FleetCall(client, self._agenda.now, self._fleet))

    def _start(self, call: FleetCall) -> None:
        """Make the first attempt of a call, if the budget admits it."""
        budget = call.tier.budget
        if budget is not None and not budget.admit(call.client, call.started, self._waits.random()):
            self._count("budget_refusals")
            self._give_up(call)
            return
        self._send(call)

    def _send(self, call: FleetCall) -> None:
        """Send the next attempt of a call."""
        if call.ended:
            return  # it was dropped with the call above
        call.attempt += 1
        request = call.request = AttemptRequest(call)
        below = call.tier.below
        if below is not None:
            request.below = FleetCall(call.client, self._agenda.now, below, request)
            self._start(request.below)
        else:
            self._count("first_attempts" if call.first else "retries")
            verdict = self._service.offer(request)
            if verdict is not None:
                self._count("refusals")
                self._fail(call, verdict)
                return
        limit = self._attempt_limit(call)
        if limit < inf and not request.ended:
            self._agenda.at(self._agenda.now + limit, self._time_out, request)

    def _attempt_limit(self, call: FleetCall) -> float:
        """Return the seconds that an attempt may take: at most what is left of the timeout, but for a final attempt."""
        limit, timeout = call.tier.attempt_timeout, call.tier.limits.timeout
        if limit is None:
            return inf
        left = inf if timeout is None else timeout - self._seconds_since(call)
        return min(limit, left) if left > 0 else limit

    def _seconds_since(self, call: FleetCall) -> float:
        """Return the seconds since a call began; a time that misses the timeout by rounding alone is the timeout.

        Otherwise the wait that `clamp` leaves could be too short to change the clock, without end.
        """
        elapsed, timeout = self._agenda.now - call.started, call.tier.limits.timeout
        return timeout if timeout is not None and 0 < timeout - elapsed < _ROUNDING else elapsed

    def _respond(self, request: AttemptRequest, failed: bool) -> None:
        """Hand a response of the service to the client or the layer, which still waits for it."""
        request.ended = True
        if failed:
            self._count("failures")
            self._fail(request.call, TRANSIENT)
        else:
            self._succeed(request.call)

    def _succeed(self, call: FleetCall) -> None:
        """End a call with a success, and hand the response to the caller above."""
        now, budget, parent = self._agenda.now, call.tier.budget, call.parent
        if budget is not None:
            budget.release(call.client, now, call.cost)
            budget.succeeded(call.client, now, call.cost)
        if parent is None:
            self._count("successes")
            self._series.delays.append(now - call.started)
            self._end(call)
        elif parent.ended:
            self._count("wasted")
        else:
            parent.ended = True
            self._succeed(parent.call)

    def _time_out(self, request: AttemptRequest) -> None:
        if not request.ended:
            if request.below is None:
                self._count("timeouts")
            self._abandon(request)
            self._fail(request.call, _TIMED_OUT)

    def _abandon(self, request: AttemptRequest) -> None:
        """End a request that its caller no longer waits for, and the calls below it, if abandoned work is dropped."""
        request.ended = True
        call = request.below
        if call is None:
            self._service.abandon(request)
        elif self._scenario.service.abandoned == "dropped":
            call.ended = True
            if call.tier.budget is not None:
                call.tier.budget.release(call.client, self._agenda.now, call.cost)
            if call.request is not None and not call.request.ended:
                self._abandon(call.request)

    def _fail(self, call: FleetCall, verdict: Verdict) -> None:
        """Decide about a failed attempt: enter the next one, or end the call."""
        now, tier, budget = self._agenda.now, call.tier, call.tier.budget
        if budget is not None:
            budget.release(call.client, now, call.cost)
            budget.failed(call.client, now, verdict)
        step = decide(
            tier.limits,
            tier.backoff,
            verdict,
            attempt=call.attempt,
            elapsed=self._seconds_since(call),
            u=self._waits.random(),
            repeatable=True,
            previous=call.previous,
        )
        if isinstance(step, Stop) or (verdict.exhausted and not tier.retry_exhausted):
            self._give_up(call)
            return
        if budget is not None:
            cost = budget.take(call.client, now, verdict)
            if cost is None:
                self._count("budget_refusals")
                self._give_up(call)
                return
            call.cost = cost
            budget.wait(call.client, now, step.delay)
        call.previous = step.delay
        self._agenda.at(now + step.delay, self._send, call)

    def _give_up(self, call: FleetCall) -> None:
        """End a call without a success; the caller above gets an error."""
        parent = call.parent
        if parent is None:
            self._count("gave_up")
            self._end(call)
        elif not parent.ended:
            parent.ended = True
            self._fail(parent.call, self._used_up)

    def _end(self, call: FleetCall) -> None:
        if self._clients.arrivals == "closed":
            self._think(call.client)

    def _count(self, name: str) -> None:
        series = self._series
        values: list[float] = getattr(series, name)
        values[min(int(self._agenda.now / series.step), series.bins - 1)] += 1
