"""What a case found, for people and for programs, and whether the targets are met."""

from typing import NamedTuple

from benchmarks.table import OURS
from benchmarks.transfers.cases import Case, Plan
from benchmarks.transfers.contenders import RAW
from benchmarks.transfers.runs import Run

_MIB = 1024 * 1024
_TARGETS = {"large-up": 1.3, "large-down": 1.3, "small-up": 2.0, "small-down": 2.0}
_MEMORY = 64
"""MiB above the idle process, whatever the size of the file."""


class Found(NamedTuple):
    """The runs of one case."""

    case: Case
    plan: Plan
    runs: dict[str, list[Run]]

    def best(self, name: str) -> Run:
        """The quickest that was right, or the quickest."""
        return min(self.runs[name], key=lambda run: (not run.right, run.outcome.seconds))

    def ratio(self, name: str) -> float | None:
        """Seconds as a multiple of the floor's, if that was run."""
        if RAW not in self.runs:
            return None
        return self.best(name).outcome.seconds / self.best(RAW).outcome.seconds

    def memory(self, name: str) -> float:
        """The most of all runs, in MiB."""
        return max(run.outcome.memory for run in self.runs[name]) / _MIB

    def targets(self) -> list[tuple[str, float, float, bool]]:
        """What ours should reach: what it is, the limit, what was measured, whether it is met."""
        if OURS not in self.runs:
            return []
        right = all(run.right for run in self.runs[OURS])
        targets: list[tuple[str, float, float, bool]] = []
        if self.case.name in _TARGETS and (ratio := self.ratio(OURS)) is not None:
            limit = _TARGETS[self.case.name]
            targets.append((f"x {RAW}", limit, ratio, right and ratio <= limit))
        if self.case.large:
            memory = self.memory(OURS)
            targets.append(("MiB above the idle process", _MEMORY, memory, right and memory <= _MEMORY))
        return targets

    def as_json(self) -> dict[str, object]:
        """Plain data for other programs."""
        return {
            "name": self.case.name,
            "title": self.case.title(self.plan),
            "runs": {
                name: [{**run._asdict(), "outcome": run.outcome._asdict(), "right": run.right} for run in runs]
                for name, runs in self.runs.items()
            },
            "ratios": {name: self.ratio(name) for name in self.runs},
            "targets": [
                dict(zip(("of", "limit", "measured", "met"), target, strict=True)) for target in self.targets()
            ],
        }

    def as_text(self) -> str:
        """The table for people."""
        width = max(map(len, self.runs))
        lines = [
            f"{self.case.title(self.plan)}  [{self.case.name}]",
            f"{'':{width}}  {'s':>7}  x floor  {'CPU s':>7}  {'MiB':>5}  requests  faults",
        ]
        lines += [f"{name:{width}}  {self._row(name)}".rstrip() for name in self.runs]
        lines += [
            f"  target {'met' if met else 'MISSED'}: {OURS} at most {limit:g} {of}, measured {measured:.2f}"
            for of, limit, measured, met in self.targets()
        ]
        if RAW in self.runs:
            floor = self.best(RAW)
            lines.append(
                f"  of the {floor.outcome.seconds:.2f} s of {RAW}, the server computed for {floor.server_seconds:.2f} s"
            )
        return "\n".join(lines)

    def _row(self, name: str) -> str:
        best, ratio = self.best(name), self.ratio(name)
        seconds, cpu = best.outcome.seconds, best.outcome.cpu
        floors = "" if ratio is None else f"{ratio:.2f}"
        figures = f"{seconds:>7.2f}  {floors:>7}  {cpu:>7.2f}  {self.memory(name):>5.0f}"
        return f"{figures}  {best.requests:>8}  {best.faults:>6}  {self._trouble(name)}"

    def _trouble(self, name: str) -> str:
        """What was not right in the worst run."""
        worst = max(self.runs[name], key=lambda run: (run.wrong, run.again, run.strays, run.outcome.failed != 0))
        count = 1 if self.case.large else self.plan.files
        parts = [
            f"{worst.wrong} of {count} missing or wrong" if worst.wrong else "",
            f"{worst.again} generations too many" if worst.again else "",
            f"{worst.strays} things left behind" if worst.strays else "",
            f"{worst.outcome.failed} failed" if worst.outcome.failed else "",
            worst.outcome.error,
        ]
        return "; ".join(filter(None, parts))
