"""The rules of `forbear audit`, measured: on the labelled corpus, and by people who judged findings in real packages.

Run it with `python -m benchmarks.audit`. The findings are those of `benchmarks.audit_wheels`.
"""

from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory

from forbear_audit.rules.catalog import RULES
from forbear_testkit.audit import recall
from forbear_testkit.audit.corpus import Score, agreement, score, snippets
from forbear_testkit.audit.recall import MEASURED, measure, samples

LABELS = Path(__file__).with_name("audit_labels.txt")
"""A line for each finding that was judged: sample, rule, place, and one or two judgements."""


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def _cells(of: Score) -> list[str]:
    return [str(of.right + of.missed), _percent(of.precision), _percent(of.recall)]


def _row(rule: str, tuned: Score, apart: Score) -> str:
    return "| " + " | ".join([rule, _percent(agreement(rule)), *_cells(tuned), *_cells(apart)]) + " |"


def table() -> list[str]:
    """The table of the corpus, a line for each rule."""
    corpus = snippets()
    tuned = score([snippet for snippet in corpus if not snippet.is_set_aside]).rules
    apart = score([snippet for snippet in corpus if snippet.is_set_aside]).rules
    return [
        "| rule | agreement | labels | precision | recall | set aside: labels | precision | recall |",
        "|---|---|---|---|---|---|---|---|",
        *(_row(rule, tuned[rule], apart[rule]) for rule in RULES),
    ]


def recall_table(place: Path = recall.RECALL) -> list[str]:
    """The table of the snippets that were labelled before the rules were changed, a line for each measured rule."""
    known = samples(place)
    with TemporaryDirectory() as folder:
        halves = [measure([s for s in known if s.is_open is is_open], Path(folder)) for is_open in (True, False)]
    return [
        "| rule | agreement | open half: labels | precision | recall | set aside: labels | precision | recall |",
        "|---|---|---|---|---|---|---|---|",
        *(_recall_row(rule, [half[rule] for half in halves], place) for rule in MEASURED),
    ]


def _recall_row(rule: str, halves: list[Score], place: Path) -> str:
    cells = [cell for half in halves for cell in _cells(half)]
    return "| " + " | ".join([rule, _percent(recall.agreement(rule, place)), *cells]) + " |"


def judged(sample: str) -> dict[str, tuple[int, int]]:
    """The findings of a sample by rule: how many are true by all judgements, and how many there are."""
    true, every = Counter[str](), Counter[str]()
    for line in LABELS.read_text(encoding="utf-8").splitlines():
        name, rule, _, *judgements = line.split()
        if name == sample:
            every[rule] += 1
            true[rule] += all(judgement == "true" for judgement in judgements)
    return {rule: (true[rule], every[rule]) for rule in RULES}


def real_table() -> list[str]:
    """The table of real packages: for each rule the true findings of the first sample, the fresh and the last one."""
    before, now, last, more = judged("test"), judged("fresh"), judged("wheels"), judged("more")
    head = "| rule | at first | now | precision | 25 others | 27 more | by default |"
    lines = [head, "|---|---|---|---|---|---|---|"]
    for rule in RULES:
        (old, all_old), (new, all_new) = before[rule], now[rule]
        precision = _percent(new / all_new if all_new else None)
        switch = "on" if RULES[rule].is_on else "off"
        others = " | ".join(f"{true} of {every}" for true, every in (last[rule], more[rule]))
        lines.append(f"| {rule} | {old} of {all_old} | {new} of {all_new} | {precision} | {others} | {switch} |")
    return lines


if __name__ == "__main__":
    print("\n".join([*table(), "", *recall_table(), "", *recall_table(recall.FRESH), "", *real_table()]))
