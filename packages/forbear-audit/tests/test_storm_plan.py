"""The plan of a storm: which places an audit writes down for it, with which lines and faults."""

from pathlib import Path
from textwrap import dedent

import pytest

from forbear_audit import AuditSettings, audit
from forbear_audit.cli.storm_plan import storm_plan
from forbear_audit.rules import RULES
from forbear_audit.storm.places import StormPlace

IMPORTS = "import httpx, requests, tenacity, time, urllib3\n"
CASES = {
    "call": (
        """\
        @tenacity.retry(stop=tenacity.stop_after_delay(60), retry=tenacity.retry_if_exception_type(OSError))
        def pay(session: requests.Session) -> None:
            session.post(
                "https://example.com/pay",
            )
        """,
        "UNSAFE",
        ((4, 6), (3, 6)),
    ),
    "decorator": (
        """\
        def outer():
            @tenacity.retry
            def fetch():
                return httpx.get("https://example.com")
        """,
        "UNBOUNDED",
        (None, (4, 5)),
    ),
    "loop": (
        """\
        def fetch():
            while True:
                try:
                    return httpx.get("https://example.com")
                except OSError:
                    time.sleep(1)
        """,
        "UNBOUNDED",
        (None, (2, 7)),
    ),
    "policy": ("patient = tenacity.retry(wait=tenacity.wait_fixed(1))\n", "UNBOUNDED", (None, None)),
    "object": (
        """\
        def session():
            return urllib3.PoolManager(retries=urllib3.Retry(3, allowed_methods=None))
        """,
        "UNSAFE",
        (None, None),
    ),
}


@pytest.mark.parametrize(("code", "rule", "lines"), CASES.values(), ids=CASES)
def test_lines(
    code: str,
    rule: str,
    lines: tuple[tuple[int, int] | None, tuple[int, int] | None],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A place has the lines of its call and of its function, where it has any, and a path from the current folder."""
    monkeypatch.chdir(tmp_path)
    text = IMPORTS + dedent(code)
    (tmp_path / "shop.py").write_text(text)
    findings = audit(["shop.py"], settings=AuditSettings(select=(rule,))).findings
    (place,) = storm_plan(findings).places
    assert (place.path, place.rule, place.call, place.function) == ("shop.py", rule, *lines)
    assert place.text == text.splitlines()[place.line - 1]


def test_only_rules_that_a_storm_can_prove(tmp_path: Path) -> None:
    """Findings of other rules, and those in notebooks, are left out; the faults are those of the rule."""
    (tmp_path / "a.py").write_text("import tenacity\n\n@tenacity.retry\ndef f(): ...\n")
    (tmp_path / "b.ipynb").write_text(
        '{"cells": [{"cell_type": "code", "source": "import tenacity\\n@tenacity.retry\\ndef f(): ..."}]}'
    )
    findings = audit([tmp_path], settings=AuditSettings(select=tuple(RULES))).findings
    assert {(Path(f.path).name, f.rule) for f in findings} > {("a.py", "FIXED"), ("b.ipynb", "UNBOUNDED")}
    (place,) = storm_plan(findings).places
    assert (Path(place.path).name, place.rule) == ("a.py", "UNBOUNDED")
    assert place.faults == ("503+", "refused+", "lost+")
    assert isinstance(place, StormPlace)
