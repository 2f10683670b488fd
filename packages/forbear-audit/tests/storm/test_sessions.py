"""Sessions of pytest in a storm: bad markers, state that stays between runs, caches, threads, and faults that miss."""

from pathlib import Path
from typing import Any

import pytest

from forbear_audit.storm import function, plugin
from forbear_testkit.testing.plugin import run_here

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
        ("cache", "`--forbear-fault 'GET /order#1:lost'` hits no call of these tests; they sent GET /#1"),
        ("no_calls", "hits no call of these tests; they sent none that a storm sees"),
    ],
)
def test_a_fault_that_misses(name: str, text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A fault that hits no call is an error of usage, not a green session, with the calls that there are."""
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
    assert "\nsilent: GET /#1 at test_suite.py:16; see `forbear storm` below\n" in output


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
    real = function.chosen

    def chosen(*arguments: Any) -> Any:
        planned = real(*arguments)
        samples.append(repr(planned))
        return planned

    monkeypatch.setattr(plugin, "chosen", chosen)
    for options in ((), *(("--forbear-storm-seed", seed) for seed in ("0", "1", "2", "3"))):
        run_here(tmp_path, monkeypatch, "--forbear-storm", "--forbear-storm-sample", "2", *options, suite=HEAD + MANY)
    assert samples[0] == samples[1]
    assert len(set(samples)) > 1
