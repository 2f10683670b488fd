"""The examples of the rules, on their pages and in --explain: each is what it says."""

from pathlib import Path

import pytest

from forbear_audit import RULES, AuditSettings, audit
from forbear_testkit import ROOT
from forbear_testkit.audit.examples import module_of

SETTINGS = AuditSettings(select=tuple(RULES))


@pytest.mark.parametrize("rule", RULES)
def test_the_example_breaks_the_rule(rule: str, tmp_path: Path) -> None:
    """The example of a rule breaks it."""
    (tmp_path / "example.py").write_text(module_of(RULES[rule].example))
    result = audit([tmp_path], settings=SETTINGS)
    assert rule in {finding.rule for finding in result.findings}
    assert result.unread == ()


@pytest.mark.parametrize("rule", RULES)
def test_the_cured_example_breaks_none(rule: str, tmp_path: Path) -> None:
    """The cured example of a rule breaks no rule at all."""
    (tmp_path / "example.py").write_text(module_of(RULES[rule].cured))
    result = audit([tmp_path], settings=SETTINGS)
    assert (result.findings, result.unread) == ((), ())


def test_the_page_has_a_section_for_each_rule() -> None:
    """Each rule has its section, by which it can be linked."""
    text = (ROOT / "docs" / "reference" / "audit.md").read_text(encoding="utf-8")
    for rule in RULES.values():
        assert f"\n## {rule.id}\n" in text
        assert f"(#{rule.anchor})" in text
        assert f"ignore[{rule.id}]" in text
