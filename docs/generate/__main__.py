"""`python -m docs.generate` writes the reference pages; with `--check` it only says whether they are up to date."""

import sys
from pathlib import Path

from docs.generate.pages import PAGES

FOLDER = Path(__file__).parents[1] / "reference"


def page(name: str) -> str:
    """What a page should be."""
    return "\n".join(PAGES[name]()).rstrip("\n") + "\n"


def outdated() -> list[Path]:
    """The files that are not what they should be."""
    files = {FOLDER / f"{name}.md": page(name) for name in PAGES}
    return [path for path, text in files.items() if not path.exists() or path.read_text(encoding="utf-8") != text]


def main(arguments: list[str]) -> int:
    """The exit code: 1 where `--check` found a page out of date."""
    found = outdated()
    if arguments == ["--check"]:
        for path in found:
            sys.stderr.write(f"error: {path.name} is out of date\nhint: make reference\n")
        return 1 if found else 0
    for path in found:
        path.write_text(page(path.stem), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
