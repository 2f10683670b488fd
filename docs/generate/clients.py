"""Make the table of clients and their versions in docs/functions.md, from the locked sets that `make clients` tests."""

import re
from collections.abc import Iterator
from pathlib import Path

from docs.generate.markdown import between, table

_REQUIREMENTS = Path(__file__).parents[2] / "requirements"
_MARK = "<!-- {} versions: `make clients` tests them, `make reference` writes this table -->"


def filled(page: str) -> str:
    """Return the text of a page with its table made anew; raises ValueError if it has no place for it."""
    return between(page, _MARK.format("begin"), _MARK.format("end"), table(("client", "lowest", "newest"), _rows()))


def _rows() -> Iterator[tuple[str, str, str]]:
    newest = {**_pins("clients.txt"), **_pins("niquests.txt")}
    lowest = {**_pins("clients-lowest.in"), **_pins("niquests-lowest.in")}
    for name in sorted(lowest):
        yield name, lowest[name], newest[name]


def _pins(file: str) -> dict[str, str]:
    """Return the versions that a file of requirements names, by the name of the project."""
    text = (_REQUIREMENTS / file).read_text(encoding="utf-8")
    found: list[tuple[str, str]] = re.findall(r"^([\w.-]+)(?:\[\w+\])?==([\w.]+)", text, re.MULTILINE)
    return {name.lower().replace("_", "-"): version for name, version in found}
