"""The time that is left: right for small and large files, and unknown rather than wrong."""

from collections.abc import Sequence

import pytest

from forbear_transfer.cli.shared.statistics import Statistics, TimeEstimate
from forbear_transfer.items import Item, Outcome, Status
from forbear_transfer.progress import Finished, Moved, Planned, Started

KIB, MIB = 1024, 1024 * 1024
EACH, BANDWIDTH = 0.05, 20 * MIB
"""The server of these tests: 50 ms for a file, and 20 MiB/s."""


class Server:
    """A run in which each file takes a fixed time, and more by its bytes; the clock is its own."""

    def __init__(self, sizes: Sequence[int]) -> None:
        self.now = 0.0
        self.sizes = list(sizes)
        self.statistics = Statistics(lambda: self.now)
        self.statistics(Planned(len(sizes), sum(sizes), True))

    @property
    def left(self) -> float | None:
        """Return the estimate of the time left."""
        return self.statistics.time_left(self.statistics.speed())

    @property
    def real(self) -> float:
        """Return the time that is left by the rule of this server, for whole files."""
        return sum(EACH + size / BANDWIDTH for size in self.sizes)

    def run(self, count: int) -> None:
        """Transfer so many files, in steps of at most a second, and look at the estimate after each."""
        for size in self.sizes[:count]:
            item = Item("a", "gs://b/a", size=size)
            self.statistics(Started(item))
            self.now += EACH
            rest = size
            while rest:
                step = min(rest, MIB)
                self.now += step / BANDWIDTH
                rest -= step
                self.statistics(Moved(item, step))
                _ = self.left
            self.statistics(Finished(Outcome(item, Status.DONE, bytes=size)))
            _ = self.left
        del self.sizes[:count]


MIXED = [KIB if number % 3 else 2 * MIB for number in range(900)]


@pytest.mark.parametrize(
    ("sizes", "done"),
    [
        ([KIB] * 500, 100),
        ([100 * MIB] * 10, 3),
        (MIXED, 100),
        (MIXED, 800),
        ([50 * MIB] * 5 + [KIB] * 500, 105),
        ([KIB] * 300 + [200 * MIB] * 3, 301),
        ([KIB] * 300 + [200 * MIB] * 3 + [KIB] * 300, 302),
    ],
    ids=["small", "large", "mixed", "mixed, late", "large first", "small first", "small, large, small"],
)
def test_the_estimate_is_right(sizes: list[int], done: int) -> None:
    """If both kinds of files were seen, or all are alike, the estimate is within a third of the real time."""
    server = Server(sizes)
    server.run(done)
    assert server.left == pytest.approx(server.real, rel=0.34)


def test_large_files_after_small_ones_are_unknown() -> None:
    """Small files say nothing of the bandwidth: their bytes a second would make hours of minutes."""
    server = Server([KIB] * 2000 + [MIB] * 1000)
    server.run(200)
    assert server.left is None
    assert server.statistics.speed() < MIB
    server.run(2000)
    assert server.left == pytest.approx(server.real, rel=0.34)


def test_nothing_is_known_at_first() -> None:
    """Before a small file has ended there is no estimate, nor without a total or without bytes."""
    server = Server([KIB] * 10)
    assert server.left is None
    assert TimeEstimate().seconds(1, 100 * MIB, 0.0) is None
    assert TimeEstimate().seconds(0, 10 * MIB, 1.0 * MIB) == 10
    statistics = Statistics(lambda: 0.0)
    statistics(Planned(2, None, True))
    assert statistics.time_left(1.0) is None


def test_waits_count() -> None:
    """A wait between two files belongs to their time, since there will be more of them."""
    server = Server([KIB] * 100)
    for _ in range(20):
        server.run(1)
        server.now += 2.0
    assert server.left == pytest.approx(80 * (EACH + 2.0), rel=0.1)
