"""Plain values: `Finding`, a retry that breaks a rule; `Unread`, a file that was not read; `Remark`, on a comment."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from forbear_audit.sarif_log import fingerprint_of, place_in

Severity = Literal["note", "warning", "error"]
"""The weight of a finding, the least first."""

SEVERITIES: tuple[Severity, ...] = ("note", "warning", "error")
"""The severities, from the least to the most severe."""


@dataclass(frozen=True, order=True)
class Finding:
    """One place that breaks one rule.

    `line` and `end_line` count from 1, `column` and `end_column` from 1, too, in characters; the end is exclusive.
    `path` is the file as it was named or reached. In a notebook, `cell` is the number of the cell from 1 and the lines
    are those of the cell; elsewhere it is 0. `cure` says what to change, in the words of `library`. `text` is the first
    line of the code, `last_text` its last line.
    """

    path: str
    cell: int
    line: int
    column: int
    rule: str
    end_line: int
    end_column: int
    severity: Severity
    message: str
    cure: str
    library: str
    text: str = ""
    last_text: str = ""

    def __str__(self) -> str:
        cell = f"cell {self.cell}:" if self.cell else ""
        return f"{self.path}:{cell}{self.line}:{self.column}: {self.severity} {self.rule}: {self.message}"

    def fingerprint(self, folder: str | None = None) -> str:
        """Return a text that stays equal while other lines of the file change: for baselines and code hosts.

        With a resolved `folder` the path counts from there, so that it does not depend on where the audit runs.
        """
        path = self.path
        if folder is not None:
            path = os.path.relpath(Path(folder, place_in(Path(self.path), Path(folder))), folder)
        return fingerprint_of(self.rule, path, self.text)


@dataclass(frozen=True, order=True)
class Unread:
    """A file that could not be read, and why."""

    path: str
    reason: str

    def __str__(self) -> str:
        return f"{self.path}: not read: {self.reason}"


@dataclass(frozen=True, order=True)
class Remark:
    """A comment of the audit that is wrong or needless: the file, the cell (0 if there is none), the line, and why."""

    path: str
    cell: int
    line: int
    text: str

    def __str__(self) -> str:
        cell = f"cell {self.cell}:" if self.cell else ""
        return f"{self.path}:{cell}{self.line}: {self.text}"
