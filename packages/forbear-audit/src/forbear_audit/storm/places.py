"""The plan of a storm: the places that `forbear audit --storm-plan` suspects, with the faults that would prove them."""

import json
import os
import tokenize
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

from forbear.adapters import is_list, is_mapping, shown_value
from forbear_audit.storm.faults import FAULTS, KINDS, PROVABLE, PlannedFault
from forbear_audit.storm.run_record import SentCall

_CURE = "write it with `forbear audit --storm-plan FILE`"
_MOST_LINES = 10**9


@dataclass(frozen=True, slots=True)
class StormPlace:
    """A place that is suspected to break a rule.

    `path` is the file, relative to the folder in which the plan was written. `line` and `text` are the finding's line
    and its code. `call` has the first and the last line of the suspected call; None means a policy or a loop.
    `function` has those of the function around it; None means a policy outside of functions. `faults` would prove the
    finding; "503+" is a lasting 503.
    """

    path: str
    line: int
    rule: str
    text: str
    call: tuple[int, int] | None
    function: tuple[int, int] | None
    faults: tuple[str, ...]

    @property
    def is_file(self) -> bool:
        """Return whether the place is a whole file, where it is not known which calls a policy repeats."""
        return self.call is None and self.function is None

    def covers(self, line: int) -> bool:
        """Return whether a call that is made in this line of the file belongs to the place."""
        first, last = self.call or self.function or (1, line)
        return first <= line <= last

    def is_proved_by(self, kind: str) -> bool:
        """Return whether a finding of a storm of this kind proves the place."""
        return kind in KINDS and self.rule in KINDS[kind].proves


@dataclass(frozen=True, slots=True)
class StormPlan:
    """The places to prove, and the folder that their paths begin in."""

    places: tuple[StormPlace, ...]
    folder: Path

    @classmethod
    def read(cls, path: Path, folders: Iterable[Path]) -> "StormPlan":
        """Return the plan in a file; its paths begin in the first of `folders` that has all of its files.

        ValueError, with the cure, for a file that cannot be read or is no plan, for a missing file, and for code that
        has changed since.
        """
        try:
            document: Any = json.loads(path.read_text(encoding="utf-8"))
        except OSError as error:
            raise ValueError(f"cannot read {path}: {error.strerror}; {_CURE}") from None
        except (ValueError, RecursionError):
            document = None
        if (
            not is_mapping(document)
            or shown_value(document.get("version")) != "1"
            or not is_list(document.get("places"))
        ):
            raise ValueError(f"{path} is no plan of version 1; {_CURE}")
        try:
            places = tuple(_place(f"places[{number}]", item) for number, item in enumerate(document["places"]))
        except ValueError as error:
            raise ValueError(f"{path}: {error}; {_CURE}") from None
        tried = list(folders)
        folder = next((one for one in tried if all(_is_file(one / place.path) for place in places)), None)
        if folder is None:
            missing = next(place.path for place in places if not _is_file(tried[0] / place.path))
            raise ValueError(f"{path} names {missing}, which is not in {tried[0]}; run both commands in one folder")
        for place in places:
            try:
                with tokenize.open(folder / place.path) as source:
                    lines = source.read().split("\n")
            except (OSError, SyntaxError, ValueError, LookupError):
                raise ValueError(f"{path} names {place.path}, which cannot be read as Python; {_CURE} again") from None
            if lines[place.line - 1 : place.line] != [place.text]:
                raise ValueError(f"{place.path} has changed since {path} was written; {_CURE} again")
        return cls(places, folder)

    def as_dict(self) -> dict[str, Any]:
        """Return the plan as its file has it."""
        return {"version": 1, "places": [asdict(place) for place in self.places]}

    def of(self, call: SentCall) -> list[int]:
        """Return the numbers of the places that a call belongs to: those with any of the user's frames of the call.

        A place that is a whole file has the calls that no other place has.
        """
        files: dict[str, list[int]] = {}
        for file, line in call.frames:
            files.setdefault(_real(Path.cwd() / file), []).append(line)
        covering = [
            number
            for number, place in enumerate(self.places)
            if any(place.covers(line) for line in files.get(_real(self.folder / place.path), ()))
        ]
        return [number for number in covering if not self.places[number].is_file] or covering

    def faults(self, calls: Iterable[SentCall]) -> list[PlannedFault]:
        """Return the faults to try after a clean run with these calls; lasting ones only from the first of its kind."""
        planned: list[PlannedFault] = []
        begun: set[tuple[str, str]] = set()
        for call in calls:
            names = {name for number in self.of(call) for name in self.places[number].faults}
            first = (call.label, call.site) not in begun
            for name in (*FAULTS, *(f"{name}+" for name in FAULTS)):
                lasting = name.endswith("+")
                if name in names and name.removesuffix("+") in call.applicable() and (first or not lasting):
                    planned.append(PlannedFault(call.label, call.number, name.removesuffix("+"), lasting))
            begun.add((call.label, call.site))
        return planned


@cache
def _real(path: str | Path) -> str:
    return os.path.realpath(path)


def _place(name: str, item: Any) -> StormPlace:
    """Return a place of a file; ValueError that names its key if it is none."""
    if not is_mapping(item):
        raise ValueError(f"`{name}` must be a table, got {shown_value(item)}")
    values: dict[str, Any] = {}
    for key, (rule, fits) in _KEYS.items():
        if key not in item:
            raise ValueError(f"`{name}.{key}` must be {rule}, and it is missing")
        value: Any = item[key]
        if not fits(value):
            raise ValueError(f"`{name}.{key}` must be {rule}, got {shown_value(value)}")
        values[key] = tuple(value) if is_list(value) else value
    return StormPlace(**values)


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # such as a name that is too long
        return False


def _is_line(value: object) -> bool:
    return type(value) is int and 1 <= value < _MOST_LINES


def _is_span(value: Any) -> bool:
    return value is None or (is_list(value) and len(value) == 2 and all(map(_is_line, value)))


_KEYS: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "path": ("the name of a file", lambda value: isinstance(value, str) and 0 < len(value) <= 4096),
    "line": ("a number from 1", _is_line),
    "rule": (f"one of {', '.join(PROVABLE)}", lambda value: isinstance(value, str) and value in PROVABLE),
    "text": ("a line of code", lambda value: isinstance(value, str)),
    "call": ("the first and the last line, or null", _is_span),
    "function": ("the first and the last line, or null", _is_span),
    "faults": (
        f"a list of faults ({', '.join(FAULTS)}; + makes them last)",
        lambda value: is_list(value) and all(isinstance(one, str) and one.removesuffix("+") in FAULTS for one in value),
    ),
}
"""The keys of a place: what each must be, and whether a value is it."""
