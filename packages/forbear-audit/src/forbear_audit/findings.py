"""Plain values: `Finding`, a retry that breaks a rule; `Unread`, a file that was not read; `Remark`, on a comment."""

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from forbear.cli.kit.links import real

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
    line of the code, `last_text` its last line. Example: see `audit`.
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
    """A file that could not be read, and why. Example: see `audit`."""

    path: str
    reason: str

    def __str__(self) -> str:
        return f"{self.path}: not read: {self.reason}"


@dataclass(frozen=True, order=True)
class Remark:
    """A comment of the audit that is wrong or needless: the file, the cell (0 if there is none), the line, and why.

    Example: see `audit`.
    """

    path: str
    cell: int
    line: int
    text: str

    def __str__(self) -> str:
        cell = f"cell {self.cell}:" if self.cell else ""
        return f"{self.path}:{cell}{self.line}: {self.text}"


def place_in(path: Path, folder: Path) -> Path:
    """Return the path of a file from the resolved `folder` if it is below that, else its absolute path.

    A path through a link counts as it is written if that is below the folder, else by the folder it leads to.
    """
    whole = Path.cwd() / path
    if ".." not in whole.parts and whole.is_relative_to(folder):
        return whole.relative_to(folder)
    place = real(whole) if whole.name in ("", "..") else real(whole.parent) / whole.name
    return place.relative_to(folder) if place.is_relative_to(folder) else place


def fingerprint_of(rule: str, path: str, text: str) -> str:
    """Return a text for a rule, a path, and the first line of the code; blanks in the line do not matter.

    It stays equal while other lines of the file change.
    """
    parts = (rule, path.replace("\\", "/"), " ".join(text.split()))
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:20]
