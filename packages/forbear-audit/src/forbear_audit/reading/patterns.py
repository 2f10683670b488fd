"""The words in names and texts that tell what code is for, where the code itself cannot be read: patterns.csv has them.

A row has a regular expression, which is searched in the text of a name, an expression or a message, with an example
and a near miss. `<NAME>` in it stands for the one of another row. `patterns.NAME` compiles it.
"""

import csv
import re
from functools import cache
from pathlib import Path


@cache
def read_rows() -> dict[str, dict[str, str]]:
    """Return the rows of patterns.csv by their names."""
    with Path(__file__).with_suffix(".csv").open(encoding="utf-8", newline="") as file:
        return {row["name"]: row for row in csv.DictReader(file)}


def __getattr__(name: str) -> re.Pattern[str]:
    if name not in read_rows():
        raise AttributeError(f"patterns.csv has no row {name}")
    globals()[name] = found = re.compile(_read(name))  # asked for once
    return found


def _read(name: str) -> str:
    """Return the regular expression of a row, with those that it names."""
    return re.sub(r"<([A-Z_]+)>", lambda other: _read(other[1]), read_rows()[name]["regex"])
