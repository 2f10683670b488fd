"""`Baseline`: the findings that are known, so that only new ones count."""

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from forbear.adapters import is_mapping, shown_value
from forbear.cli.kit.links import real
from forbear_audit.findings import Finding
from forbear_audit.reading.sources import read_regular

_VERSION = 1
_LARGEST = 50_000_000


@dataclass
class Baseline:
    """A file of known findings. Each is known by its rule, path and line of code, so that other lines may change."""

    path: Path
    known: Counter[str]

    @classmethod
    def read(cls, path: Path) -> "Baseline":
        """Return the baseline in a file; raises ValueError for a file that is none, OSError if it cannot be read."""
        try:
            document: Any = json.loads(read_regular(path, _LARGEST))
        except (ValueError, RecursionError):
            document = None
        if not is_mapping(document) or not {"version", "findings"} <= document.keys():
            raise ValueError(f"`baseline` must be a file that --write-baseline has written, got {path}")
        version, findings = document["version"], document["findings"]
        if type(version) is not int or version != _VERSION:
            raise ValueError(f"`baseline` must be of version {_VERSION}, got {path} of version {shown_value(version)}")
        if not is_mapping(findings):
            raise ValueError(f"{path}: `findings` must be a table of numbers, got {shown_value(findings)}")
        for key, count in findings.items():
            if type(count) is not int or count < 1:
                raise ValueError(
                    f"{path}: `findings.{shown_value(key)[1:-1]}` must be a number from 1, got {shown_value(count)}"
                )
        return cls(path, Counter(findings))

    @classmethod
    def of(cls, path: Path, findings: Iterable[Finding]) -> "Baseline":
        """Return the baseline of these findings, to be written to `path`."""
        folder = str(real(path).parent)
        return cls(path, Counter(finding.fingerprint(folder) for finding in findings))

    def write(self) -> None:
        """Write the baseline to its file."""
        document = {"version": _VERSION, "findings": dict(sorted(self.known.items()))}
        self.path.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")

    def new(self, findings: Iterable[Finding]) -> list[Finding]:
        """Return the findings that are not in the baseline; equal ones count as often as they were there."""
        left, folder = self.known.copy(), str(real(self.path).parent)
        result: list[Finding] = []
        for finding in findings:
            key = finding.fingerprint(folder)
            if left[key]:
                left[key] -= 1
            else:
                result.append(finding)
        return result
