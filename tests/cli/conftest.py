"""Fixtures that call the command line, in this process or in one of its own."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from functools import cache
from typing import Any, TypeVar

import pytest
from click.testing import CliRunner, Result

from forbear.cli.app import app
from forbear.cli.demo.fleet import FLEETS
from forbear.cli.demo.shared import SharedResult
from forbear.cli.demo.upload import UploadResult
from forbear.cli.simulate.example import EXAMPLE
from forbear.simulate import FleetOutcome, read_mapping, simulate
from tests.transfer.conftest import cloud, own_states, running_cloud

__all__ = ["cloud", "own_states", "running_cloud"]

FORBEAR = (sys.executable, "-m", "forbear.cli")

T = TypeVar("T")
Invoke = Callable[..., Result]
Finished = subprocess.CompletedProcess[str]
Finish = Callable[..., Finished]
Start = Callable[..., subprocess.Popen[str]]


@pytest.fixture
def invoke(monkeypatch: pytest.MonkeyPatch) -> Invoke:
    """Call the command line in this process; a bug raises its exception."""
    monkeypatch.delenv("COLUMNS", raising=False)

    def call(*args: str) -> Result:
        return CliRunner().invoke(app, args, prog_name="forbear", catch_exceptions=False)

    return call


@pytest.fixture(scope="session")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Return the environment that makes programs under test share their compiled files, if the tests write none."""
    return {"PYTHONPYCACHEPREFIX": str(tmp_path_factory.mktemp("compiled"))} if sys.dont_write_bytecode else {}


@pytest.fixture
def env(compiled: dict[str, str]) -> dict[str, str]:
    """The environment of programs under test, with nothing in it that changes colours or retries."""
    unwanted = ("NO_COLOR", "FORCE_COLOR", "FORBEAR_DISABLED", "FORBEAR_ATTEMPT", "COLUMNS", "PYTHONDONTWRITEBYTECODE")
    return {name: value for name, value in os.environ.items() if name not in unwanted} | compiled


@pytest.fixture
def finish(env: dict[str, str]) -> Finish:
    """Run the command line as a program to its end."""

    def call(*args: str, input: str | None = None, **more: str) -> Finished:
        return subprocess.run(
            [*FORBEAR, *args],
            input=input,
            stdin=subprocess.DEVNULL if input is None else None,
            env=env | more,
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
        )

    return call


@pytest.fixture
def start(env: dict[str, str]) -> Iterator[Start]:
    """Start the command line as a program; kill the rest of it at the end."""
    with ExitStack() as stack:

        def call(*args: str) -> subprocess.Popen[str]:
            process = subprocess.Popen(
                [*FORBEAR, *args],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=env,
                text=True,
            )
            stack.enter_context(process)
            stack.callback(process.kill)
            return process

        yield call


UPLOADED = UploadResult(
    size=50_331_648,
    kept=32_505_856,
    continued_at=32_505_856,
    sent=50_515_968,
    generations=1,
    equal=True,
    codes=(-9, 0),
)
"""The expected result of the upload part of the demo."""


def uploaded(found: UploadResult) -> Callable[[int], UploadResult]:
    """Return a stand-in for the upload part of the demo, with this result."""

    def kill_and_run_again(seed: int) -> UploadResult:
        return found

    return kill_and_run_again


SHARED = SharedResult(processes=12, killed=4, successes=9_000, granted=850, refused=1_500, unshared=900, lost=7, back=1)
"""A result of the shared part of the demo that keeps its bound of 934 retries."""


def shared_by(result: SharedResult) -> Callable[[], SharedResult]:
    """Return a stand-in for the shared part of the demo, with this result."""
    return lambda: result


@cache
def fleets() -> tuple[tuple[str, FleetOutcome], ...]:
    """Return the results of the fleet part of the demo, by the engine that is quicker."""
    return tuple((name, simulate(read_mapping(EXAMPLE, changes))) for name, changes in FLEETS.items())


def replay(results: Iterable[T]) -> Callable[..., Iterator[T]]:
    """Return a stand-in for `compare` of a part of the demo, with these results."""

    def contest(*_: object) -> Iterator[T]:
        return iter(results)

    return contest


def explained(invoke: Invoke, *args: str) -> dict[str, Any]:
    """Return the JSON that `forbear explain --json` prints."""
    done = invoke("explain", "--json", *args)
    assert done.exit_code == 0, done.stderr
    document: dict[str, Any] = json.loads(done.stdout)
    return document


def retried(document: dict[str, Any]) -> dict[str, bool]:
    """Return which failures are retried."""
    return {outcome["failure"]: outcome["retried"] for outcome in document["failures"]}
