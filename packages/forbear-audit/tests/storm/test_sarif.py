"""The findings of a storm as SARIF: the same place and fingerprint as the audit's finding."""

import shlex
from pathlib import Path
from typing import Any

import pytest

from forbear_audit import AuditSettings, audit
from forbear_audit.cli.storm_plan import storm_plan
from forbear_audit.sarif import as_sarif
from forbear_audit.storm.judge import StormFinding
from forbear_audit.storm.sarif import storm_sarif

CODE = """\
import requests, stamina

@stamina.retry(on=requests.Timeout)
def pay():
    send()

def send():
    requests.post("https://example.com/pay")
"""


def found(kind: str, rule: str, line: int) -> dict[str, str]:
    """Return a finding at this line, as JSON has it."""
    return StormFinding(kind, rule, "test_pay", f"shop.py:{line}", "POST /pay#1", "POST /pay#1:lost", "twice").as_dict()


def results(log: dict[str, Any]) -> list[tuple[str, str, int, object]]:
    """Return rule, level, first line and fingerprints of the results of a log."""
    (run,) = log["runs"]
    ids = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    assert all(ids[result["ruleIndex"]] == result["ruleId"] for result in run["results"])
    places = [result["locations"][0]["physicalLocation"] for result in run["results"]]
    assert {place["artifactLocation"]["uri"] for place in places} <= {"shop.py"}
    return [
        (result["ruleId"], result["level"], place["region"]["startLine"], result["partialFingerprints"])
        for result, place in zip(run["results"], places, strict=True)
    ]


@pytest.fixture
def suspected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The audit of the code, in whose folder the test runs."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "shop.py").write_text(CODE)
    return audit(["shop.py"], settings=AuditSettings(select=("UNSAFE",)))


def test_a_proof_stands_where_the_audit_reported_it(suspected: Any, tmp_path: Path) -> None:
    """With a plan, the proof has the audit's line and fingerprint; the call itself is a related location."""
    plan = storm_plan(suspected.findings)
    finding = found("duplicated", "UNSAFE", 8)
    judged = [{"findings": [finding], "plan": {"reached": [0], "findings": [(0, finding)]}}]
    log = storm_sarif(judged, plan, tmp_path, "1.0")
    (proof,) = results(log)
    (suspect,) = results(as_sarif(suspected, "1.0"))
    assert proof == suspect
    (result,) = log["runs"][0]["results"]
    assert result["relatedLocations"][0]["physicalLocation"]["region"] == {"startLine": 8}
    assert result["message"]["text"].endswith("Show it again: pytest 'test_pay' --forbear-fault 'POST /pay#1:lost'")


def test_equal_lines_have_fingerprints_of_their_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The proof of the second of two equal lines has the fingerprint of the second finding."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "shop.py").write_text(f"{CODE}\n{CODE.replace('pay()', 'pay2()')}")
    suspects = audit(["shop.py"], settings=AuditSettings(select=("UNSAFE",)))
    finding = found("duplicated", "UNSAFE", 14)
    judged = [{"findings": [finding], "plan": {"reached": [1], "findings": [(1, finding)]}}]
    (proof,) = results(storm_sarif(judged, storm_plan(suspects.findings), tmp_path, "1.0"))
    first, second = results(as_sarif(suspects, "1.0"))
    assert first[3] != second[3]
    assert proof == second


def test_without_a_plan_a_finding_stands_at_its_call(suspected: Any, tmp_path: Path) -> None:
    """The line is that of the call, with a level for each kind; what has no rule is left out."""
    listed = [found("suspected", "UNSAFE", 5), found("early", "RETRY-AFTER", 8), found("lost", "", 8)]
    log = storm_sarif([{"findings": listed}], None, tmp_path, "1.0")
    assert [row[:3] for row in results(log)] == [("UNSAFE", "warning", 5), ("RETRY-AFTER", "note", 8)]
    (suspect,) = results(as_sarif(suspected, "1.0"))
    assert results(log)[0][3] == suspect[3]
    assert all("relatedLocations" not in result for result in log["runs"][0]["results"])


def test_a_line_has_one_result_of_each_kind(suspected: Any, tmp_path: Path) -> None:
    """The same finding by several tests and calls is one result, so that code hosts show it once."""
    again = found("duplicated", "UNSAFE", 8) | {"test": "test_again", "call": "POST /pay#2"}
    listed = [found("duplicated", "UNSAFE", 8), again, found("early", "RETRY-AFTER", 8)]
    log = storm_sarif([{"findings": listed[:1]}, {"findings": listed[1:]}], None, tmp_path, "1.0")
    assert [row[0] for row in results(log)] == ["UNSAFE", "RETRY-AFTER"]
    assert "'test_pay'" in log["runs"][0]["results"][0]["message"]["text"]


def test_a_reproduction_is_one_command_of_a_shell() -> None:
    """The id of the test and the fault stay one argument each, also with quotes in them."""
    finding = StormFinding("lost", "", "test_shop.py::test_pay['tea']", "?", "GET /o'neil#1", "GET /o'neil#1:lost", "")
    words = ["pytest", "test_shop.py::test_pay['tea']", "--forbear-fault", "GET /o'neil#1:lost"]
    assert shlex.split(finding.reproduction) == words
