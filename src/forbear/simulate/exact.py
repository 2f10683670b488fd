"""The exact engine: every call, attempt and request is an event. It decides with `forbear.core.decide` itself."""

from random import Random

from forbear.core.check import INFINITY
from forbear.core.decide import Stop, decide
from forbear.core.verdict import TRANSIENT, Verdict
from forbear.simulate.budgets import FleetBudget, fleet_budget
from forbear.simulate.course import Course
from forbear.simulate.load import RateCurve
from forbear.simulate.scenario import Scenario
from forbear.simulate.service_queue import Agenda, QueuedRequest, ServiceQueue

_ROUNDING = 1e-6  # seconds
_TIMED_OUT = TRANSIENT.replace(timed_out=True)


class FleetCall:
    """One call of a client: its attempts so far, the last wait, and the cost of the last retry."""

    __slots__ = ("attempt", "client", "cost", "previous", "started")

    def __init__(self, client: int, started: float) -> None:
        self.client = client
        self.started = started
        self.attempt = 0
        self.previous: float | None = None
        self.cost = 0


class AttemptRequest(QueuedRequest):
    """The request of an attempt, with its call; `ended` once the client has a response or stopped waiting."""

    __slots__ = ("call", "ended")

    def __init__(self, call: FleetCall) -> None:
        super().__init__()
        self.call = call
        self.ended = False


def simulate_exact(scenario: Scenario, *, seed: int = 0, budget: FleetBudget | None = None) -> Course:
    """Return the course of a scenario, event by event; the same seed gives the same course.

    `budget` holds the budgets of all clients; None (default) is the budget and throttle of the scenario. Arrivals,
    service times and waits are drawn independently, so that two policies with one seed meet the same arrivals.
    """
    return _Fleet(scenario, seed, fleet_budget(scenario) if budget is None else budget).run()


class _Fleet:
    """The clients of one simulation."""

    def __init__(self, scenario: Scenario, seed: int, budget: FleetBudget | None) -> None:
        self._scenario = scenario
        self._clients = scenario.clients
        self._limits = scenario.clients.policy.limits
        self._backoff = scenario.clients.policy.backoff
        self._budget = budget
        self._course = Course(scenario.step, scenario.bins)
        self._agenda = Agenda()
        self._arrivals, service, self._waits = (Random(f"{name} {seed}") for name in ("arrivals", "service", "waits"))
        self._service = ServiceQueue(scenario, self._agenda, service, self._course, self._respond)
        self._curve = RateCurve(self._clients)

    def run(self) -> Course:
        """Let the scenario happen and return its course."""
        clients = self._clients
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
        return self._course

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
        now = self._agenda.now
        self._count("calls")
        call = FleetCall(client, now)
        if self._budget is not None and not self._budget.admit(client, now, self._waits.random()):
            self._count("budget_refusals")
            self._give_up(call)
            return
        self._send(call)

    def _send(self, call: FleetCall) -> None:
        """Send the next attempt of a call."""
        call.attempt += 1
        self._count("first_attempts" if call.attempt == 1 else "retries")
        request = AttemptRequest(call)
        verdict = self._service.offer(request)
        if verdict is not None:
            self._count("refusals")
            self._fail(call, verdict)
            return
        limit = self._attempt_limit(call)
        if limit < INFINITY and not request.ended:
            self._agenda.at(self._agenda.now + limit, self._time_out, request)

    def _attempt_limit(self, call: FleetCall) -> float:
        """Return the seconds that an attempt may take: at most what is left of the timeout, but for a final attempt."""
        limit, timeout = self._clients.attempt_timeout, self._limits.timeout
        if limit is None:
            return INFINITY
        left = INFINITY if timeout is None else timeout - self._elapsed(call)
        return min(limit, left) if left > 0 else limit

    def _elapsed(self, call: FleetCall) -> float:
        """Return the seconds since a call began; a time that misses the timeout by rounding alone is the timeout.

        Otherwise the wait that `clamp` leaves could be too short to change the clock, without end.
        """
        elapsed, timeout = self._agenda.now - call.started, self._limits.timeout
        return timeout if timeout is not None and 0 < timeout - elapsed < _ROUNDING else elapsed

    def _respond(self, request: AttemptRequest, failed: bool) -> None:
        """Hand a response to the client, who still waits for it."""
        request.ended = True
        call, now = request.call, self._agenda.now
        if failed:
            self._count("failures")
            self._fail(call, TRANSIENT)
            return
        self._count("successes")
        self._course.delays.append(now - call.started)
        if self._budget is not None:
            self._budget.release(call.client, now, call.cost)
            self._budget.succeeded(call.client, now, call.cost)
        self._end(call)

    def _time_out(self, request: AttemptRequest) -> None:
        if not request.ended:
            request.ended = True
            self._count("timeouts")
            self._service.abandon(request)
            self._fail(request.call, _TIMED_OUT)

    def _fail(self, call: FleetCall, verdict: Verdict) -> None:
        """Decide about a failed attempt: enter the next one, or end the call."""
        now, budget = self._agenda.now, self._budget
        if budget is not None:
            budget.release(call.client, now, call.cost)
            budget.failed(call.client, now, verdict)
        step = decide(
            self._limits,
            self._backoff,
            verdict,
            attempt=call.attempt,
            elapsed=self._elapsed(call),
            u=self._waits.random(),
            repeatable=True,
            previous=call.previous,
        )
        if isinstance(step, Stop):
            self._give_up(call)
            return
        if budget is not None:
            cost = budget.take(call.client, now, verdict)
            if cost is None:
                self._count("budget_refusals")
                self._give_up(call)
                return
            call.cost = cost
        call.previous = step.delay
        self._agenda.at(now + step.delay, self._send, call)

    def _give_up(self, call: FleetCall) -> None:
        self._count("gave_up")
        self._end(call)

    def _end(self, call: FleetCall) -> None:
        if self._clients.arrivals == "closed":
            self._think(call.client)

    def _count(self, name: str) -> None:
        course = self._course
        values: list[float] = getattr(course, name)
        values[min(int(self._agenda.now / course.step), course.bins - 1)] += 1
