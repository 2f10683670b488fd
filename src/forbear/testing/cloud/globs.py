"""Glob patterns of a listing; `*` and `?` stop at a slash, `**` does not. Knows no objects.

A pattern is a list of steps over sets of places in a name. A set is one integer, of which bit i is the place before
character i, so that a step takes the same few operations wherever it begins, and matching never goes back.
"""

from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from forbear.testing.cloud.errors import ApiError, invalid

_LONGEST = 1024
_DEEPEST = 20


@dataclass(frozen=True, slots=True)
class _Name:
    """A name to match: the places before each character, those before any but a slash, and all of them."""

    text: str
    before: dict[str, int]
    inner: int
    every: int


_Step: TypeAlias = Callable[[_Name, int], int]


class Glob:
    """A pattern to match whole names with; 400 for one whose brackets, braces or escapes do not end."""

    def __init__(self, glob: str) -> None:
        if len(glob) > _LONGEST:
            raise invalid(f"Invalid value for matchGlob: it must have at most {_LONGEST} characters, got {len(glob)}.")
        reader = _Reader(glob)
        self._steps = reader.alternatives(0)
        if reader.place < len(glob):
            raise reader.unended()

    def matches(self, text: str) -> bool:
        """Return whether the pattern stands for the whole of a name."""
        before: dict[str, int] = {}
        for place, char in enumerate(text):
            before[char] = before.get(char, 0) | 1 << place
        every = (1 << len(text) + 1) - 1
        name = _Name(text, before, every >> 1 & ~before.get("/", 0), every)
        return bool(self._steps(name, 1) >> len(text))


class _Reader:
    """Reads a pattern from left to right."""

    def __init__(self, glob: str) -> None:
        self._glob = glob
        self.place = 0

    def unended(self) -> ApiError:
        text = f"Invalid value for matchGlob: '{self._glob[:80]}'. A bracket, brace, range or escape in it has no end."
        return invalid(text)

    def alternatives(self, depth: int) -> _Step:
        """Read up to the brace that ends the alternatives, or to the end of the pattern outside of braces."""
        if depth > _DEEPEST:
            raise invalid(f"Invalid value for matchGlob: its braces are nested more than {_DEEPEST} deep.")
        ways: list[list[_Step]] = [[]]
        while self.place < len(self._glob):
            char = self._glob[self.place]
            if depth and char == "}":
                return _any_of(ways)
            self.place += 1
            if depth and char == ",":
                ways.append([])
            else:
                ways[-1].append(self._step(char, depth))
        if depth:
            raise self.unended()
        return _any_of(ways)

    def _step(self, char: str, depth: int) -> _Step:
        match char:
            case "*":
                deep = self._glob.startswith("*", self.place)
                self.place += deep
                return _anything if deep else _anything_inside
            case "?":
                return _one_inside
            case "[":
                return self._class()
            case "{":
                step = self.alternatives(depth + 1)
                self.place += 1
                return step
            case "\\":
                self.place += 1
                if self.place > len(self._glob):
                    raise self.unended()
                return _one(self._glob[self.place - 1])
            case _:
                return _one(char)

    def _class(self) -> _Step:
        """Read a class such as [a-z] after its bracket; [^a-z] is all but those, and a slash is never in it."""
        end = self._glob.find("]", self.place + 1)
        inside = self._glob[self.place : end] if end > 0 else ""
        negated = inside.startswith("^")
        starts, ends = _merged(self._ranges(inside[negated:]))
        self.place = end + 1

        def step(name: _Name, places: int) -> int:
            wanted = 0
            for char, before in name.before.items():
                index = bisect_right(starts, char) - 1
                if (index >= 0 and char <= ends[index]) is not negated:
                    wanted |= before
            return (places & wanted & name.inner) << 1

        return step

    def _ranges(self, inside: str) -> list[tuple[str, str]]:
        if not inside:
            raise self.unended()
        ranges: list[tuple[str, str]] = []
        place = 0
        while place < len(inside):
            low = high = inside[place]
            if inside[place + 1 : place + 2] == "-" and place + 2 < len(inside):
                high = inside[place + 2]
                place += 2
            if low > high:
                raise self.unended()
            ranges.append((low, high))
            place += 1
        return ranges


def _merged(ranges: list[tuple[str, str]]) -> tuple[list[str], list[str]]:
    """Return the first and the last characters of ranges that do not overlap, in order."""
    starts: list[str] = []
    ends: list[str] = []
    for low, high in sorted(ranges):
        if ends and low <= ends[-1]:
            ends[-1] = max(ends[-1], high)
        else:
            starts.append(low)
            ends.append(high)
    return starts, ends


def _any_of(ways: list[list[_Step]]) -> _Step:
    def step(name: _Name, places: int) -> int:
        reached = 0
        for steps in ways:
            here = places
            for each in steps:
                here = each(name, here)
            reached |= here
        return reached

    return step


def _one(char: str) -> _Step:
    return lambda name, places: (places & name.before.get(char, 0)) << 1


def _one_inside(name: _Name, places: int) -> int:
    return (places & name.inner) << 1


def _anything(name: _Name, places: int) -> int:
    """Every place from the first one on."""
    first = places & -places
    return name.every & -first if first else 0


def _anything_inside(name: _Name, places: int) -> int:
    """Every place from one of these on, up to the next slash: adding carries a bit to the end of a run of ones."""
    inner = places & name.inner
    return places | (name.inner + inner ^ name.inner)
