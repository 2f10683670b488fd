"""The verdicts of a storm on the places of its plan: proved, not shown, or not reached by any test."""

import os
import sys
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from forbear_audit.storm.faults import PlannedFault
from forbear_audit.storm.judge import StormFinding
from forbear_audit.storm.places import StormPlace, StormPlan
from forbear_audit.storm.run_record import RunRecord
from forbear_audit.storm.stack import source_of

VERDICTS = ("proved", "not shown", "not reached")
"""The verdicts on a place, in the order in which they are printed."""


class ReachedPlaces:
    """The places of a plan that one test reached: their numbers in the plan, and the findings on them."""

    def __init__(self, plan: StormPlan, clean: RunRecord) -> None:
        self._plan = plan
        self._places = {(call.label, call.number): plan.of(call) for call in clean.calls}
        self._findings: list[tuple[int, dict[str, str]]] = []
        self._tried: list[tuple[int, str]] = []
        self.numbers = sorted({number for numbers in self._places.values() for number in numbers})

    def has(self, rule: str, fault: PlannedFault) -> bool:
        """Return whether the call that a fault meets belongs to a place of this rule."""
        return any(self._plan.places[number].rule == rule for number in self._of(fault))

    def add(self, fault: PlannedFault, findings: Iterable[StormFinding]) -> None:
        """Add the findings of a run with a fault to the places of the call that it met."""
        for number in self._of(fault):
            self._tried.append((number, f"{fault.name}{'+' if fault.lasting else ''}"))
            self._findings += [(number, finding.as_dict()) for finding in findings]

    def _of(self, fault: PlannedFault) -> list[int]:
        return self._places.get((fault.label, fault.number), [])

    def as_dict(self) -> dict[str, Any]:
        """Return the numbers, the faults that were tried and the findings, for `verdicts_of`."""
        return {"reached": self.numbers, "tried": self._tried, "findings": self._findings}


@dataclass(frozen=True, slots=True)
class PlaceVerdict:
    """The verdict on one place of a plan, one of `VERDICTS`, with a text that says why."""

    path: str
    line: int
    rule: str
    verdict: str
    text: str


def verdicts_of(plan: StormPlan, results: Iterable[Mapping[str, Any]]) -> list[PlaceVerdict]:
    """Return the verdict on each place of a plan, in its order. `results` are those of the tests, as JSON has them."""
    parts = [result["plan"] for result in results if "plan" in result]
    verdicts: list[PlaceVerdict] = []
    for number, place in enumerate(plan.places):
        reached = any(number in part["reached"] for part in parts)
        tried = {name for part in parts for other, name in part["tried"] if other == number}
        findings = [finding for part in parts for other, finding in part["findings"] if other == number]
        verdict, text = _verdict(place, findings, tried) if reached else _verdict_without_calls(plan, place)
        verdicts.append(PlaceVerdict(place.path, place.line, place.rule, verdict, text))
    return verdicts


def _verdict(place: StormPlace, findings: list[dict[str, str]], tried: set[str]) -> tuple[str, str]:
    for finding in findings:
        if place.is_proved_by(finding["kind"]):
            return "proved", f"{finding['kind']} by {finding['fault']}{' in this file' if place.is_file else ''}"
    if any(finding["kind"] == "suspected" for finding in findings):
        return "not shown", "sent again, but no server counts its effects"
    names = [name for name in place.faults if name in tried]
    return "not shown", f"no harm by {', '.join(names)}" if names else "no fault was tried"


def _verdict_without_calls(plan: StormPlan, place: StormPlace) -> tuple[str, str]:
    """Return the verdict on a place that no test reached; the tests may have loaded its module from another file."""
    parts = PurePosixPath(place.path).with_suffix("").parts
    loaded = sys.modules.get(".".join(parts[parts[0] == "src" :]))
    file = getattr(loaded, "__file__", None)
    if file is not None and os.path.realpath(source_of(file) or file) != os.path.realpath(plan.folder / place.path):
        return "not reached", f"the tests loaded other code: {file}; install the project again"
    return "not reached", "no test sends a call that a storm sees from there"


def verdict_lines(verdicts: list[PlaceVerdict]) -> list[str]:
    """Return a line with the number of each verdict, and one line for each place, the proved ones first."""
    counts = Counter(verdict.verdict for verdict in verdicts)
    numbers = ", ".join(f"{counts[name]} {name}" for name in VERDICTS if counts[name])
    rows = [(one.verdict, f"{one.path}:{one.line}", one.rule, one.text) for one in verdicts]
    rows.sort(key=lambda row: VERDICTS.index(row[0]))
    widths = [max((len(row[column]) for row in rows), default=0) for column in range(3)]
    lines = [f"the plan: {numbers or 'no places'}"]
    for *cells, text in rows:
        padded = [cell.ljust(width) for cell, width in zip(cells, widths, strict=True)]
        lines.append(f"  {'  '.join(padded)}  {text}")
    return lines
