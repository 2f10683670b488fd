"""An embedded cloud that fails each object so many times, and measures how long clients wait between their requests."""

import itertools
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import sqrt
from statistics import mean, stdev
from time import monotonic

from forbear_cloud import Cloud, Fault
from forbear_cloud.journal import LoggedRequest


@dataclass(frozen=True)
class Measured:
    """The waits before one retry, over many calls: the mean and its standard error, in seconds."""

    mean: float
    error: float


@dataclass
class Clock:
    """The times at which requests arrived, by what they were for."""

    times: dict[str, list[float]] = field(default_factory=dict)

    def note(self, name: str) -> int:
        """Note that a request for `name` arrived now; return how many arrived before."""
        known = self.times.setdefault(name, [])
        known.append(monotonic())
        return len(known) - 1

    def waits(self, retries: int) -> list[Measured]:
        """Return what was measured before each of the first retries; fails if a call made fewer of them."""
        assert self.times
        rows = []
        for times in self.times.values():
            gaps = [after - before for before, after in itertools.pairwise(times)]
            assert len(gaps) >= retries, gaps
            rows.append(gaps[:retries])
        return [Measured(mean(column), stdev(column) / sqrt(len(column))) for column in zip(*rows, strict=True)]


@contextmanager
def timed_cloud(calls: int, retries: int, method: str = "GET") -> Generator[tuple[Cloud, Clock]]:
    """A cloud with the bucket b and objects o0000, o0001, ..., whose first requests of `method` each get a 503."""
    clock = Clock()
    with Cloud() as cloud:
        cloud.store.create_bucket("b")
        for name in names(calls):
            cloud.store.put("b", name, b"x")
            cloud.fault(Fault.status(503, times=retries, method=method, path=f"/{name}"))
        add = cloud.requests.add

        def noted(entry: LoggedRequest) -> None:
            add(entry)
            name = entry.path.rpartition("/")[2]
            if name.startswith("o0") and entry.method == method:
                clock.note(name)

        cloud.requests.add = noted  # type: ignore[method-assign]
        yield cloud, clock


def names(calls: int) -> list[str]:
    """The names of the objects that calls read."""
    return [f"o{each:04d}" for each in range(calls)]
