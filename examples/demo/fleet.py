"""The fleet part: the same outage without and with a retry budget, simulated in virtual time.

The exact engine does it: a small fleet takes it less than a second, and unlike the cohort engine it needs no numpy.
"""

from collections.abc import Iterator

from forbear_simulate import FleetOutcome, read_mapping, simulate
from forbear_simulate.cli.options import EXAMPLE

FLEETS = {"without a budget": (), "with a budget": ("budget=brooker",)}
"""The two fleets, by the options in which they differ: each client has a budget of its own, or none."""


def compare(seed: int) -> Iterator[tuple[str, FleetOutcome]]:
    """Simulate both fleets and yield their outcomes; they get the same calls."""
    for name, options in FLEETS.items():
        yield name, simulate(read_mapping(EXAMPLE, options), engine="exact", seed=seed)


def share_after(outcome: FleetOutcome) -> float:
    """Return the share of the calls after the outage that succeed, at most 1."""
    end = round(outcome.scenario.windows[-1].end / outcome.scenario.step)
    return min(sum(outcome.bins["successes"][end:]) / sum(outcome.bins["calls"][end:]), 1.0)
