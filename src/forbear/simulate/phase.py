"""Maps of phases: the triggers, or the loads and attempts, after which the goodput comes back or stays down.

They are data. The command line draws them. The boundary of worst-case stability stands beside them. It is for a service
that still does abandoned work, and for clients with timeouts. If load * attempts is below the capacity, the goodput
comes back after every trigger. Above the boundary, it may stay down after a large one.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import isinf

from forbear.policy import Policy
from forbear.simulate.changes import with_value
from forbear.simulate.fields import refuse
from forbear.simulate.markov import chain_modes
from forbear.simulate.outcome import FleetOutcome
from forbear.simulate.runs import Engine, simulate
from forbear.simulate.scenario import Scenario, Window
from forbear.simulate.verdict import TriggerTrial, before_trigger, load_and_capacity, try_trigger

SIZES = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
"""The sizes of triggers in a map: the share of the capacity that is lost."""
LENGTHS = (1.0, 2.0, 5.0, 10.0, 20.0, 60.0)
"""The lengths of triggers in a map, in seconds."""


@dataclass(frozen=True, slots=True)
class PhaseMap:
    """A map of triggers by size and length, with the time until the goodput is back."""

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


@dataclass(frozen=True, slots=True)
class LoadMap:
    """A map of loads and numbers of attempts, with the time until the goodput is back after one trigger."""

    loads: tuple[float, ...]
    """New calls per second; the rows of the map."""
    attempts: tuple[int, ...]
    """The attempts of a call; the columns of the map."""
    recovery: tuple[tuple[float, ...], ...]
    """The seconds from the end of the trigger until the goodput is back; infinity if it stays down."""
    capacity: float

    def boundary(self, attempts: int) -> float:
        """Return the load at which load times attempts is the capacity."""
        return self.capacity / attempts


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
    """
    load, capacity = load_and_capacity(scenario)
    for size in sizes:
        if not 0 < size <= 1:
            refuse("sizes", "shares of the capacity of more than 0 and at most 1", size, "write 0.5 for 50 %")
    healthy = before_trigger(scenario)
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


def load_map(scenario: Scenario, loads: Sequence[float], attempts: Sequence[int], window: Window) -> LoadMap:
    """Return what follows one trigger for each load, in calls per second, and each number of attempts.

    The boundary of the map is a curve: load * attempts = capacity. Raises ScenarioError as `verdict` does.
    """
    capacity = load_and_capacity(scenario)[1]
    rows: list[tuple[float, ...]] = []
    for load in loads:
        row: list[float] = []
        for count in attempts:
            changed = with_value(with_value(scenario, "clients.rate", load), "clients.policy.attempts", count)
            load_and_capacity(changed)
            row.append(try_trigger(before_trigger(changed), window, scenario.duration).recovery)
        rows.append(tuple(row))
    return LoadMap(tuple(loads), tuple(attempts), tuple(rows), capacity)


def compare(
    scenario: Scenario, policies: Mapping[str, Policy], *, engine: Engine = "cohort", runs: int = 1, seed: int = 0
) -> dict[str, FleetOutcome]:
    """Return the outcome of a scenario under each of the policies, by the same names.

    In the exact engine, all policies meet the same arrivals. Raises ScenarioError as `simulate` does.
    """
    return {
        name: simulate(
            replace(scenario, clients=replace(scenario.clients, policy=policy)), engine=engine, runs=runs, seed=seed
        )
        for name, policy in policies.items()
    }


def _try(healthy: Scenario, size: float, length: float, watch: float) -> TriggerTrial:
    """Return what follows a service that has lost a share of its capacity for a time."""
    window = Window("hold", 0.0, length) if size == 1 else Window("slow", 0.0, length, 1 / (1 - size))
    return try_trigger(healthy, window, watch)
