"""The files that a storm in pytest reads and writes: its plan, JSON and SARIF."""

import json
from copy import copy
from dataclasses import replace
from io import StringIO
from pathlib import Path

import pytest

from forbear_audit.storm.judge import StormFinding
from forbear_audit.storm.plugin import StormPlugin

FINDING = StormFinding("duplicated", "UNSAFE", "test_pay", "shop.py:1", "POST /pay#1", "POST /pay#1:lost", "twice")
PLAN = {
    "version": 1,
    "places": [
        {"path": "shop.py", "line": 1, "rule": "UNSAFE", "text": "pay()", "call": [1, 1], "function": None}
        | {"faults": ["lost"]}
    ],
}


def plugin(pytestconfig: pytest.Config, *options: str) -> StormPlugin:
    """Return the plugin as pytest makes it with these options."""
    config = copy(pytestconfig)
    config.option = config._parser.parse_known_args([*map(str, options)])
    return StormPlugin(config)


@pytest.mark.parametrize("with_plan", [True, False])
def test_the_files_have_the_findings(with_plan: bool, tmp_path: Path, pytestconfig: pytest.Config) -> None:
    """The findings of reports, also those of workers of xdist, are in JSON and SARIF, with the verdicts on a plan."""
    (tmp_path / "shop.py").write_text("pay()\n")
    plan = PLAN["places"][0] | {"path": str(tmp_path / "shop.py")}  # type: ignore[index]
    (tmp_path / "plan.json").write_text(json.dumps(PLAN | {"places": [plan]}))
    options = ["--forbear-storm-plan", f"{tmp_path}/plan.json"] if with_plan else []
    files = ["--forbear-storm-json", f"{tmp_path}/a.json", "--forbear-storm-sarif", f"{tmp_path}/a.sarif"]
    storm = plugin(pytestconfig, "--forbear-storm", *files, *options)
    result: dict[str, object] = {"runs": 1, "findings": [FINDING.as_dict()]}
    if with_plan:
        result["plan"] = {"reached": [0], "tried": [(0, "lost")], "findings": [(0, FINDING.as_dict())]}
    properties = [("forbear_storm", json.dumps(result))]
    report = pytest.TestReport("test_pay", ("t.py", 1, ""), {}, "failed", None, "call", user_properties=properties)
    storm.pytest_runtest_logreport(report)
    out = StringIO()
    storm.pytest_terminal_summary(pytest.TerminalReporter(pytestconfig, file=out))
    assert "1 test, 1 run with a fault, 1 duplicated\n" in out.getvalue()
    document = json.loads((tmp_path / "a.json").read_text())
    assert document["findings"] == [FINDING.as_dict()]
    assert [verdict["verdict"] for verdict in document.get("plan", [])] == (["proved"] if with_plan else [])
    assert ("\nthe plan: 1 proved\n" in out.getvalue()) is with_plan
    (shown,) = json.loads((tmp_path / "a.sarif").read_text())["runs"][0]["results"]
    assert shown["ruleId"] == "UNSAFE"


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (["--forbear-storm", "--forbear-storm-json", "no/a"], "`--forbear-storm-json` must be a file in a folder that"),
        (["--forbear-storm", "--forbear-storm-sarif", "no/a"], "`--forbear-storm-sarif` must be a file in a folder"),
        (["--forbear-storm", "--forbear-fault", f"GET /#{'9' * 5_000}:lost"], "must be CALL#NUMBER:FAULT"),
        (["--forbear-storm-plan", "plan.json"], "`--forbear-storm-plan` goes with `--forbear-storm`"),
        (["--forbear-storm", "--forbear-storm-plan", "no.json"], "`--forbear-storm-plan`: cannot read .*no.json"),
    ],
)
def test_bad_files(options: list[str], text: str, pytestconfig: pytest.Config) -> None:
    """A file that cannot be used ends pytest at once, with its rule."""
    with pytest.raises(pytest.UsageError, match=text):
        plugin(pytestconfig, *options)


@pytest.mark.parametrize("option", ["--forbear-storm-json", "--forbear-storm-sarif"])
def test_links_that_lead_out(option: str, tmp_path: Path, pytestconfig: pytest.Config) -> None:
    """No file is written through a link that leads out of the folder of the tests."""
    (tmp_path / "outside").write_text("precious")
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "a.json").symlink_to(tmp_path / "outside")
    config = copy(pytestconfig)
    config.option = config._parser.parse_known_args(["--forbear-storm", option, "a.json"])
    config.invocation_params = replace(config.invocation_params, dir=tmp_path / "tests")
    with pytest.raises(pytest.UsageError, match=f"`{option}` must not be written through a link .*/outside; name the"):
        StormPlugin(config)
