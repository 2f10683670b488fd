"""The labelled corpus of `forbear audit`: snippets with the rules that each breaks, and how well the rules do on it."""

import ast
import hashlib
import re
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from forbear.audit.checks import check
from forbear.audit.modules import Module
from forbear.audit.rules import RULES

FOLDER = Path(__file__).parents[2] / "audit" / "corpus"
_TUNED = ("wild-", "a-", "b-")  # from code that the rules were corrected by, and by people who had not seen the rules
_SNIPPET = re.compile(r"^# %% ([\w-]+): (.*)\n((?:(?!# %% ).*\n?)*)", re.MULTILINE)


@dataclass(frozen=True)
class Snippet:
    """A piece of code with its label: the ids of the rules that it breaks."""

    name: str
    rules: frozenset[str]
    code: str

    @property
    def is_held_out(self) -> bool:
        """True if the snippet belongs to the third that is set aside, by a hash of its name."""
        if self.name.startswith(_TUNED):
            return False
        return int(hashlib.sha256(f"forbear:{self.name}".encode()).hexdigest(), 16) % 3 == 0

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
        Snippet(name, frozenset(labels.split()) - {"ok"}, code)
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
