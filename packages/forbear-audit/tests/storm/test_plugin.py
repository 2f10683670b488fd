"""`pytest --forbear-storm` as users run it: async tests, unittest, fixtures, markers, xdist, and one fault again."""

import json
import os
import subprocess
import sys
from copy import copy
from pathlib import Path

import pytest

from forbear_audit.storm.plugin import StormPlugin
from forbear_testkit import ROOT
from forbear_testkit.testing.plugin import PLUGINS, SUITE, run_here


def run(folder: Path, *options: str) -> tuple[int, str]:
    """Write the suite, run pytest on it with these options, and return the exit code and the output."""
    (folder / "test_suite.py").write_text(SUITE)
    command = [sys.executable, "-m", "pytest", "-q", "-W", "error", "-p", "no:cacheprovider", *options]
    plugins = f"{PLUGINS},xdist.plugin" if "-n" in options else PLUGINS
    environment = os.environ | {
        "PYTHONPATH": str(ROOT),
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        "PYTEST_PLUGINS": plugins,
    }
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, env=environment)
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize("workers", [(), pytest.param(("-n", "1"), marks=pytest.mark.soak)], ids=["alone", "xdist"])
def test_storm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, workers: tuple[str, ...]) -> None:
    """Each test is judged once, over xdist too; the findings are in the summary and in the JSON file."""
    options = ["--forbear-storm", *workers, "--forbear-storm-json", "storm.json"]
    code, output = run(tmp_path, *options) if workers else run_here(tmp_path, monkeypatch, *options)
    assert code == pytest.ExitCode.TESTS_FAILED, output
    assert "6 failed, 5 passed" in output
    assert "\n  pytest 'test_suite.py::test_order' --forbear-fault 'POST /orders#1:lost'\n" in output
    written = json.loads((tmp_path / "storm.json").read_text())
    listed = {(finding["test"].partition("::")[2], finding["kind"], finding["rule"]) for finding in written["findings"]}
    assert listed == {
        ("test_order", "duplicated", "UNSAFE"),
        ("test_endless[asyncio]", "storm", "UNBOUNDED"),
        ("test_endless[asyncio]", "late", "NO-DEADLINE"),
        ("test_endless[trio]", "storm", "UNBOUNDED"),
        ("test_endless[trio]", "late", "NO-DEADLINE"),
        ("TestOrders::test_swallowed", "silent", ""),
        ("test_subtests", "broken", ""),
        ("TestParts::test_parts", "silent", ""),
        ("test_unsteady", "unstable", ""),
        ("test_by_itself", "unchecked", ""),
    }
    assert {finding["site"].partition(":")[0] for finding in written["findings"]} == {"test_suite.py", "?"}


def test_one_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The command of a finding shows it again, with the traceback of the test, and leaves other tests alone."""
    code, output = run_here(
        tmp_path, monkeypatch, "--forbear-fault", "GET /#1:refused", "-k", "swallowed or order or ignored"
    )
    assert code == pytest.ExitCode.TESTS_FAILED, output
    assert "1 failed, 2 passed" in output
    assert "self.assertEqual(number_of_order(server.url), 1)" in output
    assert "3 tests" not in output


def test_nothing_without_the_option(pytestconfig: pytest.Config) -> None:
    """Without an option of the storm, its hooks are not there; the markers are known."""
    assert not pytestconfig.pluginmanager.has_plugin("forbear_storm")
    markers = [line.partition("(")[0].partition(":")[0] for line in pytestconfig.getini("markers")]
    assert {"forbear_storm", "forbear_ignore"} <= set(markers)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (["--forbear-fault", "POST"], "`--forbear-fault` must be CALL#NUMBER:FAULT"),
        (["--forbear-storm", "--forbear-storm-sample", "0"], "`--forbear-storm-sample` must be at least 1, got 0"),
        (["--forbear-storm", "--forbear-storm-json", "no/file"], "`--forbear-storm-json` must be a file in a folder"),
    ],
)
def test_bad_options(pytestconfig: pytest.Config, options: list[str], text: str) -> None:
    """A bad option ends pytest at once, with its rule."""
    config = copy(pytestconfig)
    config.option = config._parser.parse_known_args(options)
    with pytest.raises(pytest.UsageError, match=text):
        StormPlugin(config)


def test_cheap_to_load() -> None:
    """pytest loads the plugin in every project, so it loads no module of forbear or anything else."""
    script = (
        "import sys, pytest; before = set(sys.modules)\n"
        "import forbear_storm_pytest\n"
        "print(*sorted(set(sys.modules) - before - {'contextvars', '_contextvars'}))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["forbear_storm_pytest"]
