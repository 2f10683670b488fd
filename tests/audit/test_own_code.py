"""`forbear audit` on forbear itself and on the examples."""

from pathlib import Path

from forbear.audit import AuditSettings, audit

ROOT = Path(__file__).parents[2]


def test_the_examples_are_clean() -> None:
    """The programs that users copy break no rule; the shop before its retries were mended has three findings."""
    findings = audit([ROOT / "examples"], settings=AuditSettings()).findings
    assert [(str(Path(f.path).relative_to(ROOT / "examples")), f.rule) for f in findings] == [
        ("shop/before/payments.py", "UNSAFE"),
        ("shop/before/rates.py", "UNBOUNDED"),
        ("shop/before/stock.py", "UNSAFE"),
    ]


def test_the_loops_of_forbear_have_only_the_naive_one_of_the_demo() -> None:
    """Among the loops of forbear the only finding is in the loop that the demo has as a bad example."""
    names = ("cli/demo", "transfer/downloads", "clients/google.py", "exchange/http", "update.py")
    rooms = [ROOT / "src" / "forbear" / name for name in names]
    result = audit(rooms, settings=AuditSettings())
    assert result.unread == ()
    assert [(Path(f.path).name, f.rule, f.severity) for f in result.findings] == [
        ("contenders.py", "NO-DEADLINE", "note")
    ]
