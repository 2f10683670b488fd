"""`forbear simulate gallery`: the studies with their figures, as a table and as JSON."""

import json
import re
from collections.abc import Iterator
from dataclasses import replace

import pytest

from forbear_simulate.gallery import Comparison, Study, study
from forbear_testkit import ROOT
from forbear_testkit.cli.running import Invoke

PAGE = (ROOT / "docs" / "simulate.md").read_text(encoding="utf-8")


def wrong_study() -> Study:
    """A study with a figure that holds and one that does not."""

    def compare() -> Iterator[Comparison]:
        yield Comparison("goodput", 100, 104, 0.05, "QPS")
        yield Comparison("load", 1, 2, 0.1, "/s", "at most")

    return replace(study("sre-layers"), name="wrong", compare=compare)


def test_one_study(invoke: Invoke) -> None:
    """The table has the published figure, ours and the error; the exit code says that all hold."""
    done = invoke("simulate", "gallery", "sre-layers")
    assert done.exit_code == 0
    lines = done.stdout.splitlines()
    assert lines[0].startswith("sre-layers: Google SRE: three layers")
    assert lines[1].startswith("source: Site Reliability Engineering")
    assert lines[3].split() == ["figure", "published", "ours", "error", "holds"]
    assert lines[4].split() == ["attempts", "on", "the", "database,", "real", "policies", "64", "64", "0%", "yes"]
    assert len(lines) == 9
    shown = re.search(r"^\$ forbear simulate gallery sre-layers\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    assert shown is not None
    assert shown[1].splitlines() == lines[:-1]


def test_all_studies(invoke: Invoke, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a name all studies run; the exit code is 1 if a figure does not hold, and JSON says which one."""
    few = {"sre-layers": study("sre-layers"), "wrong": wrong_study()}
    monkeypatch.setattr("forbear_simulate.gallery.STUDIES", few)
    done = invoke("simulate", "gallery")
    assert done.exit_code == 1
    lines = [line.split() for line in done.stdout.splitlines()]
    assert ["goodput", "100", "QPS", "104", "QPS", "5%", "yes"] in lines
    assert ["load", "at", "most", "1", "/s", "2", "/s", "10%", "no"] in lines
    json_done = invoke("simulate", "gallery", "--json")
    assert json_done.exit_code == 1
    document = json.loads(json_done.stdout)
    assert (document["holds"], list(document["studies"])) == (False, ["sre-layers", "wrong"])
    assert [figure["holds"] for figure in document["studies"]["wrong"]["figures"]] == [True, False]
    assert document["studies"]["wrong"]["source"] == study("sre-layers").source


@pytest.mark.parametrize(
    ("arguments", "message", "hint"),
    [
        (["sre-layer"], "`NAME` must be the name of a study, got 'sre-layer'", "did you mean sre-layers?"),
        (["?"], "`NAME` must be the name of a study, got '?'", "write one of aws-jitter-2015, "),
        (["--runs", "2"], "no such option '--runs'", "see `forbear simulate gallery --help`"),
    ],
)
def test_wrong_input(arguments: list[str], message: str, hint: str, invoke: Invoke) -> None:
    """An error names the argument, and the cure."""
    done = invoke("simulate", "gallery", *arguments)
    assert done.exit_code == 2
    error, cure = done.stderr.splitlines()
    assert error.startswith(f"error: {message}")
    assert cure.startswith(f"hint: {hint}")
