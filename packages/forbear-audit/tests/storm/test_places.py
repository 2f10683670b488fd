"""The plan of a storm: what a file of it must be, which calls belong to its places, and the verdicts on them."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from forbear_audit.storm.faults import PlannedFault
from forbear_audit.storm.judge import StormFinding
from forbear_audit.storm.kinds import KINDS, PROVABLE
from forbear_audit.storm.observe import Observation
from forbear_audit.storm.places import StormPlan
from forbear_audit.storm.tape import SentCall
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
def test_verdicts(kind: str | None, expected: tuple[str, str], tmp_path: Path) -> None:
    """A place is proved by a finding of its rule; else it is not shown, or not reached."""
    plan = StormPlan.read(written(tmp_path), [tmp_path])
    reached = ReachedPlaces(plan, Observation(None, [sent(tmp_path, 2)]))
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
        ({"places": [{"path": "shop.py"}]}, "is no plan of version 1"),
        ({"places": [{"path": "shop.py"} | PLACES[0] | {"rule": "FIXED"}]}, "is no plan of version 1"),
        ({"places": [{"path": "shop.py"} | PLACES[0] | {"faults": ["fire"]}]}, "is no plan of version 1"),
        ({"places": [{"path": "shop.py"} | PLACES[0] | {"call": [1]}]}, "is no plan of version 1"),
        ({"places": [{"path": 7} | PLACES[0]]}, "is no plan of version 1"),
        ({"places": [{"path": "gone.py"} | PLACES[0]]}, "names gone.py, which is not in .*; run both commands in one"),
        ({"places": [{"path": "shop.py"} | PLACES[0] | {"line": 3}]}, "shop.py has changed since .* was written"),
    ],
)
def test_bad_plans(changes: dict[str, object], text: str, tmp_path: Path) -> None:
    """A plan that is none, or that is about other code, is refused with the cure."""
    with pytest.raises(ValueError, match=text):
        StormPlan.read(written(tmp_path, **changes), [tmp_path])


NO_PLAN = "is no plan of version 1"


@pytest.mark.parametrize(
    ("text", "error"), [(None, "cannot read .*: No such file"), ("[", NO_PLAN), ("[" * 100_000, NO_PLAN)]
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
        assert set(re.findall(r"`(.*?)`", kinds)) == PROVABLE[rule].kinds <= set(KINDS)


def test_the_page_has_all_options(pytestconfig: pytest.Config) -> None:
    """Each option of the storm is in the table of options."""
    named = re.findall(r"^\| `(--forbear-[a-z-]+)", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    options = {word.partition("=")[0] for word in pytestconfig._parser.optparser.format_help().split()}
    assert set(named) == {word.strip("[],") for word in options if word.strip("[").startswith("--forbear-")}
