"""`python -m forbear.simulate.gallery [NAME ...]` runs studies, all without a name, and prints their figures.

The exit code is 1 if a figure does not hold, and 2 for an unknown name.
"""

import sys

from forbear.simulate.gallery import STUDIES, as_text, study


def main(names: list[str]) -> int:
    """Run the studies of these names, all for none, print them, and return the exit code."""
    try:
        chosen = [study(name) for name in names or STUDIES]
    except ValueError as error:
        sys.stderr.write(f"error: {error}\n")
        return 2
    holds = True
    for each in chosen:
        comparisons = each.run()
        holds &= all(comparison.holds for comparison in comparisons)
        sys.stdout.write("\n".join([f"{each.name}: {each.title}", *as_text(each, comparisons)[1:], "", ""]))
    return 0 if holds else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
