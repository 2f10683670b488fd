"""Transfers that are killed again and again: starts them in processes of their own, and counts what is sent in all."""

import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Literal, TypeAlias

from forbear_testkit import ROOT
from forbear_testkit.transfer.campaign.line import Line
from forbear_testkit.transfer.campaign.plans import Way

Direction: TypeAlias = Literal["up", "down", "copy"]

_LONGEST = 120  # seconds


@dataclass
class Killed:
    """One transfer over a line, as it goes on from kill to kill.

    `size` is the number of bytes to transfer, `parts` the size of a chunk or the number of slices.
    """

    line: Line
    direction: Direction
    source: str
    target: str
    state: Path
    size: int
    parts: int
    kills: int = 0
    lost: list[int] = field(default_factory=list[int])
    """The bytes on the line in each run that was killed."""

    @property
    def way(self) -> Way:
        """Which way the data goes."""
        return "up" if self.direction == "up" else "down"

    def kill_after(self, count: int, way: Way | None = None) -> None:
        """Run it, and kill it when so many more bytes have come over the line."""
        before = self.line.passed[self.way]
        with self._started() as process:
            self.line.when(way or self.way, count, process.kill)
            output, errors = process.communicate(timeout=_LONGEST)
        assert process.returncode == -9, f"it ended before it was killed: {output!r} {errors!r}"
        self.kills += 1
        self.lost.append(self.line.passed[self.way] - before)

    def finish(self) -> int:
        """Run it to its end, and return the generation."""
        with self._started() as process:
            output, errors = process.communicate(timeout=_LONGEST)
        assert process.returncode == 0, errors
        return int(output)

    @property
    def factor(self) -> float:
        """Return how many times its size has gone over the line."""
        return self.line.passed[self.way] / self.size

    def _started(self) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [
                sys.executable, "-m", "forbear_testkit.transfer.campaign.victim", self.direction, self.line.url,
                self.source, self.target, str(self.state), str(self.parts),
            ],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT,
        )  # fmt: skip


def moments(dice: Random, size: int, kills: int) -> list[int]:
    """After how many bytes to kill each run: all over the transfer, and now and then at its very beginning.

    Each run goes on where the one before was, so what is left of the transfer is shared among the kills to come.
    """
    found, left = list[int](), float(size)
    for remaining in range(kills, 0, -1):
        count = dice.uniform(0, 1.8 * left / (remaining + 1)) if dice.random() < 0.8 else dice.uniform(1, 2_000)
        found.append(int(count) + 1)
        left -= count
    return found
