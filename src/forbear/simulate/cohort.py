"""The cohort engine: a mean field. It moves counts of calls between attempts and time bins, not single calls.

Its time does not depend on the number of clients. It has the means of a large fleet and none of its chance: a queue
forms only when more arrives than the workers can serve. Calls of one attempt that are sent in one bin count as equally
old, and an attempt is not cut at the timeout of its call. It has no memory of a call's last wait.
"""

from math import exp
from typing import TYPE_CHECKING

from forbear.core.check import INFINITY
from forbear.simulate.arrays import np
from forbear.simulate.course import Course
from forbear.simulate.fields import refuse
from forbear.simulate.load import RateCurve
from forbear.simulate.mean_budgets import MeanBudget, scenario_budget
from forbear.simulate.scenario import Scenario
from forbear.simulate.service_times import ServiceTimes
from forbear.simulate.wait_bins import WaitKernels

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Counts = NDArray[np.float64]

_NONE = 1e-9  # fewer calls than this are none


def simulate_cohort(scenario: Scenario, *, budget: MeanBudget | None = None, course: Course | None = None) -> Course:
    """Return the mean course of a scenario. It has no chance and no delays of single calls.

    `budget` gates retries when they are decided, as in the exact engine; None (default) is the budget and throttle of
    the scenario. Raises ScenarioError for what has no mean here: a backoff that reads the last delay (decorrelated
    jitter), layers, and some budgets of groups. `course` is an empty course to fill, which the caller can read after an
    interruption; None for a new one.
    """
    _check(scenario)
    budget = scenario_budget(scenario) if budget is None else budget
    return _Cohorts(scenario, budget, course or Course(scenario.step, scenario.bins)).run()


def _check(scenario: Scenario) -> None:
    """Raise ScenarioError for what this engine cannot simulate."""
    cure = "choose the exact engine"
    if scenario.layers:
        refuse("layers", "empty in the cohort engine", f"{len(scenario.layers)} layers", cure)
    timeout = scenario.clients.attempt_timeout
    if timeout is not None and abs(_steps(timeout, scenario.step) * scenario.step - timeout) > 0.05 * timeout:
        rule = f"such that the attempt timeout of {timeout:g} s is a whole number of steps, within 5 %"
        refuse("step", rule, scenario.step, f"choose {timeout / 5:g} s, or the exact engine")


def _steps(timeout: float, step: float) -> int:
    """Return an attempt timeout in whole steps, at least one."""
    return max(round(timeout / step), 1)


class _Cohorts:
    """The counts of one simulation. In every array, row n is attempt n + 1 and a column is a time bin."""

    def __init__(self, scenario: Scenario, budget: MeanBudget | None, course: Course) -> None:
        clients = scenario.clients
        self._scenario, self._budget = scenario, budget
        self._step, self._bins = float(scenario.step), scenario.bins
        self._course = course
        policy, server = clients.policy, scenario.service
        limited = None if server.rate_limit is None else server.retry_after
        self._waits = waits = WaitKernels(policy.limits, policy.backoff, self._step, limited)
        if waits.reads_last:
            rule = "a policy whose waits do not depend on the last wait"
            refuse("clients.policy", rule, policy.backoff, "choose another jitter, or the exact engine")
        self._rows = waits.last + 1 + waits.ends_at_timeout  # the last row is for final attempts at the timeout
        timeout = clients.attempt_timeout
        self._limit = INFINITY if timeout is None else timeout
        self._patience = self._bins if timeout is None else _steps(timeout, self._step)
        self._times = ServiceTimes(scenario.service)
        tail = waits.longest + self._patience + 2
        shape = (self._rows, self._bins + tail)
        self._due, self._due_age = np.zeros(shape), np.zeros(shape)  # attempts to send; the sum of their ages
        self._age = np.zeros(shape)  # the mean age of calls at the attempt sent in a bin, in seconds
        self._waiting = np.zeros(shape)  # requests in the queue by the bin they were sent in
        self._late = np.zeros(shape)  # attempts that will time out in a bin
        self._queued = 0.0
        self._head = 0  # the oldest bin that may have requests in the queue
        self._tokens = float(scenario.service.burst)  # of the rate limit
        self._thinking = float(clients.count)
        self._failures = _Failures(self._rows)
        self._limited = _Failures(self._rows) if limited is not None else self._failures  # with a Retry-After

    def run(self) -> Course:
        """Let the scenario happen, bin by bin, and return its course."""
        clients = self._scenario.clients
        curve = RateCurve(clients)
        closed, herd = clients.arrivals == "closed", clients.arrivals == "herd"
        leaving = 1 - exp(-self._step / clients.think_time)
        course = self._course
        if self._budget is not None and self._budget.level() is not None:
            course.budget_level = [0.0] * self._bins
        levels = course.budget_level
        for t in range(self._bins):
            if closed:
                new = self._thinking * leaving
                self._thinking -= new
            elif herd:
                new = float(clients.count) if t == 0 else 0.0
            else:
                new = curve.expected((t + 1) * self._step) - curve.expected(t * self._step)
            course.calls[t] = new
            self._failures.clear()
            self._limited.clear()
            self._admit(t, new)
            self._send(t)
            self._time_out(t)  # before service: a request of this bin that timed out has no client any more
            self._serve(t)
            self._decide(t)
            if levels and self._budget is not None:
                levels[t] = self._budget.level() or 0.0
            if closed:
                self._thinking += course.successes[t] + course.gave_up[t]
        return course

    def _admit(self, t: int, new: float) -> None:
        """Let new calls send their first attempt, as far as a budget that counts them admits it."""
        admitted = new if self._budget is None else self._budget.admit(t * self._step, new)
        self._course.budget_refusals[t] += new - admitted
        self._course.gave_up[t] += new - admitted
        self._due[0, t] += admitted

    def _window(self, t: int) -> tuple[str, float]:
        """Return the kind of the window in the middle of a bin ("" for none) and how many times slower work is."""
        window = self._scenario.window_at((t + 0.5) * self._step)
        return ("", 1.0) if window is None else (window.kind, window.factor if window.kind == "slow" else 1.0)

    def _send(self, t: int) -> None:
        """Send the attempts that are due: to the queue, back as refused, or into nothing."""
        due = self._due[:, t]
        np.divide(self._due_age[:, t], due, out=self._age[:, t], where=due > _NONE)
        self._course.first_attempts[t] = float(due[0])
        self._course.retries[t] = float(due[1:].sum())
        kind, _ = self._window(t)
        rate_limit = self._scenario.service.rate_limit
        if kind == "refuse":
            self._refuse(t, due)
            return
        if kind == "drop":
            self._late[:, t + self._patience] += due
            due = np.zeros(self._rows)
        if rate_limit is not None:
            due = self._limit_rate(t, due, rate_limit)
        if kind != "drop":
            self._waiting[:, t] = due
            self._queued += float(due.sum())

    def _limit_rate(self, t: int, due: "Counts", rate_limit: float) -> "Counts":
        """Refuse what is over the rate limit and return the rest."""
        tokens = self._tokens + rate_limit * self._step
        count = float(due.sum())
        passed = min(count, tokens)
        self._tokens = min(tokens - passed, float(self._scenario.service.burst))
        if passed == count:
            return due
        refused = due * (1 - passed / count)
        self._limited.throttled += refused
        self._course.refusals[t] += float(refused.sum())
        self._limited.add(refused, self._age[:, t])
        return due - refused

    def _refuse(self, t: int, refused: "Counts") -> None:
        self._course.refusals[t] += float(refused.sum())
        self._failures.add(refused, self._age[:, t])

    def _serve(self, t: int) -> None:
        """Serve the requests that have waited longest, and refuse those of this bin that find the queue full."""
        server = self._scenario.service
        kind, factor = self._window(t)
        budget = 0.0 if kind == "hold" else server.workers * self._step  # seconds of work
        work = budget
        while self._head <= t:
            waiting = self._waiting[:, self._head]
            count = float(waiting.sum())
            if count > _NONE:
                cost = self._cost(t - self._head, factor)
                share = min(work / (count * cost), 1.0) if cost > 0 else 1.0
                if share <= 0:
                    break
                served = waiting * share
                waiting -= served
                work -= count * share * cost
                self._queued -= count * share
                self._respond(t, self._head, served, factor, lost=kind == "drop")
                if share < 1:
                    break
            if self._head == t:
                break
            self._head += 1
        excess = self._queued - (INFINITY if server.queue is None else server.queue)
        fresh = self._waiting[:, t]
        if excess > _NONE and (arrived := float(fresh.sum())) > 0:
            refused = fresh * min(excess / arrived, 1.0)
            fresh -= refused
            self._queued -= float(refused.sum())
            self._failures.throttled += refused
            self._refuse(t, refused)
        self._course.queued[t] = max(self._queued, 0.0)
        busy = (budget - work) / self._step
        self._course.in_system[t] = self._course.queued[t] + busy
        if self._budget is not None:
            self._budget.serving(busy)

    def _cost(self, waited: int, factor: float) -> float:
        """Return the mean seconds of work for a request that waited so many bins."""
        if self._scenario.service.abandoned == "done":
            return self._times.mean * factor
        return self._times.mean_within(self._limit - waited * self._step, factor)

    def _respond(self, t: int, sent: int, served: "Counts", factor: float, *, lost: bool) -> None:
        """Count the responses to requests of the bin `sent` that are served in the bin t."""
        course, now = self._course, t * self._step
        waited = (t - sent) * self._step
        in_time = 0.0 if t - sent >= self._patience else self._times.share_within(self._limit - waited, factor)
        if self._scenario.service.abandoned == "done":
            course.wasted[t] += float(served.sum()) * (1 - in_time)
        if t - sent < self._patience:
            self._late[:, sent + self._patience] += served * (1.0 if lost else 1 - in_time)
        if lost:
            return
        answered = served * in_time
        failed = answered * self._scenario.service.failure
        course.failures[t] += float(failed.sum())
        self._failures.add(failed, self._age[:, sent] + (waited + self._times.mean * factor))
        first = float(answered[0] - failed[0])
        retried = float((answered[1:] - failed[1:]).sum())
        course.successes[t] += first + retried
        if self._budget is not None:
            self._budget.succeeded(now, first, retried)

    def _time_out(self, t: int) -> None:
        """End the attempts whose clients have waited for the attempt timeout."""
        sent = t - self._patience
        if sent < 0:
            return
        waiting = self._waiting[:, sent]
        late = self._late[:, t] + waiting
        if self._scenario.service.abandoned == "dropped":
            self._queued -= float(waiting.sum())
            waiting[:] = 0.0
        self._course.timeouts[t] = float(late.sum())
        self._failures.timed_out += late
        self._failures.add(late, self._age[:, sent] + self._limit)

    def _decide(self, t: int) -> None:
        """Put the retries of this bin's failures where the waits of the policy put them; end the other calls."""
        course, now = self._course, t * self._step
        kinds = [self._failures] if self._limited is self._failures else [self._failures, self._limited]
        if self._budget is not None:
            failed = sum((kind.count for kind in kinds), np.zeros(self._rows))
            self._budget.failed(now, float(failed[0]), float(failed[1:].sum()))
        wanted: list[tuple[int, float, float, Counts, float]] = []  # row, count, age, kernel, share at the timeout
        retries = throttled = timed_out = 0.0
        last, endless = self._waits.last, self._waits.endless
        for kind in kinds:
            for n in range(self._rows):
                count = float(kind.count[n])
                if count <= _NONE:
                    continue
                if n > last or (n == last and not endless):
                    course.gave_up[t] += count
                    continue
                age = float(kind.age[n]) / count
                kernel, final = self._waits.after(n, age, limited=kind is not self._failures)
                share = float(kernel.sum()) + final
                course.gave_up[t] += count * (1 - share)
                if share > 0:
                    wanted.append((n, count, age, kernel, final))
                    retries += count * share
                    throttled += float(kind.throttled[n]) * share
                    timed_out += float(kind.timed_out[n]) * share
        granted = retries if self._budget is None else self._budget.grant(now, retries, throttled, timed_out)
        course.budget_refusals[t] += retries - granted
        course.gave_up[t] += retries - granted
        if granted <= 0:
            return
        part = granted / retries  # the same for all attempts: the budget does not see which one it is
        for n, count, age, kernel, final in wanted:
            row, bins = min(n + 1, last), slice(t, t + len(kernel))
            sent = kernel * (count * part)
            self._due[row, bins] += sent
            self._due_age[row, bins] += sent * (age + np.arange(len(kernel)) * self._step)
            if final:
                self._due[-1, t + len(kernel)] += final * count * part


class _Failures:
    """The failed attempts of one bin, by their row: their number, the sum of their ages, and those of two kinds."""

    def __init__(self, rows: int) -> None:
        self.count, self.age = np.zeros(rows), np.zeros(rows)
        self.throttled, self.timed_out = np.zeros(rows), np.zeros(rows)

    def add(self, count: "Counts", age: "Counts") -> None:
        """Add failed attempts of calls that are so old on average, in seconds."""
        self.count += count
        self.age += count * age

    def clear(self) -> None:
        """Begin a new bin."""
        for values in (self.count, self.age, self.throttled, self.timed_out):
            values[:] = 0.0
