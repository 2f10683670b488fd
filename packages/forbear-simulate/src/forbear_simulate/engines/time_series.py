"""`TimeSeries`, what happened in a simulation: counts per time bin and in all."""

from dataclasses import dataclass, field

COUNTS = (
    "calls", "first_attempts", "retries", "successes", "failures", "refusals", "timeouts", "budget_refusals",
    "gave_up", "wasted",
)  # fmt: skip


def _zeros() -> list[float]:
    return []


@dataclass(slots=True)
class TimeSeries:
    """The time series of a simulation. Every list has one number per time bin of `step` seconds.

    An exact engine counts whole numbers, the cohort engine means. A call succeeds or is given up; an attempt succeeds,
    or fails in one of three ways.
    """

    step: float
    bins: int
    calls: list[float] = field(default_factory=_zeros)
    """New calls."""
    first_attempts: list[float] = field(default_factory=_zeros)
    retries: list[float] = field(default_factory=_zeros)
    successes: list[float] = field(default_factory=_zeros)
    """Responses without an error that reach a waiting client: the goodput."""
    failures: list[float] = field(default_factory=_zeros)
    """Responses with a transient error that reach a waiting client."""
    refusals: list[float] = field(default_factory=_zeros)
    """Attempts that the service refuses, because it is full or out."""
    timeouts: list[float] = field(default_factory=_zeros)
    """Attempts whose client stopped waiting."""
    budget_refusals: list[float] = field(default_factory=_zeros)
    """Retries, and first attempts, that a budget refused."""
    gave_up: list[float] = field(default_factory=_zeros)
    """Calls that ended without a success."""
    wasted: list[float] = field(default_factory=_zeros)
    """Requests that the service finished after their client had given up on them."""
    in_system: list[float] = field(default_factory=_zeros)
    """The mean number of requests in the service, waiting or served."""
    queued: list[float] = field(default_factory=_zeros)
    """The mean number of requests that wait for a worker."""
    budget_level: list[float] = field(default_factory=_zeros)
    """The mean share of tokens left in the clients' buckets at the end of each bin; empty for other rules."""
    delays: list[float] = field(default_factory=_zeros)
    """The seconds from the begin of a call to its success, one for each call (exact engine only)."""

    def __post_init__(self) -> None:
        for name in (*COUNTS, "in_system", "queued"):
            setattr(self, name, [0.0] * self.bins)

    def total(self, name: str, start: float = 0.0, end: float | None = None) -> float:
        """Return the sum of one list over the bins from `start` to `end`, in seconds; None is the end of all."""
        return sum(self._sum_between(name, start, end))

    def mean(self, name: str, start: float = 0.0, end: float | None = None) -> float:
        """Return the mean of one list over the bins from `start` to `end`, in seconds."""
        values = self._sum_between(name, start, end)
        return sum(values) / len(values)

    @property
    def amplification(self) -> float:
        """The attempts for each first attempt, 1 without retries."""
        first = self.total("first_attempts")
        return (first + self.total("retries")) / first if first else 1.0

    def _sum_between(self, name: str, start: float, end: float | None) -> list[float]:
        values: list[float] = getattr(self, name)
        return values[round(start / self.step) : None if end is None else round(end / self.step)]
