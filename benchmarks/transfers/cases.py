"""What is transferred, in which direction, with which share of faults, and who does it how often."""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from benchmarks.transfers.contenders import RAW
from benchmarks.transfers.files import SMALL_SIZE, make_large, make_small, workplace
from benchmarks.transfers.runs import Run, Stage
from benchmarks.transfers.service import Weather, service

_SLOW = 15.0
"""Seconds: who takes longer goes only once, for the best of several tells little more then."""


class Plan(NamedTuple):
    """MiB of the large file, how many small ones, rounds, the share of faults, and whose Python runs the peers."""

    size: int
    files: int
    rounds: int
    share: float
    peers: str


class Case(NamedTuple):
    """Large or small files, up or down, in which weather."""

    large: bool
    up: bool
    weather: Weather

    @property
    def name(self) -> str:
        """As in the JSON."""
        name = f"{'large' if self.large else 'small'}-{'up' if self.up else 'down'}"
        return name if self.weather == "fair" else f"{name}-{self.weather}"

    def title(self, plan: Plan) -> str:
        """As people say it."""
        what = f"{plan.size:,} MiB in one file" if self.large else f"{plan.files:,} files of {SMALL_SIZE // 1024} KiB"
        return f"{what}, {'up' if self.up else 'down'}{_WEATHERS[self.weather].format(plan.share)}"


_WEATHERS = {
    "fair": "",
    "503": ", {:.0%} of requests answered with 503",
    "lost": ", {:.0%} of replies lost after the request was carried out",
}
CASES = (
    Case(large=True, up=True, weather="fair"),
    Case(large=True, up=False, weather="fair"),
    Case(large=False, up=True, weather="fair"),
    Case(large=False, up=False, weather="fair"),
    Case(large=True, up=True, weather="503"),
    Case(large=True, up=False, weather="503"),
    Case(large=False, up=True, weather="503"),
    Case(large=False, up=False, weather="503"),
    Case(large=False, up=True, weather="lost"),
)


def compete(plan: Plan, names: list[str]) -> Iterator[tuple[Case, dict[str, list[Run]]]]:
    """Every case in turn, with the runs of each contender; another one begins each round.

    In bad weather there is one round: its time is mostly waits, and what counts is what arrives.
    """
    room = 3 * plan.size * 1024 * 1024 + 3 * plan.files * SMALL_SIZE
    with workplace(room) as place, service() as cloud:
        make_large(place / "large", plan.size)
        make_small(place / "small", plan.files)
        home = place / "home"
        home.mkdir()
        for case in CASES:
            files: Path = place / ("large" if case.large else "small")
            stage = Stage(cloud, files, up=case.up, weather=case.weather, share=plan.share, peers=plan.peers, home=home)
            able = [name for name in names if name != RAW or case.weather != "lost"]  # it does not connect again
            if able:
                yield case, _rounds(stage, able, plan.rounds if case.weather == "fair" else 1)


def _rounds(stage: Stage, names: list[str], rounds: int) -> dict[str, list[Run]]:
    runs: dict[str, list[Run]] = {name: [] for name in names}
    for number in range(rounds):
        first = number % len(names)
        for name in names[first:] + names[:first]:
            if not runs[name] or runs[name][0].outcome.seconds < _SLOW:
                runs[name].append(stage.run(name))
    return runs
