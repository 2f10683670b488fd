"""`python -m docs.generate` writes the reference pages, and the tables of measured figures in two other pages.

With `--check` it only reports pages that are out of date.
"""

import sys
from functools import cache
from pathlib import Path

from docs.generate import fleet, waits
from docs.generate.pages import PAGES

FOLDER = Path(__file__).parents[1] / "reference"
EXPORTS = Path(__file__).parents[1] / "export.md"
FLEET = Path(__file__).parents[1] / "fleet.md"


def page(name: str) -> str:
    """Return the text of a page, made from the tables and profiles of today.

    For "export" and "fleet" its tables of measured figures alone are made.
    """
    if name == EXPORTS.stem:
        return waits.filled(EXPORTS.read_text(encoding="utf-8"))
    return fleet.filled(FLEET.read_text(encoding="utf-8")) if name == FLEET.stem else _reference(name)


@cache
def _reference(name: str) -> str:
    return "\n".join(PAGES[name]()).rstrip("\n") + "\n"


def outdated() -> list[Path]:
    """Return the files that are missing or differ from the text of their page."""
    files = {FOLDER / f"{name}.md": page(name) for name in PAGES} | {file: page(file.stem) for file in (EXPORTS, FLEET)}
    return [path for path, text in files.items() if not path.exists() or path.read_text(encoding="utf-8") != text]


def main(arguments: list[str]) -> int:
    """Write or check the pages and return the exit code: 1 if `--check` finds a page that is out of date."""
    paths = outdated()
    if arguments == ["--check"]:
        for path in paths:
            sys.stderr.write(f"error: {path.name} is out of date\nhint: make reference\n")
        return 1 if paths else 0
    for path in paths:
        path.write_text(page(path.stem), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
