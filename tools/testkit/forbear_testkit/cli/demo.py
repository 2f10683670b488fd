"""Results of the demo that need no run of it."""

from collections.abc import Callable, Iterable, Iterator
from functools import cache
from typing import TypeVar

from examples.demo.fleet import FLEETS
from examples.demo.shared import SharedResult
from examples.demo.upload import UploadResult
from forbear_simulate import FleetOutcome, read_mapping, simulate
from forbear_simulate.cli.options import EXAMPLE

T = TypeVar("T")


UPLOADED = UploadResult(
    size=50_331_648,
    kept=32_505_856,
    continued_at=32_505_856,
    sent=50_515_968,
    generations=1,
    equal=True,
    codes=(-9, 0),
)
"""The expected result of the upload part of the demo."""


def uploaded(found: UploadResult) -> Callable[[int], UploadResult]:
    """Return a stand-in for the upload part of the demo, with this result."""

    def kill_and_run_again(seed: int) -> UploadResult:
        return found

    return kill_and_run_again


SHARED = SharedResult(processes=12, killed=4, successes=9_000, granted=850, refused=1_500, unshared=900, lost=7, back=1)
"""A result of the shared part of the demo that keeps its bound of 934 retries."""


def shared_by(result: SharedResult) -> Callable[[], SharedResult]:
    """Return a stand-in for the shared part of the demo, with this result."""
    return lambda: result


@cache
def fleets() -> tuple[tuple[str, FleetOutcome], ...]:
    """Return the results of the fleet part of the demo, by the engine that is quicker."""
    return tuple((name, simulate(read_mapping(EXAMPLE, changes))) for name, changes in FLEETS.items())


def replay(results: Iterable[T]) -> Callable[..., Iterator[T]]:
    """Return a stand-in for `compare` of a part of the demo, with these results."""

    def contest(*_: object) -> Iterator[T]:
        return iter(results)

    return contest
