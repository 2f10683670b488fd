"""`--shared-budget` of `forbear run`, `cp` and `rsync`: the server's URL is in the environment."""

import signal
from collections.abc import Generator
from pathlib import Path

import pytest
from redis import Redis

from forbear.shared_budget.script import command, key_of
from forbear.testing import virtual_time
from forbear.testing.valkey import valkey_server
from forbear_testkit.cli.running import Finish, Invoke, Start
from forbear_testkit.clients.redis.proxy import HANG, proxy

URL = "FORBEAR_BUDGET_URL"
COMMANDS = [("run", "true"), ("cp", "a", "gs://bkt/"), ("rsync", "a", "gs://bkt/")]
UNSET = (
    f"error: `--shared-budget` needs the URL of a Redis or Valkey server in {URL}, which is not set\n"
    f"hint: set it in the environment: export {URL}=redis://localhost:6379/0\n"
)


@pytest.fixture
def path() -> Generator[str]:
    """Run a server."""
    with valkey_server() as running:
        yield running


@pytest.mark.parametrize("arguments", COMMANDS, ids=lambda arguments: arguments[0])
def test_what_is_wrong_is_said_at_the_start(
    arguments: tuple[str, ...], invoke: Invoke, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A missing or wrong URL and a wrong name are bad input; the URL is not shown, as it may have a password."""
    name, *others = arguments
    monkeypatch.delenv(URL, raising=False)
    unset = invoke(name, "--shared-budget", "x", *others)
    assert (unset.exit_code, unset.stderr) == (2, UNSET)
    monkeypatch.setenv(URL, "http://:hunter2@h")
    wrong = invoke(name, "--shared-budget", "x", *others)
    assert wrong.exit_code == 2
    assert f"error: {URL} must be a URL such as redis://" in wrong.stderr
    assert "hunter2" not in wrong.stderr
    monkeypatch.setenv(URL, "redis://h")
    unnamed = invoke(name, "--shared-budget", "{", *others)
    assert "error: `--shared-budget` must have 1 to 200 printable characters" in unnamed.stderr


def test_programs_share_a_budget(path: str, finish: Finish) -> None:
    """Two runs together get what is in the bucket, and what one leaves there the other takes."""
    with Redis(unix_socket_path=path) as client:
        client.execute_command("EVAL", *command(key_of("jobs"), 20_000_000, 0, 0)[1:])  # two tokens
    arguments = ("run", "--shared-budget", "jobs", "--constant", "200ms", "--attempts", "2", "sh", "-c", "exit 3")
    shared = {URL: f"unix://{path}"}
    first, second, third = (finish(*arguments, **shared) for _ in range(3))
    assert [first.returncode, second.returncode, third.returncode] == [3, 3, 3]
    assert "gave up after 2 attempts" in first.stderr
    assert "gave up after 2 attempts" in second.stderr
    assert "gave up after 1 attempt in" in third.stderr
    assert "the retry budget is used up [budget]; last failure: exit code 3" in third.stderr


def test_a_server_that_is_away(finish: Finish) -> None:
    """A run prints one line about it and has no retry; a transfer prints one, too, and succeeds without a retry."""
    gone = {URL: "redis://:hunter2@127.0.0.1:1"}
    done = finish("run", "--shared-budget", "jobs", "--constant", "10ms", "sh", "-c", "exit 3", **gone)
    assert done.returncode == 3
    lost, gave_up = done.stderr.splitlines()
    assert lost.startswith(
        "forbear: shared budget jobs: cannot reach redis://127.0.0.1:1/0: Connection refused; it asks"
    )
    assert gave_up.startswith("forbear: gave up after 1 attempt")


def test_a_transfer_has_it(invoke: Invoke, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A failed upload is not sent again while the budget grants nothing."""
    monkeypatch.setenv(URL, "redis://127.0.0.1:1")
    folder = tmp_path / "folder"
    folder.mkdir()
    for number in range(10):
        (folder / str(number)).write_text("x")
    arguments = ("cp", "-r", "--embedded", "--faults", "1", "--retry", "constant=10ms", str(folder), "gs://demo/")
    with virtual_time():  # the faults of --faults ask for waits of seconds
        assert invoke(*arguments).exit_code == 0
    refused = invoke(*arguments, "--shared-budget", "x")
    assert refused.exit_code == 1
    assert refused.stderr.count("forbear: shared budget x: cannot reach") == 1
    assert "the retry budget is used up" in refused.stderr


@pytest.mark.usefixtures("env")
def test_a_signal_ends_the_wait_for_a_hung_server(path: str, env: dict[str, str], start: Start) -> None:
    """The run sleeps for its backoff before it looks for the answer again; a signal ends that sleep."""
    with proxy(path, lambda _: HANG) as seen:
        env[URL] = f"redis://127.0.0.1:{seen.port}"
        process = start("run", "--shared-budget", "x", "--constant", "60", "sh", "-c", "exit 3")
        assert process.stderr is not None
        assert process.stderr.readline() == "forbear: exit code 3; attempt 2 of 5 in 60 s\n"
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 128 + signal.SIGTERM
