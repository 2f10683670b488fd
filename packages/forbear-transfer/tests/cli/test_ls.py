"""`forbear ls` and `forbear du`: lines, JSON and errors."""

import json
import os
import signal
from collections.abc import Mapping

import pytest

from forbear.testing import virtual_time
from forbear_cloud import Cloud, Fault
from forbear_testkit.cli.running import Invoke
from forbear_transfer.storage.client import Storage


def noon(seconds: float) -> str:
    """Return the same time for all objects."""
    return "2026-01-31T12:00:00Z"


@pytest.fixture(autouse=True)
def filled(cloud: Cloud, monkeypatch: pytest.MonkeyPatch) -> Cloud:
    """A cloud that the environment names, with some objects."""
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", cloud.url)
    monkeypatch.setattr("forbear_transfer.cli.shared.records.format_time", noon)
    for name in ("a\x1b[31m", "x/b", "x/c"):
        cloud.store.put("bkt", name, b"x" * 1536, {"contentType": "text/plain", "cacheControl": "no-store"})
    return cloud


@pytest.mark.parametrize(
    ("arguments", "lines"),
    [
        (["gs://bkt"], ["$'gs://bkt/a\\x1b[[]31m'", "gs://bkt/x/"]),
        (["-r", "gs://bkt/x"], ["gs://bkt/x/b", "gs://bkt/x/c"]),
        (["-l", "gs://bkt/x"], [f"        1536  2026-01-31T12:00:00Z  gs://bkt/x/{name}" for name in "bc"]),
        (["-lhr", "gs://bkt/x/b"], ["     1.5 KiB  2026-01-31T12:00:00Z  gs://bkt/x/b"]),
    ],
)
def test_ls_prints_addresses_without_control_characters(arguments: list[str], lines: list[str], invoke: Invoke) -> None:
    """Addresses, with sizes and times if `-l` is used; nothing in a name acts on the terminal."""
    done = invoke("ls", *arguments)
    assert (done.exit_code, done.stdout.splitlines()) == (0, lines)


def test_versions_have_their_numbers(invoke: Invoke, filled: Cloud) -> None:
    """The addresses can be pasted back; without the option they are those of the live objects."""
    there = filled.store.object("bkt", "x/b").generation
    assert invoke("ls", "--versions", "gs://bkt/x/b").stdout == f"gs://bkt/x/b#{there}\n"
    assert invoke("ls", "-la", "gs://bkt/x/b").stdout.split()[-1] == f"gs://bkt/x/b#{there}"
    assert invoke("cat", f"gs://bkt/x/b#{there}").stdout == "x" * 1536


def test_json_has_one_object_on_each_line(invoke: Invoke, filled: Cloud) -> None:
    """One object on each line, with these keys."""
    there = filled.store.object("bkt", "x/b")
    *_, last = invoke("ls", "--json", "gs://bkt").stdout.splitlines()
    assert json.loads(last) == {"url": "gs://bkt/x/", "type": "folder"}
    assert json.loads(invoke("ls", "--json", "gs://bkt/x/b").stdout) == {
        "url": "gs://bkt/x/b",
        "type": "object",
        "size": 1536,
        "updated": "2026-01-31T12:00:00Z",
        "generation": there.generation,
        "metageneration": 1,
        "crc32c": there.crc32c,
        "md5": there.md5,
        "content_type": "text/plain",
        "content_encoding": None,
        "cache_control": "no-store",
        "content_disposition": None,
        "content_language": None,
        "storage_class": "STANDARD",
        "custom_time": None,
        "key_sha256": None,
        "kms_key": None,
        "metadata": {},
    }


@pytest.mark.parametrize(
    ("arguments", "code", "error"),
    [
        (["gs://bkt/none"], 1, "error: gs://bkt/none does not exist\nhint: check the name\n"),
        (["x"], 2, "error: `ADDRESS` must begin with gs://, got 'x'\n"),
        (["--endpoint", "http://127.0.0.1:1", "--retry", "attempts=1", "gs://bkt"], 1, "error: cannot connect to"),
    ],
)
def test_errors_of_ls_have_the_exit_codes_of_cp(arguments: list[str], code: int, error: str, invoke: Invoke) -> None:
    """With the exit codes of `cp`."""
    done = invoke("ls", *arguments)
    assert done.exit_code == code
    assert done.stderr.startswith(error)


@pytest.mark.parametrize("command", [["ls"], ["du"], ["stat"], ["cat"], ["cat", "-r", "x"], ["check", "-x", "[", "."]])
def test_arguments_come_before_credentials(command: list[str], invoke: Invoke, monkeypatch: pytest.MonkeyPatch) -> None:
    """A wrong address or option is the error, also for a user who is not logged in."""
    monkeypatch.delenv("STORAGE_EMULATOR_HOST")
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", "/none")
    done = invoke(*command, "gs://B")
    assert (done.exit_code, done.stdout, "credentials" in done.stderr) == (2, "", False)


@pytest.mark.parametrize(
    "fault", [Fault.status(503, times=None), Fault.close(times=None), Fault.truncate(5, times=None)]
)
def test_a_service_that_stays_away(fault: Fault, invoke: Invoke, filled: Cloud) -> None:
    """The error says how often and how long the command has tried."""
    filled.fault(fault)
    with virtual_time(seed=1):
        done = invoke("ls", "--retry", "attempts=3", "gs://bkt")
    assert (done.exit_code, done.stdout) == (1, "")
    first = done.stderr.splitlines()[0]
    assert first.startswith("error: ")
    assert "; gave up after 3 attempts in " in first
    assert " s: limit of 3 attempts reached" in first


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_ls_at_once(signum: signal.Signals, invoke: Invoke, monkeypatch: pytest.MonkeyPatch) -> None:
    """A signal ends the command at once with 128 + N."""
    plain = Storage.url

    def interrupt(self: Storage, path: str, query: Mapping[str, str | int | None] | None = None) -> str:
        os.kill(os.getpid(), signum)
        return plain(self, path, query)

    monkeypatch.setattr(Storage, "url", interrupt)
    done = invoke("ls", "gs://bkt")
    assert (done.exit_code, done.stdout, done.stderr) == (128 + signum, "", "interrupted\n")
