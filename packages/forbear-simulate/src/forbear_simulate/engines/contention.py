"""Contention: writers that change one record with optimistic concurrency, and begin again after a conflict.

The model is that of Marc Brooker's study of jitter (AWS Architecture Blog, "Exponential Backoff And Jitter", 2015).
"""

from dataclasses import dataclass
from random import Random
from typing import ClassVar

from forbear import Policy
from forbear.verdicts import TRANSIENT, Stop, decide
from forbear_simulate.engines.service_queue import Agenda
from forbear_simulate.scenario.fields import Section, count, seconds
from forbear_simulate.scenario.scenario import check_policy

_DEFAULT = Policy(OSError, name="default")


@dataclass(frozen=True, slots=True)
class Contention(Section):
    """N writers that all begin at once. Each one reads the version of a record and writes the next one, once.

    A write succeeds only if the version is still the one that was read. After a conflict the policy decides how long
    the writer waits before it reads again. A message takes a normally distributed time (its absolute value).
    """

    KEY: ClassVar[str] = "contention"

    writers: int = count("the number of writers", 10)
    policy: Policy = _DEFAULT
    delay: float = seconds("the mean time that a message needs on the network", 0.010)
    deviation: float = seconds("the standard deviation of that time", 0.002, zero=True)

    def __post_init__(self) -> None:
        Section.__post_init__(self)
        check_policy("contention.policy", self.policy, "pass policy.replace(budget=None)")


@dataclass(slots=True)
class ContentionCounts:
    """The result of a contention: the time, in seconds, and counts of writes."""

    time: float = 0.0
    """When the last writer had its response."""
    calls: int = 0
    """The writes that were tried, without the reads before them."""
    conflicts: int = 0
    gave_up: int = 0


class _Writer:
    """One writer: its writes so far, the version that it has read, and its last wait."""

    __slots__ = ("attempt", "previous", "version")

    def __init__(self) -> None:
        self.attempt = 0
        self.version = 0
        self.previous: float | None = None


def simulate_contention(contention: Contention, *, seed: int = 0) -> ContentionCounts:
    """Return what the writers did; the same seed gives the same. All have succeeded or given up in the end."""
    return _Record(contention, seed).run()


class _Record:
    """The record of one simulation, and the messages of its writers."""

    def __init__(self, contention: Contention, seed: int) -> None:
        self._contention = contention
        self._policy = contention.policy
        self._agenda = Agenda()
        self._counts = ContentionCounts()
        self._network, self._waits = (Random(f"{name} {seed}") for name in ("network", "waits"))
        self._version = 0

    def run(self) -> ContentionCounts:
        """Let all writers begin, and return what happened."""
        for _ in range(self._contention.writers):
            self._agenda.at(self._send_message(), self._read, _Writer())
        self._agenda.run(float("inf"))
        self._counts.time = self._agenda.now
        return self._counts

    def _send_message(self, wait: float = 0.0) -> float:
        """Return when a message arrives that is sent after `wait`, in seconds."""
        delay = self._network.normalvariate(self._contention.delay, self._contention.deviation)
        return self._agenda.now + abs(delay) + wait

    def _read(self, writer: _Writer) -> None:
        """Let the record answer a read with its version."""
        writer.version = self._version
        self._agenda.at(self._send_message(), self._send_write, writer)

    def _send_write(self, writer: _Writer) -> None:
        self._agenda.at(self._send_message(), self._write, writer)

    def _write(self, writer: _Writer) -> None:
        """Let the record take a write, or refuse it because its version has changed."""
        writer.attempt += 1
        self._counts.calls += 1
        if writer.version == self._version:
            self._version += 1
            self._agenda.at(self._send_message(), self._end, writer)
        else:
            self._counts.conflicts += 1
            self._agenda.at(self._send_message(), self._conflict, writer)

    def _conflict(self, writer: _Writer) -> None:
        """Decide when a writer reads again. The whole cycle is repeated, so it is safe to."""
        step = decide(
            self._policy.limits,
            self._policy.backoff,
            TRANSIENT,
            attempt=writer.attempt,
            elapsed=self._agenda.now,
            u=self._waits.random(),
            repeatable=True,
            previous=writer.previous,
        )
        if isinstance(step, Stop):
            self._counts.gave_up += 1
            return
        writer.previous = step.delay
        self._agenda.at(self._send_message(step.delay), self._read, writer)

    def _end(self, writer: _Writer) -> None:
        """Do nothing: the writer has its response, and the agenda its time."""
