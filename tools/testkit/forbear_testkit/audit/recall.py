"""The snippets that measure what `forbear audit` misses: a file for each kind, labelled before any rule was changed.

A label has the rules that a snippet breaks, of MEASURED; `~RULE` is one that may be reported or not. A line
`# -- path` begins a file of a package. One half is open, and the rules are corrected by it; the other only measures.
Those in FRESH were written by somebody who knew no rule. Two who saw no finding labelled the shops, the pipelines and
the harbours, another reader the trades, and one who knew the rules in part the firms. Authors labelled the others.
All are open but the mills, the looms and the quarries. So are six files in RECALL, from `styles` to `remains`: who
changed the rules wrote and labelled them, in the style of many companies, for forms and clients that were missed, and
for what repeats the calls of others. LOST-CAUSE, STATE and OUTER-KEY were corrected by the mills and looms, which
measure these no longer.
"""

import random
import re
from dataclasses import dataclass
from pathlib import Path

from forbear_audit import AuditSettings
from forbear_audit.rules.catalog import RULES
from forbear_audit.rules.file_findings import read_texts
from forbear_testkit.audit.corpus import FOLDER, LABELS, Score, kappa

EVERY = AuditSettings(select=tuple(RULES))
RECALL = FOLDER.with_name("recall")
FRESH = FOLDER.with_name("fresh")
OPEN_KINDS = (
    "styles", "reach", "layers", "habits", "crossings", "remains", "shops", "desks", "trades", "firms", "fields",
    "offices", "councils", "harbours", "pipelines", "forges", "kilns",
)  # fmt: skip
"""The files of which nothing is set aside."""
SEED = "forbear recall 1"
MEASURED = ("UNSAFE", "NESTED", "UNBOUNDED", "FIXED", "STATE", "LOST-CAUSE", "OUTER-KEY")
_SNIPPET = re.compile(r"^# %% ([\w-]+): (.*)\n((?:(?!# %% ).*\n?)*)", re.MULTILINE)
_FILE = re.compile(r"^# -- (\S+)\n((?:(?!# -- ).*\n?)*)", re.MULTILINE)


@dataclass(frozen=True)
class Sample:
    """A snippet with the rules that it breaks, and those that are `unclear`; `kind` is the file it comes from."""

    kind: str
    name: str
    rules: frozenset[str]
    unclear: frozenset[str]
    files: dict[str, str]
    is_open: bool

    def hits(self, folder: Path) -> set[tuple[str, str]]:
        """Return the rules that the audit says the code breaks, with the severity of each finding."""
        places = {folder / self.name / path: code for path, code in self.files.items()}
        for path, code in places.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(code, encoding="utf-8")
        readings = [read_texts(path, [(0, code)], EVERY.counts) for path, code in places.items()]
        return {(finding.rule, finding.severity) for reading in readings for finding in reading.findings}


def samples(folder: Path = RECALL) -> list[Sample]:
    """Return all snippets of a folder; those of each kind are halved by a seed, but for the fresh ones."""
    result: list[Sample] = []
    for file in sorted(folder.glob("*.txt")):
        found = _SNIPPET.findall(file.read_text(encoding="utf-8"))
        order = [*range(len(found))]
        random.Random(f"{SEED} {file.stem}").shuffle(order)
        opened = {*order[: len(order) // 2]}
        for index, (name, labels, code) in enumerate(found):
            words = {*labels.split()} - {"ok"}
            unclear = frozenset(word[1:] for word in words if word.startswith("~"))
            rules = frozenset(word for word in words if not word.startswith("~"))
            files = dict(_FILE.findall(code)) or {"main.py": code}
            is_open = file.stem in OPEN_KINDS or (folder != FRESH and index in opened)
            result.append(Sample(file.stem, name, rules, unclear, files, is_open))
    return result


def measure(chosen: list[Sample], folder: Path) -> dict[str, Score]:
    """Return the scores of the measured rules on these snippets; the files are written below `folder`."""
    scores = {rule: Score() for rule in MEASURED}
    for sample in chosen:
        broken = {rule for rule, _ in sample.hits(folder)} - sample.unclear
        for rule, item in scores.items():
            item.right += rule in broken & sample.rules
            item.wrong += rule in broken - sample.rules
            item.missed += rule in sample.rules - broken
    return scores


def agreement(rule: str, folder: Path = RECALL) -> float | None:
    """Return the agreement (Cohen's kappa) with somebody who labelled snippets without seeing their labels.

    They are 60 of those in RECALL, all shops, pipelines and harbours. What one of the two called unclear is left out.
    None if neither has the rule in a label.
    """
    known = {sample.name: sample for sample in samples(folder)}
    pairs: list[tuple[bool, bool]] = []
    for line in (LABELS / f"{folder.name}.txt").read_text(encoding="utf-8").splitlines():
        name, _, labels = line.partition(": ")
        sample, words = known[name], {*labels.split()}
        if rule not in sample.unclear and f"~{rule}" not in words:
            pairs.append((rule in sample.rules, rule in words))
    return kappa(pairs) if any(one or other for one, other in pairs) else None
