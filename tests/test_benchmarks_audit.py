"""The sheets of `python -m benchmarks.audit_wheels`: which wheels and places they take, and what they show."""

import json
from pathlib import Path

import pytest

from benchmarks import audit_sheets
from benchmarks.audit import table as corpus_table
from benchmarks.audit_excerpts import LONGEST, excerpt, source
from benchmarks.audit_wheels import LIST, Wheel, by_wheel, main, pinned, table
from forbear_audit import RULES, AuditSettings, audit
from forbear_testkit import ROOT

PAGE = (ROOT / "docs" / "audit.md").read_text(encoding="utf-8")
EVERY = AuditSettings(select=tuple(RULES))

_CLIENT = '''\
import time
import requests
from shop.http import send

TRIES = 5

class Shop:
    wait = 2

    def order(self, item):
        for attempt in range(TRIES):
            try:
                return send(item)
            except Exception:
                time.sleep(self.wait)
        raise RuntimeError("no order")

    def sound(self, item):
        """Not a retry, though it sleeps after an error."""
        while self.wait:
            try:
                self.order(item)
            except RuntimeError:
                time.sleep(self.wait)
'''
_HTTP = "import requests\n\ndef send(item):\n    return requests.post('https://shop.example/orders', json=item)\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with the code of two wheels, of which the second is a copy."""
    for name in ("shop-1.0", "copy-2.0"):
        package = tmp_path / "src" / name / "shop"
        package.mkdir(parents=True)
        (package / "__init__.py").touch()
        (package / "client.py").write_text(_CLIENT)
        (package / "http.py").write_text(_HTTP)
    return tmp_path


WHEELS = [Wheel("shop", "1.0", "tuning"), Wheel("copy", "2.0", "test")]


def test_the_list_pins_each_wheel_in_one_half() -> None:
    """The list in the repository has over 40 wheels in each half, none of them twice, and comments with others."""
    text = LIST.read_text(encoding="utf-8")
    wheels = pinned(text)
    assert len(wheels) < text.count("==")
    assert not [wheel for wheel in wheels if "#" in wheel.name]
    assert len({wheel.name for wheel in wheels}) == len(wheels)
    assert all(sum(wheel.half == half for wheel in wheels) > 40 for half in ("tuning", "test"))


@pytest.mark.parametrize("text", ["shop==1.0", "[tuning]\nshop", "[half]\nshop==1.0"])
def test_a_list_that_is_not_valid_names_its_line(text: str) -> None:
    """A wheel without a half, a name without a version and an unknown half are errors."""
    with pytest.raises(ValueError, match=r"line \d must be \[tuning\], \[test\] or"):
        pinned(text)


def test_findings_are_counted_by_half(folder: Path) -> None:
    """The table counts the findings of a rule in each half, and per package."""
    findings = audit([folder / "src" / wheel.folder for wheel in WHEELS], settings=EVERY).findings
    groups = by_wheel(WHEELS, folder, findings)
    assert {finding.rule for finding in groups[WHEELS[0]]} >= {"UNSAFE", "FIXED", "CATCH-ALL", "LAST-SLEEP"}
    lines = table(groups)
    assert "| UNSAFE | 1 | 1 | 1 | 1 |" in lines
    assert any(line.startswith("| shop-1.0 | tuning | 1 |") for line in lines)


def test_a_sheet_shows_what_a_judgement_needs(folder: Path) -> None:
    """A sheet has the whole function with the line marked, its class, constants and callees, and no copies."""
    findings = audit([folder / "src"], settings=EVERY).findings
    groups = {w.folder: [f for f in findings if w.folder in Path(f.path).parts] for w in WHEELS}
    count = audit_sheets.write_findings(folder, "tuning", groups)
    rows = json.loads((folder / "tuning.json").read_text())
    assert count == len(rows) == len({row["rule"] for row in rows}) == len({f.rule for f in findings})
    sheet = (folder / "tuning.md").read_text()
    for line in (
        ">   11         for attempt in range(TRIES):",
        "     7 class Shop:",
        "     5 TRIES = 5",
        "     8     wait = 2",
        "    # in shop/http.py\n     3 def send(item):",
    ):
        assert line in sheet


def test_the_silent_sheet_has_only_places_without_findings(folder: Path) -> None:
    """A function that looks like a retry is on the sheet if the audit has no finding in it."""
    findings = audit([folder / "src" / "shop-1.0"]).findings
    assert audit_sheets.write_silent(folder, {"shop-1.0": findings}) == 1
    row = json.loads((folder / "silent.json").read_text())[0]
    assert (row["path"], row["line"], row["rule"]) == ("shop/client.py", 20, "")
    assert "- NO-DEADLINE (warning):" in (folder / "silent.md").read_text()


def test_of_a_long_function_the_lines_around_are_shown(tmp_path: Path) -> None:
    """An excerpt has at most LONGEST lines of a function, besides its head and the values from its other lines."""
    file = tmp_path / "long.py"
    lines = ["def long(item):", "    wait = 3", *["    item += 1"] * 300, "    return item + wait"]
    file.write_text("\n".join(lines))
    code = source(file)
    assert code is not None
    shown = excerpt(code, 290).splitlines()
    assert sum("item += 1" in line for line in shown) < LONGEST <= len(shown) <= LONGEST + 8
    assert shown[0] == "     1 def long(item):"
    assert ">  290     item += 1" in shown
    assert "     2     wait = 3" in shown


def test_code_of_others_stays_out_of_the_repository(capsys: pytest.CaptureFixture[str]) -> None:
    """A folder within the repository is an error that names it."""
    with pytest.raises(SystemExit):
        main([str(LIST.parent / "wheels")])
    assert "FOLDER must be outside of the repository" in capsys.readouterr().err


def test_the_page_has_the_figures_and_the_rules() -> None:
    """The tables of docs/audit.md are those that the corpus and the rules give."""
    assert "\n".join(corpus_table()) in PAGE
    for rule in RULES.values():
        assert f"| [{rule.id}](reference/audit.md#{rule.anchor}) | {rule.severity} | {rule.summary} |" in PAGE
