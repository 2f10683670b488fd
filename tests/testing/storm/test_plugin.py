"""`pytest --forbear-storm` as users run it: async tests, unittest, fixtures, markers, xdist, and one fault again."""

import io
import json
import os
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from copy import copy
from pathlib import Path

import pytest

from forbear.testing.storm.plugin import StormPlugin

ROOT = Path(__file__).parents[3]
PLUGINS = "forbear.testing.pytest_plugin,anyio.pytest_plugin"
SUITE = """
import unittest
import anyio, httpx, pytest, requests, tenacity
from tests.support.testing.orders import orders_server

@pytest.fixture(scope="module")
def server():
    with orders_server() as server:
        yield server

@pytest.fixture
def orders(server):
    return server.count

retried = tenacity.retry(stop=tenacity.stop_after_attempt(3), wait=tenacity.wait_fixed(60), reraise=True)

@pytest.mark.forbear_storm(effects="orders", faults=["lost"])
def test_order(server, orders):
    retried(requests.post)(f"{server.url}/orders", timeout=5).raise_for_status()

@pytest.fixture(scope="module", params=["asyncio", "trio"])
def anyio_backend(request):
    return request.param

@pytest.fixture(scope="module")
async def shared(anyio_backend):
    async with httpx.AsyncClient(timeout=5, verify=False) as client:
        yield client

@pytest.mark.anyio
@pytest.mark.forbear_storm(effects="orders", faults=["503"], attempts=5)
async def test_endless(server, orders, shared, anyio_backend):
    async with httpx.AsyncClient(timeout=5, verify=False) as client:
        while (await client.get(server.url)).status_code == 503:
            await anyio.sleep(50)

def number_of_order(url):
    try:
        return requests.get(url, timeout=5).json()["id"]
    except requests.ConnectionError:
        return 0

class TestOrders(unittest.TestCase):
    @pytest.mark.forbear_storm(faults=["refused"])
    def test_swallowed(self):
        with orders_server() as server:
            self.assertEqual(number_of_order(server.url), 1)

@pytest.mark.forbear_storm(faults=["503"])
def test_subtests(server, subtests):
    for number in range(2):
        with subtests.test(number=number):
            assert number_of_order(server.url) == 1

@pytest.mark.forbear_storm(faults=["503"])
def test_honest_subtests(server, subtests):
    with subtests.test():
        requests.get(server.url, timeout=5).raise_for_status()

class TestParts(unittest.TestCase):
    @pytest.mark.forbear_storm(faults=["refused"])
    def test_parts(self):
        with orders_server() as server, self.subTest(part=1):
            self.assertEqual(number_of_order(server.url), 1)

runs = []

def test_unsteady(server):
    runs.append(0)
    for _ in runs:
        requests.get(server.url, timeout=5)

@pytest.mark.forbear_ignore
def test_ignored(server):
    runs.append(0)
    assert requests.get(server.url, timeout=5).ok

@pytest.mark.forbear_storm(faults=["503"])
def test_by_itself(server):
    assert requests.get(server.url, timeout=5).json()["id"] == 1

def test_no_calls():
    pass
"""


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


def run_here(folder: Path, monkeypatch: pytest.MonkeyPatch, *options: str, suite: str = SUITE) -> tuple[int, str]:
    """Do the same in this process, which has all modules already."""
    (folder / "test_suite.py").write_text(suite)
    monkeypatch.chdir(folder)
    monkeypatch.delitem(sys.modules, "test_suite", raising=False)
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    loaded = [part for name in PLUGINS.split(",") for part in ("-p", name)]
    output = io.StringIO()
    with redirect_stdout(output), redirect_stderr(output):
        code = pytest.main(
            ["-q", "-W", "error", "-p", "no:cacheprovider", "--import-mode=importlib", *loaded, *options, str(folder)]
        )
    return code, output.getvalue()


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
