"""`pytest --forbear-storm` as users run it: fixtures, markers, xdist, state between runs, and one fault again."""

import json
import os
import subprocess
import sys
from copy import copy
from pathlib import Path
from typing import Any

import pytest

from forbear_audit.storm import function, plugin
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
def test_each_test_is_judged_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, workers: tuple[str, ...]) -> None:
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


HEAD = """
import threading
import pytest, requests
from forbear_testkit.testing.orders import orders_server

@pytest.fixture(scope="module")
def server():
    with orders_server() as server:
        yield server
"""


BAD = {
    'faults=["lst"]': "`faults` must be of lost, refused, 503, 429, slow, cut; got 'lst'",
    'faults="lost"': "`faults` must be a list of names, such as ['lost', '503']; got 'lost'",
    "attempts=0": "`attempts` must be 1 or more and finite, got 0",
    "sample=0": "`sample` must be 1 or more and finite, got 0",
    'minutes="a"': "`minutes` must be a number of seconds, got 'a'",
    "attempt=3": "it takes the keywords attempts, effects, faults, minutes, sample; got 'attempt'",
    "effects=7": "`effects` must be a function or the name of a fixture; got 7",
    'effects="orders"': "`effects` must be a fixture that the test uses; got 'orders'",
    "effects=lambda: None": "a source of effects, must return how many effects there are so far",
}


def test_bad_markers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A bad value in a marker fails its own test with a clear text, and the session goes on."""
    tests = [
        f"@pytest.mark.forbear_storm({bad})\ndef test_{number}(server):\n    assert requests.get(server.url, timeout=5)"
        for number, bad in enumerate(BAD)
    ]
    suite = "\n\n".join([HEAD, *tests, "def test_good(server):\n    pass\n"])
    code, output = run_here(tmp_path, monkeypatch, "--forbear-storm", suite=suite)
    assert code == pytest.ExitCode.TESTS_FAILED, output
    assert f"{len(BAD)} failed, 1 passed" in output
    assert [text for text in BAD.values() if text not in output] == []


STATE = """
class TestState:
    def test_instance(self, server):
        assert not hasattr(self, "response")
        self.response = requests.get(server.url, timeout=5)
        assert self.response.ok

    @pytest.mark.parametrize("number", [1, 2])
    def test_parameters(self, server, number):
        self.test_instance(server)

token = []

def test_cache(server):
    if not token:
        token.append(requests.get(f"{server.url}/token", timeout=5).json())
    requests.get(server.url, timeout=5).raise_for_status()

def test_thread(server):
    thread = threading.Thread(target=lambda: requests.get(server.url, timeout=5).raise_for_status())
    thread.start()
    thread.join()
"""


def test_runs_are_like_tests(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each run has an instance of its own; a first run may fill a cache; errors of threads stay out of the report."""
    shown = ("-W", "always::pytest.PytestUnhandledThreadExceptionWarning")
    code, output = run_here(tmp_path, monkeypatch, "--forbear-storm", *shown, suite=HEAD + STATE)
    assert code == pytest.ExitCode.OK, output
    assert "5 passed" in output
    assert "warning" not in output
    assert "unstable" not in output


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("cache", "`--forbear-fault 'GET /order#1:lost'` meets no call of these tests; they sent GET /#1"),
        ("no_calls", "meets no call of these tests; they sent none that a storm sees"),
    ],
)
def test_a_fault_that_misses(name: str, text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A fault that meets no call is an error of usage, not a green session, with the calls that there are."""
    suite = f"{HEAD}{STATE}\ndef test_no_calls():\n    pass\n"
    code, output = run_here(tmp_path, monkeypatch, "--forbear-fault", "GET /order#1:lost", "-k", name, suite=suite)
    assert code == pytest.ExitCode.USAGE_ERROR
    assert text in output


def test_findings_are_printed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The report of a test names its findings, and the summary has the rest of them."""
    suite = f"{HEAD}\ndef test_wrong(server):\n    assert fetch(server)\n\ndef fetch(server):\n    try:\n"
    suite += "        return requests.get(server.url, timeout=5).ok\n    except OSError:\n        return False\n"
    code, output = run_here(tmp_path, monkeypatch, "--forbear-storm", suite=suite)
    assert code == pytest.ExitCode.TESTS_FAILED, output
    assert output.count("pytest 'test_suite.py::test_wrong' --forbear-fault 'GET /#1:lost'") == 1
    assert "\nsilent: GET /#1 at test_suite.py:16; see the section `forbear storm` below\n" in output


def test_mocked_transports_are_not_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A session that sends nothing proves nothing, and gets a warning."""
    suite = "import httpx\n\ndef test_order():\n    transport = httpx.MockTransport(lambda _: httpx.Response(200))\n"
    suite += "    assert httpx.Client(transport=transport).post('https://shop.example/orders').is_success\n"
    code, output = run_here(tmp_path, monkeypatch, "--forbear-storm", suite=suite)
    assert code == pytest.ExitCode.OK, output
    assert "\n1 test, 0 runs with a fault, nothing found\nthe tests sent nothing" in output


@pytest.mark.parametrize("option", ["json=a.json", "sarif=a.sarif", "sample=3", "seed=0", "plan=plan.json"])
def test_options_that_need_a_storm(option: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An option of the storm without a storm is an error, not a session without one."""
    code, output = run_here(tmp_path, monkeypatch, f"--forbear-storm-{option}", suite=HEAD)
    assert code == pytest.ExitCode.USAGE_ERROR
    name = option.partition("=")[0]
    assert f"`--forbear-storm-{name}` does nothing without `--forbear-storm`: add it" in output


MANY = """
@pytest.mark.forbear_storm(faults=["503"])
def test_many(server):
    for letter in "abcdefgh":
        requests.get(f"{server.url}/{letter}", timeout=5).raise_for_status()
"""


def test_the_seed_chooses_the_sample(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Other seeds choose other runs, and the same seed the same ones; without one it is 0."""
    samples: list[str] = []
    real = function.choose_faults

    def chosen(*arguments: Any) -> Any:
        planned = real(*arguments)
        samples.append(repr(planned))
        return planned

    monkeypatch.setattr(plugin, "choose_faults", chosen)
    for options in ((), *(("--forbear-storm-seed", seed) for seed in ("0", "1", "2", "3"))):
        run_here(tmp_path, monkeypatch, "--forbear-storm", "--forbear-storm-sample", "2", *options, suite=HEAD + MANY)
    assert samples[0] == samples[1]
    assert len(set(samples)) > 1
