"""`python -m docs.site FOLDER` checks a built site: links, anchors, the search, and that it needs no network."""

import sys
from pathlib import Path

from docs.site.check import problems


def main(arguments: list[str]) -> int:
    """Check the site in the folder that `arguments` name, and return the exit code: 1 if something is wrong with it."""
    wrong = [*problems(Path(arguments[0]))]
    for problem in wrong:
        sys.stderr.write(f"error: {problem}\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
