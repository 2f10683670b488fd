"""The cohort engine: a mean field. It moves counts of calls between attempts and time bins, not single calls.

Its time does not depend on the number of clients. It has the means of a large fleet and none of its chance: a queue
forms only when more arrives than the workers can serve. Calls of one attempt that are sent in one bin count as equally
old, and an attempt is not cut at the timeout of its call. It has no memory of a call's last wait.
"""

from math import exp, inf
from typing import TYPE_CHECKING

import numpy as np

from forbear_simulate.engines.budgets.rules import make_mean_budget
from forbear_simulate.engines.mean_service import NONE, MeanService
from forbear_simulate.engines.resolution import step_parts
from forbear_simulate.engines.time_series import TimeSeries
from forbear_simulate.engines.wait_bins import WaitKernels
from forbear_simulate.engines.waits import wait_table
from forbear_simulate.scenario.fields import refuse
from forbear_simulate.scenario.load import RateCurve
from forbear_simulate.scenario.scenario import Clients, Scenario

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Counts = NDArray[np.float64]


def simulate_cohort(scenario: Scenario, *, series: TimeSeries | None = None) -> TimeSeries:
    """Return the mean time series of a scenario. It has no chance and no delays of single calls.

    Raises ScenarioError for what has no mean here: a backoff that reads the last delay (decorrelated jitter), layers,
    and some budgets of groups. `series` is an empty one to fill, which the caller can read after an interruption; None
    for a new one.
    """
    if scenario.layers:
        rule = "empty in the cohort engine"
        refuse("layers", rule, f"{len(scenario.layers)} layers", "choose the exact engine")
    return _Cohorts(scenario, series or TimeSeries(scenario.step, scenario.bins)).run()


class _Cohorts:
    """The counts of one simulation. In every array, row n is attempt n + 1 and a column is a time bin."""

    def __init__(self, scenario: Scenario, series: TimeSeries) -> None:
        clients = scenario.clients
        policy, server = clients.policy, scenario.service
        table = wait_table(policy.limits, policy.backoff)
        if table.reads_last:
            rule = "a policy whose waits do not depend on the last wait"
            refuse("clients.policy", rule, policy.backoff, "choose another jitter, or the exact engine")
        self._parts = parts = step_parts(scenario, table)
        self._step, self._bins = scenario.step / parts, scenario.bins * parts
        self._budget = make_mean_budget(scenario, self._step)
        self._scenario, self._series = scenario, series
        limited = None if server.rate_limit is None else server.retry_after
        self._waits = waits = WaitKernels(policy.limits, policy.backoff, table, self._step, limited)
        self._rows = waits.last + 1 + waits.ends_at_timeout  # the last row is for final attempts at the timeout
        timeout = clients.attempt_timeout
        self._limit = inf if timeout is None else timeout
        patience = self._bins if timeout is None else max(round(timeout / self._step), 1)
        self._delays = np.arange(waits.longest) * self._step
        shape = (self._rows, self._bins + waits.longest + 2)
        self._due, self._due_age = np.zeros(shape), np.zeros(shape)  # attempts to send; the sum of their ages
        self._age = np.zeros((self._rows, self._bins))  # the mean age of calls at the attempt sent in a bin, in seconds
        self._patience = patience
        self._service = MeanService(scenario, self._step, self._bins, self._rows, patience)
        self._ended = 0.0  # the calls that have ended in this bin
        self._failures = _Failures(self._rows)
        self._limited = _Failures(self._rows) if limited is not None else self._failures  # with a Retry-After
        self._kinds = [self._failures] if limited is None else [self._failures, self._limited]

    def run(self) -> TimeSeries:
        """Let the scenario happen, bin by bin, and return its time series."""
        new_calls = _NewCalls(self._scenario.clients, self._step)
        series, parts = self._series, self._parts
        if self._budget is not None and self._budget.level() is not None:
            series.budget_level = [0.0] * series.bins
        levels = series.budget_level
        for t in range(self._bins):
            new = new_calls.begin(t, self._ended)
            series.calls[t // parts] += new
            self._ended = 0.0
            for failures in self._kinds:
                failures.clear()
            self._admit(t, new)
            self._send(t)
            self._time_out(t)  # before service: a request of this bin that timed out has no client any more
            self._serve(t)
            self._decide(t)
            if levels and self._budget is not None:
                levels[t // parts] = self._budget.level() or 0.0
        return series

    def _admit(self, t: int, new: float) -> None:
        """Let new calls send their first attempt, as far as a budget that counts them admits it."""
        admitted = new if self._budget is None else self._budget.admit(t * self._step, new)
        if admitted < new:
            self._series.budget_refusals[t // self._parts] += new - admitted
            self._give_up(t, new - admitted)
        self._due[0, t] += admitted

    def _give_up(self, t: int, calls: float) -> None:
        self._series.gave_up[t // self._parts] += calls
        self._ended += calls

    def _send(self, t: int) -> None:
        """Send the attempts that are due: to the queue, back as refused, or into nothing."""
        service, series, place = self._service, self._series, t // self._parts
        due = self._due[:, t]
        np.divide(self._due_age[:, t], due, out=self._age[:, t], where=due > NONE)
        first, retries = float(due[0]), float(due[1:].sum())
        series.first_attempts[place] += first
        series.retries[place] += retries
        if self._budget is not None:
            self._budget.sent(retries)
        at_once = t == 0 and self._scenario.clients.arrivals == "herd"
        if not at_once:
            service.refill()
        kind = service.kinds[t]
        if kind == "refuse":
            self._refuse(t, due)
            return
        if kind != "drop" and self._scenario.service.rate_limit is not None:
            refused = service.limit_rate(due)
            self._limited.throttled += refused
            series.refusals[place] += float(refused.sum())
            self._limited.add(refused, refused * self._age[:, t])
            due = due - refused
        service.accept(t, due)
        if at_once:
            self._refuse_excess(t, 0.0 if kind == "hold" else self._scenario.service.workers)

    def _refuse_excess(self, t: int, workers: float = 0.0) -> None:
        """Refuse the requests that find the queue full before so many workers begin."""
        refused = self._service.refuse_excess(t, workers)
        if refused is not None:
            self._failures.throttled += refused
            self._refuse(t, refused)

    def _refuse(self, t: int, refused: "Counts") -> None:
        self._series.refusals[t // self._parts] += float(refused.sum())
        self._failures.add(refused, refused * self._age[:, t])

    def _serve(self, t: int) -> None:
        """Let workers begin, count the responses of this bin, and refuse the requests that find the queue full."""
        service, series, place = self._service, self._series, t // self._parts
        service.serve(t, self._age)
        answered, ages = service.answers(t)
        first, retried = float(answered[0]), float(answered[1:].sum())
        failure = self._scenario.service.failure
        if failure:
            series.failures[place] += (first + retried) * failure
            self._failures.add(answered * failure, ages * failure)
            first, retried = first * (1 - failure), retried * (1 - failure)
        series.successes[place] += first + retried
        self._ended += first + retried
        if self._budget is not None:
            self._budget.succeeded(t * self._step, first, retried)
        self._refuse_excess(t)
        series.wasted[place] += service.count_wasted(t)
        queued = max(service.queued, 0.0)
        series.queued[place] += queued / self._parts
        series.in_system[place] += (queued + service.busy) / self._parts

    def _time_out(self, t: int) -> None:
        """End the attempts whose clients have waited for the attempt timeout."""
        late = self._service.time_out(t)
        if late is None:
            return
        self._series.timeouts[t // self._parts] += float(late.sum())
        self._failures.timed_out += late
        self._failures.add(late, late * (self._age[:, t - self._patience] + self._limit))

    def _decide(self, t: int) -> None:
        """Put the retries of this bin's failures where the waits of the policy put them; end the other calls."""
        now = t * self._step
        kinds = self._kinds
        if self._budget is not None:
            failed = sum((kind.count for kind in kinds), np.zeros(self._rows))
            self._budget.failed(now, float(failed[0]), float(failed[1:].sum()))
        wanted: list[tuple[int, float, float, Counts, float]] = []  # row, count, age, kernel, share at the timeout
        retries = throttled = timed_out = gave_up = 0.0
        last, endless = self._waits.last, self._waits.endless
        grown, advance = self._waits.grown, self._waits.advance
        for kind in kinds:
            ages = kind.age.tolist()
            for n, count in enumerate(kind.count.tolist()):
                if count <= NONE:
                    continue
                if n > last or (n == last and not endless):
                    gave_up += count
                    continue
                age = ages[n] / count
                kernel, share, final = self._waits.after(n, age, limited=kind is not self._failures)
                share += final
                gave_up += count * (1 - share)
                if share > 0:
                    wanted.append((n, count, age, kernel, final))
                    retries += count * share
                    throttled += float(kind.throttled[n]) * share
                    timed_out += float(kind.timed_out[n]) * share
        granted = retries if self._budget is None else self._budget.grant(now, retries, throttled, timed_out)
        self._series.budget_refusals[t // self._parts] += retries - granted
        self._give_up(t, gave_up + retries - granted)
        if granted <= 0:
            return
        part = granted / retries  # the same for all attempts: the budget does not see which one it is
        for n, count, age, kernel, final in wanted:
            bins = slice(t, t + len(kernel))
            sent = kernel * (count * part)
            ages_sent = sent * (age + self._delays[: len(kernel)])
            if advance < 1 and grown <= n < last:
                self._due[n, bins] += sent * (1 - advance)
                self._due_age[n, bins] += ages_sent * (1 - advance)
                sent, ages_sent = sent * advance, ages_sent * advance
            row = min(n + 1, last)
            self._due[row, bins] += sent
            self._due_age[row, bins] += ages_sent
            if final:
                self._due[-1, t + len(kernel)] += final * count * part


class _Failures:
    """The failed attempts of one bin, by their row: their number, the sum of their ages, and those of two kinds."""

    def __init__(self, rows: int) -> None:
        self.count, self.age = np.zeros(rows), np.zeros(rows)
        self.throttled, self.timed_out = np.zeros(rows), np.zeros(rows)

    def add(self, count: "Counts", age: "Counts") -> None:
        """Add failed attempts, and the sum of the ages of their calls, in seconds."""
        self.count += count
        self.age += age

    def clear(self) -> None:
        """Begin a new bin."""
        for values in (self.count, self.age, self.throttled, self.timed_out):
            values[:] = 0.0


class _NewCalls:
    """The new calls of each bin, from 0 on: open clients, a herd, or closed clients that think between two calls."""

    def __init__(self, clients: Clients, step: float) -> None:
        self._clients, self._step = clients, step
        self._curve = RateCurve(clients)
        self._closed, self._herd = clients.arrivals == "closed", clients.arrivals == "herd"
        length = step / clients.think_time
        self._leaving = 1 - exp(-length)
        self._stays = self._leaving / length  # of those that begin to think anywhere in a bin
        self._thinking = float(clients.count)

    def begin(self, t: int, ended: float) -> float:
        """Return the calls that begin in the bin t; so many ended in the bin before."""
        if self._closed:
            quick = ended * (1 - self._stays)  # these thought for less than the rest of that bin
            self._thinking += ended - quick
            new = self._thinking * self._leaving
            self._thinking -= new
            return quick + new
        if self._herd:
            return float(self._clients.count) if t == 0 else 0.0
        return self._curve.count_expected((t + 1) * self._step) - self._curve.count_expected(t * self._step)
