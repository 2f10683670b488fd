"""The labelled corpus of `forbear audit`: snippets with the rules that each breaks, and how well the rules do on it."""

import ast
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from forbear_audit.reading.modules import Module
from forbear_audit.rules.catalog import RULES
from forbear_audit.rules.checks import check
from forbear_testkit import ROOT

FOLDER = ROOT / "packages" / "forbear-audit" / "tests" / "corpus"
LABELS = FOLDER.with_name("labels")
_TUNED = ("wild-", "a-", "b-")  # from code that the rules were corrected by, and by people who had not seen the rules
_SET_ASIDE = "set_aside"
_SNIPPET = re.compile(r"^# %% ([\w-]+): (.*)\n((?:(?!# %% ).*\n?)*)", re.MULTILINE)


@dataclass(frozen=True)
class Snippet:
    """A piece of code with its label: the ids of the rules that it breaks.

    One that `is_set_aside` measures the rules: no rule was written or corrected by it.
    """

    name: str
    rules: frozenset[str]
    code: str
    is_set_aside: bool

    def broken(self) -> frozenset[str]:
        """The rules that the audit says it breaks."""
        return frozenset(rule for rule, *_ in check(Module(ast.parse(self.code))))


@dataclass
class Score:
    """The hits of one rule, its false alarms, and what it missed."""

    right: int = 0
    wrong: int = 0
    missed: int = 0

    @property
    def precision(self) -> float | None:
        """The part of the findings that is right, None without findings."""
        return self.right / (self.right + self.wrong) if self.right + self.wrong else None

    @property
    def recall(self) -> float | None:
        """The part of the labels that is found, None without labels."""
        return self.right / (self.right + self.missed) if self.right + self.missed else None


@dataclass
class Scores:
    """The scores of all rules on some snippets."""

    rules: dict[str, Score] = field(default_factory=lambda: {rule: Score() for rule in RULES})


def snippets() -> list[Snippet]:
    """All snippets; raises ValueError for a label that is no rule, and for a name that stands twice."""
    result = [
        Snippet(name, frozenset(labels.split()) - {"ok"}, code, file.stem == _SET_ASIDE)
        for file in sorted(FOLDER.glob("*.txt"))
        for name, labels, code in _SNIPPET.findall(file.read_text(encoding="utf-8"))
    ]
    unknown = {rule for snippet in result for rule in snippet.rules} - set(RULES)
    twice = [name for name, count in Counter(snippet.name for snippet in result).items() if count > 1]
    if unknown or twice:
        raise ValueError(f"the corpus has unknown rules {unknown} or names twice {twice}")
    return result


def score(chosen: list[Snippet]) -> Scores:
    """The scores of all rules on these snippets."""
    scores = Scores()
    for snippet in chosen:
        broken = snippet.broken()
        for rule, item in scores.rules.items():
            item.right += rule in broken & snippet.rules
            item.wrong += rule in broken - snippet.rules
            item.missed += rule in snippet.rules - broken
    return scores


def agreement(rule: str) -> float | None:
    """The mean agreement (Cohen's kappa) of the corpus with two people who labelled it without seeing its labels.

    None for a rule that is younger than their labels.
    """
    if not any(rule in rules for other in _others() for rules in other.values()):
        return None
    labels = {snippet.name: rule in snippet.rules for snippet in snippets()}
    return sum(kappa([(labels[name], rule in rules) for name, rules in other.items()]) for other in _others()) / 2


def _others() -> Iterator[dict[str, frozenset[str]]]:
    for file in (LABELS / "first.txt", LABELS / "second.txt"):
        lines = (line.partition(":") for line in file.read_text(encoding="utf-8").splitlines())
        yield {name: frozenset(rules.split()) - {"ok"} for name, _, rules in lines}


def kappa(pairs: list[tuple[bool, bool]]) -> float:
    """The agreement of two people beyond chance (Cohen's kappa), by what each says of the same things."""
    count = len(pairs)
    one, other = (sum(pair[side] for pair in pairs) / count for side in (0, 1))
    by_chance = one * other + (1 - one) * (1 - other)
    same = sum(first is second for first, second in pairs) / count
    return 1 if by_chance == 1 else (same - by_chance) / (1 - by_chance)
