"""The service of the exact engine: workers, one queue, and windows in which it is slow or out; and the agenda."""

from collections import deque
from collections.abc import Callable
from enum import Enum
from heapq import heappop, heappush
from math import exp, inf
from random import Random
from typing import Any

from forbear.verdicts import Kind, Verdict
from forbear_simulate.engines.time_series import TimeSeries
from forbear_simulate.scenario.scenario import Scenario, Window

OUT = Verdict(Kind.NOT_EXECUTED)
FULL = Verdict(Kind.TRANSIENT, throttled=True)

_ROUNDING = 1e-9  # tokens


class Agenda:
    """The events to come, in the order of time; events of one time happen in the order of their entry."""

    __slots__ = ("_events", "_number", "now")

    def __init__(self) -> None:
        self.now = 0.0
        self._number = 0
        self._events: list[tuple[float, int, Callable[[Any], None], Any]] = []

    def at(self, time: float, action: Callable[[Any], None], subject: Any) -> None:
        """Enter an event: `action(subject)` at `time`, in seconds. Infinity is never."""
        if time < inf:
            self._number += 1
            heappush(self._events, (time, self._number, action, subject))

    def run(self, end: float) -> None:
        """Let all events before `end` happen."""
        events = self._events
        while events and events[0][0] < end:
            self.now, _, action, subject = heappop(events)
            action(subject)


class Stage(Enum):
    """The place of a request: outside the service, in its queue, or with a worker."""

    OUTSIDE = "not in the service"
    QUEUED = "waits for a worker"
    SERVED = "has a worker"


class QueuedRequest:
    """The request of one attempt, at the service."""

    __slots__ = ("abandoned", "stage")

    def __init__(self) -> None:
        self.stage = Stage.OUTSIDE
        self.abandoned = False


class ServiceQueue:
    """The service. `respond(request, failed)` is called with each response to a client that still waits."""

    def __init__(
        self,
        scenario: Scenario,
        agenda: Agenda,
        random: Random,
        series: TimeSeries,
        respond: Callable[[Any, bool], None],
    ) -> None:
        self._settings = scenario.service
        self._agenda = agenda
        self._random = random
        self._series = series
        self._respond = respond
        self._window: Window | None = None
        self._queue: deque[QueuedRequest] = deque()  # those that were dropped stay until their turn
        self._waiting = 0
        self._busy = 0
        self._counted_to = 0.0
        self._tokens, self._filled_at = float(self._settings.burst), 0.0
        self._limited = Verdict(Kind.TRANSIENT, retry_after=self._settings.retry_after, throttled=True)
        for window in scenario.windows:
            agenda.at(window.start, self._open_window, window)
            agenda.at(window.end, self._close_window, window)

    def offer(self, request: QueuedRequest) -> Verdict | None:
        """Accept a request and return None, or refuse it and return the verdict. A dropped one is lost: None."""
        kind = None if self._window is None else self._window.kind
        if kind == "refuse":
            return OUT
        if kind == "drop":
            return None
        if self._settings.rate_limit is not None and not self._take_token(self._settings.rate_limit):
            return self._limited
        if self._busy < self._settings.workers and kind != "hold":
            self._start(request)
        elif self._settings.queue is None or self._waiting < self._settings.queue:
            self.count_time()
            self._waiting += 1
            request.stage = Stage.QUEUED
            self._queue.append(request)
        else:
            return FULL
        return None

    def _take_token(self, rate: float) -> bool:
        """Take a token of the rate limit, and return whether there was one."""
        now = self._agenda.now
        self._tokens = min(self._tokens + (now - self._filled_at) * rate, float(self._settings.burst))
        self._filled_at = now
        granted = self._tokens >= 1 - _ROUNDING
        self._tokens -= granted
        return granted

    def abandon(self, request: QueuedRequest) -> None:
        """Note that the client of a request stopped waiting; if abandoned work is dropped, drop it."""
        request.abandoned = True
        if self._settings.abandoned == "done" or request.stage is Stage.OUTSIDE:
            return
        self.count_time()
        if request.stage is Stage.QUEUED:
            self._waiting -= 1
        else:
            self._busy -= 1
        was, request.stage = request.stage, Stage.OUTSIDE
        if was is Stage.SERVED:
            self._start_next()

    def count_time(self) -> None:
        """Add the time since the last change to the means of the time series."""
        series, now = self._series, self._agenda.now
        start, step = self._counted_to, series.step
        while start < now:
            i = int(start / step)
            end = min((i + 1) * step, now)
            if end <= start:  # the rounding of a bin's edge
                i, end = i + 1, min((i + 2) * step, now)
            if i < series.bins:
                part = (end - start) / step
                series.queued[i] += self._waiting * part
                series.in_system[i] += (self._waiting + self._busy) * part
            start = end
        self._counted_to = now

    def _start(self, request: QueuedRequest) -> None:
        self.count_time()
        self._busy += 1
        request.stage = Stage.SERVED
        time = self._draw_time()
        if self._window is not None and self._window.kind == "slow":
            time *= self._window.factor
        self._agenda.at(self._agenda.now + time, self._finish, request)

    def _start_next(self) -> None:
        """Give a free worker to the request that has waited longest."""
        if self._window is not None and self._window.kind == "hold":
            return
        while self._waiting:
            request = self._queue.popleft()
            if request.stage is Stage.QUEUED:
                self.count_time()
                self._waiting -= 1
                self._start(request)
                return
        self._queue.clear()

    def _finish(self, request: QueuedRequest) -> None:
        if request.stage is not Stage.SERVED:
            return  # it was dropped, and its worker is free already
        self.count_time()
        self._busy -= 1
        request.stage = Stage.OUTSIDE
        self._start_next()
        failed = self._random.random() < self._settings.failure
        if request.abandoned:
            self._series.wasted[min(int(self._agenda.now / self._series.step), self._series.bins - 1)] += 1
        elif self._window is None or self._window.kind != "drop":
            self._respond(request, failed)

    def _draw_time(self) -> float:
        """Return the time that a worker needs for a request, in seconds."""
        settings = self._settings
        if settings.times == "exponential":
            return self._random.expovariate(1 / settings.time)
        if settings.times == "constant":
            return settings.time
        sigma = settings.sigma
        return settings.time * exp(self._random.gauss(0.0, sigma) - sigma * sigma / 2)

    def _open_window(self, window: Window) -> None:
        self._window = window

    def _close_window(self, window: Window) -> None:
        if self._window is window:
            self._window = None
            for _ in range(min(self._settings.workers - self._busy, self._waiting)):
                self._start_next()
