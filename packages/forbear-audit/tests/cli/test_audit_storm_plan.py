"""`forbear audit --storm-plan`: where the plan goes, and what goes with it."""

import json
from pathlib import Path

import pytest

from forbear_testkit.audit.examples import POST
from forbear_testkit.cli.running import Invoke


@pytest.fixture
def code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with one finding of severity error; the test runs in it."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "shop.py").write_text(POST)
    return tmp_path


def test_a_plan_in_a_file(code: Path, invoke: Invoke) -> None:
    """The findings are printed as always, the plan is in the file, and a line says what to run next."""
    done = invoke("audit", "--jobs", "1", "--storm-plan", "plan.json")
    assert done.exit_code == 1
    assert done.stdout.endswith("1 error in 1 file\n")
    assert done.stderr == "wrote 1 place to plan.json; now run: pytest --forbear-storm --forbear-storm-plan plan.json\n"
    (place,) = json.loads((code / "plan.json").read_text())["places"]
    assert (place["path"], place["rule"], place["call"]) == ("shop.py", "UNSAFE", [7, 7])


def test_a_plan_on_stdout(code: Path, invoke: Invoke) -> None:
    """With "-" the plan is all that is printed."""
    done = invoke("audit", "--jobs", "1", "--storm-plan", "-")
    assert done.stderr == ""
    assert json.loads(done.stdout)["version"] == 1


@pytest.mark.parametrize(
    ("args", "text"),
    [
        (("--storm-plan", "-", "--json"), "`--storm-plan -` does not go with `--json` or `--sarif`"),
        (
            ("--storm-plan", "a", "--write-baseline", "--baseline", "b"),
            "`--storm-plan` does not go with `--write-baseline`",
        ),
        (("--storm-plan", "no/plan.json"), "`--storm-plan` cannot write no/plan.json: No such file or directory"),
    ],
)
def test_bad_options(args: tuple[str, ...], text: str, code: Path, invoke: Invoke) -> None:
    """A plan that cannot be written is an error of usage, with the cure."""
    done = invoke("audit", "--jobs", "1", *args)
    assert done.exit_code == 2
    assert text in done.stderr
    assert "hint: " in done.stderr
