"""Maps of phases: the triggers after which the goodput comes back or stays down.

They are data. The command line draws them. The boundary of worst-case stability stands beside them. It is for a service
that still does abandoned work, and for clients with timeouts. If load * attempts is below the capacity, the goodput
comes back after every trigger. Above the boundary, it may stay down after a large one.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import isinf

from forbear_simulate.analysis.markov import chain_modes
from forbear_simulate.analysis.verdict import TriggerTrial, drop_triggers, load_and_capacity, try_trigger
from forbear_simulate.scenario.fields import refuse
from forbear_simulate.scenario.scenario import Scenario, Window

SIZES = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
"""The sizes of triggers in a map: the share of the capacity that is lost."""
LENGTHS = (1.0, 2.0, 5.0, 10.0, 20.0, 60.0)
"""The lengths of triggers in a map, in seconds."""


@dataclass(frozen=True, slots=True)
class PhaseMap:
    """A map of triggers by size and length, with the time until the goodput is back. Example: see `phase_map`."""

    sizes: tuple[float, ...]
    """The shares of the capacity that the triggers take, up to 1; the rows of the map."""
    lengths: tuple[float, ...]
    """The lengths of the triggers in seconds; the columns of the map."""
    recovery: tuple[tuple[float, ...], ...]
    """The seconds from the end of a trigger until the goodput is back; infinity if it stays down."""
    load: float
    """New calls per second."""
    capacity: float
    """The requests that the service can serve per second."""
    attempts: float
    """The attempts of a call if every attempt fails."""

    @property
    def worst_load(self) -> float:
        """The requests per second if every attempt fails: load times attempts."""
        return self.load * self.attempts

    @property
    def overload(self) -> float:
        """The size from which on a trigger is an overload: what is left is less than the load."""
        return max(1 - self.load / self.capacity, 0.0)

    @property
    def boundary(self) -> float | None:
        """The size from which on what is left is less than load times attempts; None if that is so without a trigger.

        None says that retries alone can keep the service overloaded.
        """
        return 1 - self.worst_load / self.capacity if self.worst_load <= self.capacity else None

    def stays(self, size: float, length: float) -> bool:
        """Return whether a trigger of the map keeps the goodput down."""
        return isinf(self.recovery[self.sizes.index(size)][self.lengths.index(length)])


def phase_map(
    scenario: Scenario,
    sizes: Sequence[float] = SIZES,
    lengths: Sequence[float] = LENGTHS,
    *,
    progress: Callable[[int, int], None] | None = None,
) -> PhaseMap:
    """Return what follows triggers that take a share of the capacity for a time, in the cohort engine.

    The scenario's own windows and changes of the rate are left out. A size of 1 is a service that stands still. Each
    trigger is watched for the duration of the scenario, but at most for 3000 bins. `progress(done, all)` is called
    after each trigger. Raises ScenarioError as `verdict` does, and for a size or length that is not possible.

    >>> scenario = Scenario(duration=30, step=1, clients=Clients(rate=80, attempt_timeout=1), service=Server(workers=5))
    >>> phase_map(scenario, sizes=(0.1, 1.0), lengths=(5.0,)).recovery  # seconds, for each size and length
    ((0.0,), (inf,))
    """
    load, capacity = load_and_capacity(scenario)
    for size in sizes:
        if not 0 < size <= 1:
            refuse("sizes", "shares of the capacity of more than 0 and at most 1", size, "write 0.5 for 50 %")
    healthy = drop_triggers(scenario)
    done = 0
    rows: list[tuple[float, ...]] = []
    for size in sizes:
        row: list[float] = []
        for length in lengths:
            row.append(_try(healthy, size, length, scenario.duration).recovery)
            done += 1
            if progress is not None:
                progress(done, len(sizes) * len(lengths))
        rows.append(tuple(row))
    chain = chain_modes(healthy)
    return PhaseMap(tuple(sizes), tuple(lengths), tuple(rows), load, capacity, chain.attempts)


def _try(healthy: Scenario, size: float, length: float, watch: float) -> TriggerTrial:
    """Return what follows a service that has lost a share of its capacity for a time."""
    window = Window("hold", 0.0, length) if size == 1 else Window("slow", 0.0, length, 1 / (1 - size))
    return try_trigger(healthy, window, watch)
