"""Fixtures that call the command line, in this process or in one of its own."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from click.testing import CliRunner, Result

from forbear.cli.app import app

FORBEAR = (sys.executable, "-m", "forbear")
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


def explained(invoke: Invoke, *args: str) -> dict[str, Any]:
    """Return the JSON that `forbear explain --json` prints."""
    done = invoke("explain", "--json", *args)
    assert done.exit_code == 0, done.stderr
    document: dict[str, Any] = json.loads(done.stdout)
    return document


def retried(document: dict[str, Any]) -> dict[str, bool]:
    """Return which failures are retried."""
    return {outcome["failure"]: outcome["retried"] for outcome in document["failures"]}
