"""`forbear doctor`: the table of clients, and one real request through each of those that are installed."""

import csv
import json
from importlib.metadata import PackageNotFoundError
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from forbear.cli import doctor
from forbear.evidence import walk
from forbear_testkit.cli.running import Invoke

TABLE = Path(doctor.__file__).with_name("doctor.csv")
ROWS = list(csv.DictReader(TABLE.read_text(encoding="utf-8").splitlines()))
FAST = ("httpx", "httpx2", "requests", "urllib3", "aiohttp", "boto3", "redis", "valkey", "grpcio")
"""Clients with which the tests are run anyway; the import of others may take a second."""
TRIED = [
    name if name in FAST else pytest.param(name, marks=pytest.mark.soak)
    for name, module in ((row["distribution"], row["module"]) for row in ROWS)
    if module and find_spec(module.partition(".")[0]) is not None
]


def test_each_row_says_what_it_must() -> None:
    """A client is seen by decorators or not, has a cure, and stands once; each that is tried has a row."""
    names = [row["distribution"] for row in ROWS]
    assert len(set(names)) == len(names)
    assert all(row["decorator"] in ("yes", "no", "") and row["cure"] for row in ROWS)
    assert doctor._SENDERS.keys() == {row["distribution"] for row in ROWS if row["module"] and row["sends"]}
    assert doctor._SENDERS.keys() <= {row["distribution"] for row in ROWS if row["decorator"] == "yes"}


@pytest.mark.filterwarnings("ignore:(read|open)_text is deprecated:DeprecationWarning")  # by kafka-python
@pytest.mark.parametrize("name", TRIED)
def test_a_lost_request_is_found(invoke: Invoke, name: str) -> None:
    """The error of each real client shows the request that a server on loopback has lost."""
    done = invoke("doctor", "--check", "--json", name)
    (client,) = json.loads(done.stdout)["clients"]
    assert (done.exit_code, client["distribution"], client["found"]) == (0, name, True)


def test_a_client_that_shows_nothing_is_reported(invoke: Invoke, monkeypatch: pytest.MonkeyPatch) -> None:
    """If a new version hides its requests, the table says NO, and the command fails."""

    def read_nothing(error: BaseException) -> None:
        return None

    monkeypatch.setattr(doctor, "read", read_nothing)
    done = invoke("doctor", "--check", "httpx")
    assert done.exit_code == 1
    assert " NO " in done.stdout


def test_a_timeout_that_shows_nothing_is_reported(invoke: Invoke, monkeypatch: pytest.MonkeyPatch) -> None:
    """A client that shows what was lost, but not what timed out, is not found; stderr says after what."""
    real = doctor._SENDERS["httpx"]

    def hide_timeouts(url: str, library: Any, seconds: float) -> None:
        try:
            real(url, library, seconds)
        except library.TimeoutException:
            hidden = True
        else:
            hidden = False
        if hidden:
            raise TimeoutError("nobody answered")

    monkeypatch.setitem(doctor._SENDERS, "httpx", hide_timeouts)
    done = invoke("doctor", "--check", "httpx")
    assert done.exit_code == 1
    assert "httpx does not show its request after a timeout" in done.stderr


def test_a_client_that_cannot_be_set_up_is_not_tried(invoke: Invoke, monkeypatch: pytest.MonkeyPatch) -> None:
    """A client that has sent nothing is neither found nor missed; stderr says why, in one line."""

    def set_up(url: str, library: Any, seconds: float) -> None:
        library.HTTPTransport(proxy=library.Proxy(f"gopher{url[4:]}"))

    monkeypatch.setitem(doctor._SENDERS, "httpx", set_up)
    done = invoke("doctor", "--check", "--json", "httpx")
    (client,) = json.loads(done.stdout)["clients"]
    assert (done.exit_code, client["found"]) == (0, None)
    assert len(done.stderr.splitlines()) == 1
    assert "httpx was not tried, because it sent nothing: ValueError: " in done.stderr


def test_a_request_of_another_name_does_not_count(invoke: Invoke, monkeypatch: pytest.MonkeyPatch) -> None:
    """An error that shows some other request is not what was sent."""

    def read_other(error: BaseException) -> Any:
        evidence: Any = walk.read(error)
        for each in evidence.requests:
            each.method = "GET"
        return evidence

    monkeypatch.setattr(doctor, "read", read_other)
    assert invoke("doctor", "--check", "requests").exit_code == 1


def test_the_table_without_a_check(invoke: Invoke) -> None:
    """It lists what is installed, with versions and cures, and sends nothing."""
    done = invoke("doctor")
    assert done.exit_code == 0
    assert "found" not in done.stdout
    assert "client = forbear.install(httpx.Client())" in done.stdout
    assert "middlewares=[forbear.clients.aiohttp.RetryMiddleware()]" in done.stdout
    assert ("niquests" in done.stdout) is (find_spec("niquests") is not None)


def test_nothing_is_installed(invoke: Invoke, monkeypatch: pytest.MonkeyPatch) -> None:
    """Then one line says so on stderr, and the JSON is an empty list."""

    def missing(name: str) -> str:
        raise PackageNotFoundError(name)

    monkeypatch.setattr(doctor, "version", missing)
    assert "no client that forbear knows is installed here" in invoke("doctor").stderr
    assert json.loads(invoke("doctor", "--json").stdout) == {"clients": []}


def test_a_wrong_name(invoke: Invoke) -> None:
    """The error names the argument, the value and all that may be written."""
    done = invoke("doctor", "httpy")
    assert done.exit_code == 2
    assert "'httpy' must be one of httpx, httpx2, requests" in done.stderr
