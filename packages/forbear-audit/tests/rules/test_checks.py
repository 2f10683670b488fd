"""The rules on labelled snippets, on forbear's own code and on the examples; and the snippets themselves."""

from pathlib import Path

import pytest

from forbear_audit import AuditSettings, audit
from forbear_audit.rules.catalog import DEFAULT_RULES, RULES
from forbear_testkit import ROOT
from forbear_testkit.audit.corpus import Snippet, score, snippets
from forbear_testkit.audit.recall import FRESH, MEASURED, Sample, measure, samples


def test_the_corpus_has_every_rule_and_enough_of_all() -> None:
    """There are at least 150 snippets, sound ones among them, and each rule is in two snippets."""
    corpus = snippets()
    assert len(corpus) >= 150
    assert sum(not snippet.rules for snippet in corpus) >= 50
    for rule in RULES:
        assert sum(rule in snippet.rules for snippet in corpus) >= 2, rule
    assert sum(snippet.is_set_aside for snippet in corpus) >= 40


DIFFERING: dict[str, str] = {}
"""The snippets that the audit does not judge as their labels do: rules that it finds (+) and misses (-)."""


def _difference(snippet: Snippet) -> str:
    """Return the rules that are found without a label (+) and missed (-), "" if there are none."""
    broken = snippet.broken()
    return " ".join(
        [f"+{rule}" for rule in sorted(broken - snippet.rules)]
        + [f"-{rule}" for rule in sorted(snippet.rules - broken)]
    )


def test_the_rules_agree_with_the_labels() -> None:
    """Each snippet breaks the rules of its label, and no others; DIFFERING says where the audit is not yet right."""
    differing = {s.name: _difference(s) for s in snippets() if not s.is_set_aside}
    assert {name: words for name, words in differing.items() if words} == DIFFERING


def test_a_score_counts_what_is_wrong_and_what_is_missed() -> None:
    """A label that is not found counts as missed, a finding without a label as wrong."""
    code = "import tenacity\n\n@tenacity.retry\ndef f():\n    return g()\n"
    scores = score([Snippet("a", frozenset({"STATE", "FIXED"}), code, is_set_aside=False)]).rules
    assert (scores["FIXED"].right, scores["STATE"].missed, scores["UNBOUNDED"].wrong) == (1, 1, 1)
    assert (scores["FIXED"].precision, scores["STATE"].recall, scores["UNBOUNDED"].precision) == (1, 0, 0)
    assert scores["NESTED"].precision is None
    assert scores["NESTED"].recall is None


def test_the_examples_are_clean() -> None:
    """The programs that users copy break no rule; the demo's bad loop and the shop before it was mended do."""
    findings = audit([ROOT / "examples"], settings=AuditSettings(select=tuple(RULES))).findings
    assert [(str(Path(f.path).relative_to(ROOT / "examples")), f.rule) for f in findings] == [
        ("demo/contenders.py", "NO-DEADLINE"),
        ("demo/contenders.py", "STATE"),
        ("shop/before/payments.py", "UNSAFE"),
        ("shop/before/rates.py", "UNBOUNDED"),
        ("shop/before/stock.py", "UNSAFE"),
    ]


OPEN = [sample for sample in samples() if sample.is_open]


def test_there_are_enough_snippets_of_each_kind() -> None:
    """Each kind has 25 snippets, and there are 50 sound ones; each measured rule is in both halves."""
    every = samples()
    assert len({sample.name for sample in every}) == len(every)
    for kind in {sample.kind for sample in every}:
        assert sum(sample.kind == kind for sample in every) >= (50 if kind == "sound" else 25), kind
    for rule in MEASURED:
        assert {sample.is_open for sample in every if rule in sample.rules} == {True, False}, rule


def test_the_rules_find_what_is_labelled(tmp_path: Path) -> None:
    """Nine of ten labels are found, and nine of ten findings are right."""
    for rule, each in measure(OPEN, tmp_path).items():
        assert (each.recall or 0) >= FLOORS.get(rule, 0.9), rule
        assert (each.precision or 1) >= 0.9, rule


FLOORS = {"UNBOUNDED": 0.85}
"""The rules that find less."""


@pytest.mark.parametrize("sample", [s for s in OPEN if s.kind == "sound"], ids=lambda sample: sample.name)
def test_sound_code_has_no_finding(sample: Sample, tmp_path: Path) -> None:
    """By default there is nothing to say about code that is sound, but for notes."""
    assert not {hit for hit in sample.hits(tmp_path) if hit[1] != "note" and hit[0] in DEFAULT_RULES}


def test_fresh_code_gets_no_false_alarm(tmp_path: Path) -> None:
    """Of the open code that nobody wrote for the rules, all findings are right, and nine of ten flaws are found."""
    scores = measure([sample for sample in samples(FRESH) if sample.is_open], tmp_path)
    assert {rule: each.wrong for rule, each in scores.items()} == dict.fromkeys(MEASURED, 0)
    assert all((each.recall or 0) >= (0.85 if rule == "STATE" else 0.9) for rule, each in scores.items())
