"""`forbear audit` on forbear itself and on the examples."""

from pathlib import Path

from forbear.audit import AuditSettings, audit

ROOT = Path(__file__).parents[2]


def test_the_examples_are_clean() -> None:
    """The programs that users copy break no rule."""
    assert audit([ROOT / "examples"], settings=AuditSettings()).findings == ()


def test_the_loops_of_forbear_have_only_the_naive_one_of_the_demo() -> None:
    """Among the loops of forbear the only finding is in the loop that the demo has as a bad example."""
    names = ("cli/demo", "transfer/downloads", "clients/google.py", "exchange/http", "update.py")
    rooms = [ROOT / "src" / "forbear" / name for name in names]
    result = audit(rooms, settings=AuditSettings())
    assert result.unread == ()
    assert [(Path(f.path).name, f.rule, f.severity) for f in result.findings] == [
        ("contenders.py", "NO-DEADLINE", "note")
    ]
