"""Sweeps: success and load of a fleet while one value of its scenario changes, such as the failure rate of the service.

`read_values` reads the values of a sweep from a text, and `sweep` simulates them.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import isfinite

from forbear_simulate.analysis.runs import Engine, simulate
from forbear_simulate.scenario.changes import full_key, is_whole, with_value
from forbear_simulate.scenario.fields import refuse
from forbear_simulate.scenario.scenario import Scenario

POINTS = 11
"""The number of values in a range."""
_EXAMPLE = "write service.failure=0..1, or clients.count=10,100,1000"


@dataclass(frozen=True, slots=True)
class SweptFigures:
    """Figures of one scenario for each value of a key, in the order of the values. Example: see `sweep`."""

    key: str
    """The key of the value, with its tables: "service.failure"."""
    values: tuple[float, ...]
    success: tuple[float, ...]
    """The share of the ended calls that succeeded."""
    load: tuple[float, ...]
    """The attempts per second, as a mean over the simulation."""
    amplification: tuple[float, ...]
    """The attempts for each first attempt."""


def read_values(text: str) -> tuple[str, tuple[float, ...]]:
    """Return the key and the values of a text such as "service.failure=0..1" or "clients.count=10,100,1000".

    A range has `POINTS` values at equal distances. Times are in seconds, and rates per second. Raises ScenarioError
    for a text of another form.
    """
    key, equals, values = (part.strip() for part in text.partition("="))
    low, dots, high = values.partition("..")
    try:
        numbers = [float(part) for part in ((low, high) if dots else values.split(","))]
    except ValueError:
        numbers = []
    if not key or not equals or not numbers or not all(map(isfinite, numbers)):
        refuse("sweep", "a key, and a range or numbers without a unit", text, _EXAMPLE)
    if not dots:
        return full_key(key), tuple(numbers)
    first, last = numbers
    if first >= last:
        refuse("sweep", "a range from a smaller number to a larger one", text, _EXAMPLE)
    return full_key(key), tuple(first + (last - first) * i / (POINTS - 1) for i in range(POINTS))


def sweep(
    scenario: Scenario,
    key: str,
    values: Sequence[float],
    *,
    engine: Engine = "cohort",
    runs: int = 1,
    seed: int = 0,
    workers: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> SweptFigures:
    """Return the success and the load of a scenario for each of the values under a key, such as "service.failure".

    Values of a key that has whole numbers only are rounded, each one once. `engine`, `runs`, `seed` and `workers` are
    those of `simulate`, and `progress(done, all)` is called after each run. Raises ScenarioError for an unknown key,
    for a value that it cannot have, and as `simulate` does.

    >>> scenario = Scenario(duration=10, clients=Clients(rate=50, attempt_timeout=1))
    >>> result = sweep(scenario, "service.workers", [1, 2, 5])
    >>> [round(share, 2) for share in result.success]
    [0.82, 1.0, 1.0]
    """
    key = full_key(key)
    if is_whole(scenario, key):
        values = list(dict.fromkeys(map(round, values)))
    changed = [with_value(scenario, key, value) for value in values]
    done = 0

    def advance(_: int, __: int) -> None:
        nonlocal done
        done += 1
        if progress is not None:
            progress(done, len(changed) * runs)

    figures = [
        simulate(each, engine=engine, runs=runs, seed=seed, workers=workers, progress=advance).figures
        for each in changed
    ]
    return SweptFigures(
        key,
        tuple(values),
        tuple(1 - each.gave_up_share for each in figures),
        tuple(each.offered_load for each in figures),
        tuple(each.amplification for each in figures),
    )
