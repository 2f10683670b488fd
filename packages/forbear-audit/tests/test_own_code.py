"""`forbear audit` on forbear itself and on the examples."""

from pathlib import Path

from forbear_audit import AuditSettings, audit
from forbear_audit.rules import RULES
from forbear_testkit import ROOT


def test_the_examples_are_clean() -> None:
    """The programs that users copy break no rule; the demo's bad loop and the shop before it was mended do."""
    findings = audit([ROOT / "examples"], settings=AuditSettings(select=tuple(RULES))).findings
    assert [(str(Path(f.path).relative_to(ROOT / "examples")), f.rule) for f in findings] == [
        ("demo/contenders.py", "NO-DEADLINE"),
        ("shop/before/payments.py", "UNSAFE"),
        ("shop/before/rates.py", "UNBOUNDED"),
        ("shop/before/stock.py", "UNSAFE"),
    ]


def test_forbear_itself_is_clean() -> None:
    """The audit has nothing to say about the five packages."""
    result = audit([*(ROOT / "packages").glob("*/src")], settings=AuditSettings(select=tuple(RULES)))
    assert (result.unread, result.remarks) == ((), ())
    assert result.files > 400
    assert result.findings == ()
