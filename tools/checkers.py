"""Compare pyrefly and ty with mypy on the tests of types: they must accept and refuse the same lines.

A line that must be refused has a `type: ignore` with the reason. pyrefly reads these marks itself. ty does not, so its
errors are compared with them.
"""

import re
import subprocess
import sys
from pathlib import Path

_TESTS = Path("packages/forbear/tests/typing")
_PROGRAMS = Path(sys.executable).parent
_ACCEPTED_BY_TY = "tries=5"
"""Part of the one line that ty accepts: to it, unpacked keywords are open to others."""


def main() -> int:
    """Print what the checkers disagree on; return 1 if there is anything, else 0."""
    wrong = [*_run_pyrefly(), *_compare_ty()]
    print(*wrong, sep="\n", end="\n" if wrong else "")
    print(f"{len(wrong)} differences between pyrefly, ty and mypy")
    return 1 if wrong else 0


def _run_pyrefly() -> list[str]:
    """Return the errors of pyrefly; it may find none."""
    found = _run("pyrefly", "check", "--output-format", "min-text", str(_TESTS))
    return [line for line in found.splitlines() if line.lstrip().startswith("ERROR")]


def _compare_ty() -> list[str]:
    """Return what ty refuses beyond the marked lines, and the marked lines that it accepts."""
    found = _run("ty", "check", "--output-format", "concise", str(_TESTS))
    refused = {(match[1], int(match[2])): line for line in found.splitlines() if (match := _PLACE.match(line))}
    marked = {
        (str(path), number): line
        for path in sorted(_TESTS.glob("*.py"))
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if "# type: ignore[" in line and _ACCEPTED_BY_TY not in line
    }
    if not marked:
        raise SystemExit(f"no line in {_TESTS} has a mark; this program looks in the wrong place")
    more = [line for place, line in refused.items() if place not in marked]
    return more + [f"{path}:{number}: ty accepts {marked[path, number]}" for path, number in marked.keys() - refused]


_PLACE = re.compile(r"(\S+?):(\d+):\d+: error")


def _run(program: str, *arguments: str) -> str:
    """Return what a checker prints; SystemExit if it could not run."""
    done = subprocess.run([_PROGRAMS / program, *arguments], capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1):
        raise SystemExit(f"{program} ended with {done.returncode}: {done.stderr or done.stdout}")
    return done.stdout + done.stderr


if __name__ == "__main__":
    sys.exit(main())
