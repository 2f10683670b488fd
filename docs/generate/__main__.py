"""`python -m docs.generate` writes the reference pages, pictures, llms.txt, and the tables of figures in other pages.

With `--check` it only reports files that are out of date. With `--api` it writes the pages of the API instead, which
are made of docstrings and not committed; `make site` does that.
"""

import sys
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path

from docs.generate import clients, comparison, demo, fleet, pictures, sdk_repeats, waits
from docs.generate.pages import PAGES
from docs.site import llms

FOLDER = Path(__file__).parents[1] / "reference"
API = "api/"
"""The beginning of the names of pages that are built and not committed."""
EXPORTS = Path(__file__).parents[1] / "export.md"
FLEET = Path(__file__).parents[1] / "fleet.md"
FUNCTIONS = Path(__file__).parents[1] / "functions.md"
WHY = Path(__file__).parents[1] / "why.md"
COMPARISON = Path(__file__).parents[1] / "comparison.md"
LLMS = Path(__file__).parents[2] / "llms.txt"
SDKS = Path(__file__).parents[1] / "what-sdks-repeat.md"


def page(name: str) -> str:
    """Return the text of a page, made from the tables and profiles of today.

    For "comparison", "export", "fleet", "what-sdks-repeat" and "why" its tables of measured figures alone are made, for
    "functions" that of the versions of clients.
    """
    filled: dict[str, tuple[Callable[[str], str], Path]] = {
        EXPORTS.stem: (waits.filled, EXPORTS),
        FLEET.stem: (fleet.filled, FLEET),
        FUNCTIONS.stem: (clients.filled, FUNCTIONS),
        WHY.stem: (demo.filled, WHY),
        COMPARISON.stem: (comparison.filled, COMPARISON),
        SDKS.stem: (sdk_repeats.filled, SDKS),
    }
    if name not in filled:
        return _reference(name)
    fill, file = filled[name]
    return fill(file.read_text(encoding="utf-8"))


@cache
def _reference(name: str) -> str:
    return "\n".join(PAGES[name]()).rstrip("\n") + "\n"


def outdated(pages: Iterable[tuple[Path, str]]) -> dict[Path, str]:
    """Return the files that are missing or out of date, each with its text of today."""
    return {path: text for path, text in pages if not path.exists() or path.read_text(encoding="utf-8") != text}


def files() -> Iterator[tuple[Path, str]]:
    """Yield all files that are made and committed, each with its text of today."""
    for name in PAGES:
        if not name.startswith(API):
            yield FOLDER / f"{name}.md", page(name)
    for file in (EXPORTS, FLEET, FUNCTIONS, WHY, COMPARISON, SDKS):
        yield file, page(file.stem)
    yield LLMS, llms.short()
    for name in pictures.PICTURES:
        yield pictures.FOLDER / f"{name}.svg", _picture(name)


def api_files() -> Iterator[tuple[Path, str]]:
    """Yield the pages of the API, each with its text of today."""
    for name in PAGES:
        if name.startswith(API):
            yield FOLDER / f"{name}.md", page(name)


@cache
def _picture(name: str) -> str:
    return pictures.PICTURES[name]()


def main(arguments: list[str]) -> int:
    """Write or check the pages and return the exit code: 1 if `--check` finds a page that is out of date."""
    changed = outdated(api_files() if arguments == ["--api"] else files())
    if arguments == ["--check"]:
        for path in changed:
            sys.stderr.write(f"error: {path.name} is out of date\nhint: make reference\n")
        return 1 if changed else 0
    for path, text in changed.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
