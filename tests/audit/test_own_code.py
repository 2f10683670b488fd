"""`forbear audit` on forbear itself and on the examples."""

from pathlib import Path

from forbear.audit import AuditSettings, audit
from forbear.audit.rules import RULES
from forbear_testkit import ROOT


def test_the_examples_are_clean() -> None:
    """The programs that users copy break no rule; the shop before its retries were mended has three findings."""
    findings = audit([ROOT / "examples"], settings=AuditSettings(select=tuple(RULES))).findings
    assert [(str(Path(f.path).relative_to(ROOT / "examples")), f.rule) for f in findings] == [
        ("shop/before/payments.py", "UNSAFE"),
        ("shop/before/rates.py", "UNBOUNDED"),
        ("shop/before/stock.py", "UNSAFE"),
    ]


def test_forbear_has_only_the_naive_loop_of_the_demo() -> None:
    """In all of forbear the only finding is in the loop that the demo has as a bad example."""
    result = audit([ROOT / "src"], settings=AuditSettings(select=tuple(RULES)))
    assert (result.unread, result.remarks) == ((), ())
    assert result.files > 400
    assert [(Path(f.path).name, f.rule, f.severity) for f in result.findings] == [
        ("contenders.py", "NO-DEADLINE", "note")
    ]
