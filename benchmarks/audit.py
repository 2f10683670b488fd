"""The rules of `forbear audit` on the labelled corpus: recall and precision of each, the part set aside apart.

Run it with `python -m benchmarks.audit`.
"""

from forbear.audit.rules import RULES
from tests.support.audit.corpus import Score, score, snippets


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def _row(rule: str, tuned: Score, held: Score) -> str:
    cells = [rule, str(tuned.right + tuned.missed), _percent(tuned.precision), _percent(tuned.recall)]
    cells += [str(held.right + held.missed), _percent(held.precision), _percent(held.recall)]
    return "| " + " | ".join(cells) + " |"


def table() -> list[str]:
    """The table of docs/audit.md, a line for each rule."""
    corpus = snippets()
    tuned = score([snippet for snippet in corpus if not snippet.is_held_out]).rules
    held = score([snippet for snippet in corpus if snippet.is_held_out]).rules
    return [
        "| rule | labels | precision | recall | set aside: labels | precision | recall |",
        "|---|---|---|---|---|---|---|",
        *(_row(rule, tuned[rule], held[rule]) for rule in RULES),
    ]


if __name__ == "__main__":
    print("\n".join(table()))
