"""The plan of a storm: what a file of it must be, which calls belong to its places, and the verdicts on them."""

import json
import re
from math import inf, nan
from pathlib import Path
from typing import Any

import pytest

from forbear_audit.storm.faults import KINDS, PROVABLE, PlannedFault
from forbear_audit.storm.judge import StormFinding
from forbear_audit.storm.places import StormPlan
from forbear_audit.storm.run_record import RunRecord, SentCall
from forbear_audit.storm.verdicts import ReachedPlaces, verdict_lines, verdicts_of
from forbear_testkit import ROOT

PAGE = ROOT / "docs" / "storm.md"
TEXT = "def pay():\n    send()\n\ndef send():\n    post()\n"
PLACES: list[dict[str, Any]] = [
    {"line": 2, "rule": "UNSAFE", "text": "    send()", "call": [2, 2], "function": [1, 2], "faults": ["lost", "cut"]},
    {"line": 4, "rule": "UNBOUNDED", "text": "def send():", "call": None, "function": [4, 5], "faults": ["503+"]},
    {"line": 1, "rule": "RETRY-AFTER", "text": "def pay():", "call": None, "function": None, "faults": ["429"]},
]


def written(folder: Path, **changes: object) -> Path:
    """Write the code and a plan for it, changed by `changes`; return the file of the plan."""
    (folder / "shop.py").write_text(TEXT)
    document = {"version": 1, "places": [{"path": "shop.py"} | place for place in PLACES]} | changes
    (folder / "plan.json").write_text(json.dumps(document))
    return folder / "plan.json"


def sent(folder: Path, *lines: int, label: str = "POST /pay", number: int = 1) -> SentCall:
    """Return a call that was made in these lines of the code, the innermost first."""
    frames = tuple((str(folder / "shop.py"), line) for line in lines)
    return SentCall(label, number, f"shop.py:{lines[0]}", 0, unsafe=True, frames=frames)


def test_a_call_belongs_to_the_places_of_all_its_frames(tmp_path: Path) -> None:
    """Any frame counts: the lines of the call, else of the function; a whole file has what is left."""
    plan = StormPlan.read(written(tmp_path), [tmp_path / "elsewhere", tmp_path])
    assert plan.of(sent(tmp_path, 5, 2)) == [0, 1]
    assert plan.of(sent(tmp_path, 5)) == [1]
    assert plan.of(sent(tmp_path, 1)) == [2]
    assert plan.of(sent(tmp_path / "elsewhere", 5)) == []


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("duplicated", ("proved", "duplicated by POST /pay#1:lost")),
        ("suspected", ("not shown", "sent again, but no server counts its effects")),
        ("wrong", ("not shown", "no harm by lost")),
        ("", ("not shown", "no harm by lost")),
        (None, ("not shown", "no fault was tried")),
    ],
)
def test_a_finding_proves_only_places_of_its_rule(kind: str | None, expected: tuple[str, str], tmp_path: Path) -> None:
    """A place is proved by a finding of its rule; else it is not shown, or not reached."""
    plan = StormPlan.read(written(tmp_path), [tmp_path])
    reached = ReachedPlaces(plan, RunRecord(None, [sent(tmp_path, 2)]))
    fault = PlannedFault("POST /pay", 1, "lost")
    if kind is not None:
        finding = StormFinding(kind, "", "test", "shop.py:2", "POST /pay#1", str(fault), "twice")
        reached.add(fault, [finding] if kind else [])
    results: list[dict[str, Any]] = [{"plan": reached.as_dict()}, {"runs": 0}]
    verdicts = verdicts_of(plan, results)
    assert (verdicts[0].verdict, verdicts[0].text) == expected
    assert verdicts[1].verdict == "not reached"
    lines = verdict_lines(verdicts)
    assert "  not reached  shop.py:4  UNBOUNDED    no test sends a call that a storm sees from there" in lines[-2:]
    assert len(lines) == 4


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"version": 2}, r"plan.json is no plan of version 1; write it with `forbear audit --storm-plan FILE`$"),
        ({"version": 1.0}, "is no plan of version 1"),
        ({"version": True}, "is no plan of version 1"),
        ({"places": {}}, "is no plan of version 1"),
        ({"places": [7]}, r"plan.json: `places\[0\]` must be a table, got 7; write it with"),
        ({"places": [{"path": "shop.py"}]}, r"`places\[0\].line` must be a number from 1, and it is missing; write it"),
        ({"places": [{"path": "gone.py"} | PLACES[0]]}, "names gone.py, which is not in .*; run both commands in one"),
        ({"places": [{"path": "shop.py"} | PLACES[0] | {"line": 3}]}, "shop.py has changed since .* was written"),
    ],
)
def test_bad_plans(changes: dict[str, object], text: str, tmp_path: Path) -> None:
    """A plan that is none, or that is about other code, is refused with the cure."""
    with pytest.raises(ValueError, match=text):
        StormPlan.read(written(tmp_path, **changes), [tmp_path])


@pytest.mark.parametrize(
    ("key", "value", "rule"),
    [
        ("path", 7, "the name of a file, got 7"),
        ("path", "", "the name of a file, got ''"),
        ("path", "a" * 5_000, "the name of a file, got 'aaa"),
        ("line", inf, "a number from 1, got inf"),
        ("line", nan, "a number from 1, got nan"),
        ("line", 0, "a number from 1, got 0"),
        ("line", True, "a number from 1, got True"),
        ("line", 1.5, "a number from 1, got 1.5"),
        ("line", 10**4_000, "a number from 1, got 1000"),
        ("rule", "FIXED", "one of UNSAFE, .*, got 'FIXED'"),
        ("rule", [], r"one of UNSAFE, .*, got \[\]"),
        ("text", None, "a line of code, got None"),
        ("call", [1], r"the first and the last line, or null, got \[1\]"),
        ("call", [1, inf], r"the first and the last line, or null, got \[1, inf\]"),
        ("function", "12", "the first and the last line, or null, got '12'"),
        ("faults", ["fire"], r"a list of faults .*, got \['fire'\]"),
        ("faults", {"lost": 1}, r"a list of faults .*, got \{'lost': 1\}"),
    ],
)
def test_wrong_values(key: str, value: object, rule: str, tmp_path: Path) -> None:
    """A value that is none names the file, its key, the rule, what stands there and the cure."""
    place = {"path": "shop.py"} | PLACES[0] | {key: value}
    error = rf"plan.json: `places\[0\].{key}` must be {rule}.*; write it with `forbear audit"
    with pytest.raises(ValueError, match=error):
        StormPlan.read(written(tmp_path, places=[place]), [tmp_path])


@pytest.mark.parametrize(
    ("name", "code", "error"),
    [
        ("a.py", b"# coding: no\n", "names a.py, which cannot be read as Python"),
        ("a.py", b"\xff\n", "names a.py, which cannot be read as Python"),
        ("a" * 300, b"", "names aaa.*, which is not in"),
        ("a\0b", b"", "names a\0b, which is not in"),
    ],
)
def test_code_that_cannot_be_read(name: str, code: bytes, error: str, tmp_path: Path) -> None:
    """A file that is no Python text, and a name that is none, are refused with the cure."""
    (tmp_path / "a.py").write_bytes(code)
    plan = written(tmp_path, places=[{"path": name} | PLACES[0]])
    with pytest.raises(ValueError, match=error):
        StormPlan.read(plan, [tmp_path])


NO_PLAN = "is no plan of version 1"


@pytest.mark.parametrize(
    ("text", "error"),
    [
        (None, "cannot read .*: No such file"),
        ("[", NO_PLAN),
        ("[" * 100_000, NO_PLAN),
        ("9" * 5_000, NO_PLAN),
    ],
)
def test_a_file_that_is_no_plan(text: str | None, error: str, tmp_path: Path) -> None:
    """A missing file, and one that is no JSON, are refused with the cure."""
    if text is not None:
        (tmp_path / "plan.json").write_text(text)
    with pytest.raises(ValueError, match=f"{error}.*; write it with"):
        StormPlan.read(tmp_path / "plan.json", [tmp_path])


def test_the_page_has_the_rules_with_their_faults_and_proofs() -> None:
    """The table of docs/storm.md is the one of the code; a storm can make each of the findings of a rule."""
    section = PAGE.read_text(encoding="utf-8").partition("## With the audit")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| ([A-Z-]+) \| (.*) \| (.*) \|$", section, re.MULTILINE)
    assert [row[0] for row in rows] == [*PROVABLE]
    for rule, faults, kinds in rows:
        lasting = "+" if faults.startswith("lasting") else ""
        assert {f"{name}{lasting}" for name in re.findall(r"`(.*?)`", faults)} == set(PROVABLE[rule].faults)
        assert set(re.findall(r"`(.*?)`", kinds)) == {kind.name for kind in KINDS.values() if rule in kind.proves}


def test_the_page_has_all_options(pytestconfig: pytest.Config) -> None:
    """Each option of the storm is in the table of options."""
    named = re.findall(r"^\| `(--forbear-[a-z-]+)", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    options = {word.partition("=")[0] for word in pytestconfig._parser.optparser.format_help().split()}
    assert set(named) == {word.strip("[],") for word in options if word.strip("[").startswith("--forbear-")}
