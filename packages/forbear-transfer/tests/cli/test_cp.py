"""`forbear cp`: what it copies, what it says on which stream, and how it ends."""

import json
import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from forbear.cli.app import app
from forbear.testing import virtual_time
from forbear_cloud import Cloud, Fault
from forbear_testkit.cli.running import Invoke

EVIL = "\x1b[2J\u202eevil\nname"
"""A name that would clear the screen, turn the writing and begin a line of its own."""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, cloud: Cloud, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with a few files, and a cloud that the environment names."""
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", cloud.url)
    monkeypatch.chdir(tmp_path)
    photos = tmp_path / "photos"
    photos.mkdir()
    for number in (1, 2, 3):
        (photos / f"{number}.jpg").write_text(f"photo {number}")
    return tmp_path


def stored(cloud: Cloud) -> dict[str, bytes]:
    """Return the objects in the cloud."""
    return {item.name: item.data for item in cloud.store.bucket("bkt").versions()}


def test_up_and_down_again(invoke: Invoke, cloud: Cloud, folder: Path) -> None:
    """A folder goes up and what a pattern matches comes down; all that is said is one line each, on stderr."""
    up = invoke("cp", "-r", "photos", "gs://bkt/")
    assert (up.exit_code, up.stdout) == (0, "")
    assert up.stderr.startswith("3 files, 21 B in ")
    assert up.stderr.count("\n") == 1
    assert stored(cloud) == {f"photos/{number}.jpg": f"photo {number}".encode() for number in (1, 2, 3)}
    down = invoke("cp", "gs://bkt/photos/[12].*", "new/")
    assert (down.exit_code, down.stdout) == (0, "")
    assert [path.read_text() for path in sorted((folder / "new").iterdir())] == ["photo 1", "photo 2"]


_START = """
import atexit, gc, sys
from forbear.cli import main
from forbear.text import redact
atexit.register(lambda: print(len(redact._compiled), gc.get_freeze_count() > 0, *sorted(sys.modules)))
main()
"""


@pytest.mark.parametrize("args", [("photos/1.jpg", "gs://bkt/"), ("gs://bkt/1.jpg", ".")], ids=["up", "down"])
def test_a_copy_loads_only_what_it_uses(args: tuple[str, ...], cloud: Cloud, env: dict[str, str]) -> None:
    """The copy of one small file loads nothing that only failures or other copies need, and ends at once."""
    if args[0].startswith("gs:"):
        cloud.store.put("bkt", "1.jpg", b"photo 1")
    line = [sys.executable, "-c", _START, "cp", "--quiet", *args]
    said = subprocess.run(line, env=env, capture_output=True, text=True, check=True).stdout.split()
    assert said[:2] == ["0", "True"]  # no patterns of secrets were compiled; the end looked for no cycles
    unwanted = {
        "dataclasses",
        "difflib",
        "forbear.answers.profile",
        "forbear.core.presets",
        "forbear.services.policies",
        "forbear.services.redis.errors",
        "google.auth",
        "http",
        "pickle",
        "random",
        "rich",
    }
    if sys.version_info >= (3, 14):
        unwanted.remove("dataclasses")  # asyncio loads them there
    assert not unwanted & set(said)


def test_quiet_prints_only_failures(invoke: Invoke) -> None:
    """With `-q` nothing is said but what failed."""
    assert invoke("cp", "-q", "photos/1.jpg", "gs://bkt/").output == ""
    failed = invoke("cp", "-q", "photos/9.jpg", "gs://bkt/")
    assert failed.exit_code == 2
    assert failed.stderr == "error: photos/9.jpg does not exist\nhint: check the name\n"


def test_json_has_a_line_for_each_outcome(invoke: Invoke, cloud: Cloud) -> None:
    """With `--json` each outcome is a line of its own, and the summary is the last; failures are on stderr as well."""
    cloud.fault(Fault.status(403, operation="storage.objects.insert", nth=2))
    done = invoke("cp", "--json", "--parallel", "1", "photos/1.jpg", "photos/2.jpg", "gs://bkt/")
    first, second, summary = map(json.loads, done.stdout.splitlines())
    generation = cloud.store.object("bkt", "1.jpg").generation
    assert first["seconds"] > 0
    assert {**first, "seconds": 0} == {
        "source": "photos/1.jpg",
        "target": "gs://bkt/1.jpg",
        "action": "copy",
        "status": "done",
        "size": 7,
        "bytes": 7,
        "seconds": 0,
        "retries": 0,
        "generation": generation,
        "crc32c": cloud.store.object("bkt", "1.jpg").crc32c,
        "error": None,
        "hint": None,
        "tried": None,
    }
    assert (second["status"], second["hint"]) == ("failed", "ask the owner of the bucket for the permission")
    counts = {"done": 1, "deleted": 0, "skipped": 0, "failed": 1, "bytes": 7, "retries": 0}
    assert counts.items() <= summary["summary"].items()
    assert done.exit_code == 1
    assert "error: " in done.stderr


def test_existing_targets_are_skipped_with_n(invoke: Invoke, cloud: Cloud) -> None:
    """An existing target is skipped with `-n`, and replaced without; to skip it is no failure."""
    invoke("cp", "photos/1.jpg", "gs://bkt/x")
    skipped = invoke("cp", "-n", "photos/2.jpg", "gs://bkt/x")
    assert (skipped.exit_code, stored(cloud)["x"]) == (0, b"photo 1")
    assert skipped.stderr.endswith("; 1 skipped\n")
    assert invoke("cp", "photos/2.jpg", "gs://bkt/x").exit_code == 0
    assert stored(cloud)["x"] == b"photo 2"


def test_one_failure_stops_no_other(invoke: Invoke, cloud: Cloud) -> None:
    """The error names what failed, each try and a cure; everything else is done, and the exit code is 1."""
    cloud.fault(Fault.status(503, operation="storage.objects.insert", skip=1, times=3))
    with virtual_time():
        done = invoke("cp", "-r", "--parallel", "1", "--retry", "attempts=3", "photos", "gs://bkt/")
    assert done.exit_code == 1
    assert stored(cloud).keys() == {"photos/1.jpg", "photos/3.jpg"}
    lines = done.stderr.splitlines()
    assert lines[0].startswith("error: ")
    assert "photos/2.jpg" in lines[0]
    assert "503 Service Unavailable" in lines[0]
    assert lines[1].startswith("tried: gave up after 3 attempts in ")
    assert "limit of 3 attempts reached" in lines[1]
    assert lines[-1].startswith("2 files, 14 B in ")
    assert lines[-1].endswith("; 2 retries; 1 failed")


def test_stdin_and_stdout(cloud: Cloud) -> None:
    """A dash is stdin as the source and stdout as the target, byte for byte."""
    data = bytes(range(256)) * 100
    runner = CliRunner()
    up = runner.invoke(app, ["cp", "-", "gs://bkt/stream"], input=data, catch_exceptions=False)
    assert (up.exit_code, up.stdout_bytes) == (0, b"")
    assert stored(cloud)["stream"] == data
    down = runner.invoke(app, ["cp", "gs://bkt/stream", "-"], catch_exceptions=False)
    assert (down.exit_code, down.stdout_bytes) == (0, data)
    assert down.stderr.startswith("1 file, 25.0 KiB in ")


def test_a_manifest_leaves_out_items_that_are_done(invoke: Invoke, cloud: Cloud) -> None:
    """A run with the manifest of an earlier one leaves out what that has done."""
    cloud.fault(Fault.status(403, operation="storage.objects.insert", times=1))
    first = invoke("cp", "-r", "--manifest", "done.csv", "photos", "gs://bkt/photos/")
    assert (first.exit_code, len(stored(cloud))) == (1, 2)
    before = cloud.effects.total
    second = invoke("cp", "-r", "--manifest", "done.csv", "photos", "gs://bkt/photos/")
    assert second.exit_code == 0
    assert second.stderr.startswith("1 file, 7 B in ")
    assert "; 2 skipped\n" in second.stderr
    assert cloud.effects.total == before + 1


def test_excluded_files_are_not_copied(invoke: Invoke, cloud: Cloud) -> None:
    """Files that `-x` matches are not copied."""
    assert invoke("cp", "-r", "-x", "[12]", "photos", "gs://bkt/all/").exit_code == 0
    assert stored(cloud).keys() == {"all/photos/3.jpg"}


@pytest.mark.parametrize(
    ("args", "lines"),
    [
        (
            ("gs://bkt/none", "."),
            ["error: download gs://bkt/none: 404 Not Found", "hint: check the names of the bucket"],
        ),
        (("photos/1.jpg", "gs://none/"), ["404 Not Found", "hint: check the names of the bucket and the object"]),
        (("photos", "gs://bkt/"), ["error: photos: it is a folder", "hint: copy folders with `--recursive`"]),
        (("gs://bkt/*.none", "."), ["error: nothing matches gs://bkt/*.none", "hint: quote the pattern"]),
    ],
)
def test_a_missing_source_is_named(args: tuple[str, ...], lines: list[str], invoke: Invoke) -> None:
    """The error names a missing source, with a cure, and the exit code is 1."""
    done = invoke("cp", *args)
    assert (done.exit_code, done.stdout) == (1, "")
    for text, line in zip(lines, done.stderr.splitlines(), strict=False):
        assert text in line


def test_the_error_without_a_server_names_another_endpoint(invoke: Invoke) -> None:
    """If no server listens, the error names the options that select another service."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    with virtual_time():
        done = invoke("cp", "--retry", "attempts=2", "--endpoint", f"127.0.0.1:{port}", "photos/1.jpg", "gs://bkt/")
    assert done.exit_code == 1
    assert "cannot connect to" in done.stderr
    assert "hint: check the network; --endpoint or STORAGE_EMULATOR_HOST selects another service" in done.stderr


def test_an_unknown_host(invoke: Invoke) -> None:
    """An endpoint whose name does not exist is reported without a retry, and the hint names the option."""
    with virtual_time() as time:
        done = invoke("cp", "--endpoint", "https://gcs.invalid", "photos/1.jpg", "gs://bkt/")
    assert (done.exit_code, time.slept) == (1, [])
    assert "error: photos/1.jpg: cannot connect to gcs.invalid: " in done.stderr
    assert "hint: check the name of the host: `--endpoint` or STORAGE_EMULATOR_HOST selects the service" in done.stderr


def test_no_proxy(invoke: Invoke, monkeypatch: pytest.MonkeyPatch) -> None:
    """If a proxy cannot be reached, error and hint name the proxy: only the user can correct its address."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    for name in ("https_proxy", "all_proxy", "no_proxy", "ALL_PROXY", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HTTPS_PROXY", f"http://me:secret@127.0.0.1:{port}")
    with virtual_time():
        done = invoke("cp", "--retry", "attempts=2", "--endpoint", "https://gcs.invalid", "photos/1.jpg", "gs://bkt/")
    assert done.exit_code == 1
    assert f"photos/1.jpg: cannot connect to the proxy 127.0.0.1:{port}: " in done.stderr
    assert (
        "hint: check the proxy; the variables HTTPS_PROXY, ALL_PROXY and NO_PROXY of the environment choose it"
        in done.stderr
    )
    assert "secret" not in done.stderr


def test_no_credentials_is_an_error_with_a_cure(invoke: Invoke, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without credentials, the error says how to get some, with options of the command line."""
    for name in ("STORAGE_EMULATOR_HOST", "GOOGLE_APPLICATION_CREDENTIALS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("CLOUDSDK_CONFIG", str(folder))
    done = invoke("cp", "photos/1.jpg", "gs://bkt/")
    assert (done.exit_code, done.stdout) == (1, "")
    assert done.stderr.startswith("error: no credentials were found: ")
    assert "name a key file with --credentials" in done.stderr.splitlines()[-1]


def test_who_pays(invoke: Invoke, cloud: Cloud) -> None:
    """The project that pays is named in the requests."""
    assert invoke("cp", "--user-project", "payer", "photos/1.jpg", "gs://bkt/").exit_code == 0
    assert all("userProject=payer" in request.query for request in cloud.requests)


def test_names_cannot_command_the_terminal(invoke: Invoke, folder: Path) -> None:
    """Control characters in names are spelt out wherever they are shown."""
    (folder / "photos" / EVIL).write_text("data")
    done = invoke("cp", "-r", "photos", "gs://bkt/")
    assert done.exit_code == 1
    assert done.stderr.replace("\n", "").isprintable()
    assert r"\x1b[2J\u202eevil\nname" in done.stderr


def test_a_wait_for_a_listing_is_shown(invoke: Invoke, cloud: Cloud) -> None:
    """While a listing waits for its next attempt, a line shows the error and the wait."""
    cloud.fault(Fault.status(503, operation="storage.objects.list", times=6))
    cloud.store.put("bkt", "a", b"data")
    with virtual_time():
        done = invoke("cp", "gs://bkt/*", "here/")
    assert done.exit_code == 0
    told, summary = done.stderr.splitlines()
    assert re.fullmatch(r"nothing moved for \d+ s: .*503 Service Unavailable.*; again in \d+\.\d s", told)
    assert summary.startswith("1 file, ")


@pytest.mark.parametrize("name", ["a", "it", "a folder"])
def test_every_failure_names_its_file(name: str, invoke: Invoke, folder: Path) -> None:
    """An error names its file even if the name is a word of the error's text."""
    (folder / name).mkdir()
    shown = f"'{name}'" if " " in name else name
    assert invoke("cp", name, "gs://bkt/").stderr.startswith(f"error: {shown}: it is a folder\n")


class TestEmbedded:
    """`--embedded`: without an account."""

    def test_embedded_buckets_are_counted_at_the_end(self, invoke: Invoke) -> None:
        """The buckets named by `--embedded` exist, and the last line says what they hold."""
        done = invoke("cp", "-r", "--embedded", "photos", "gs://demo/")
        assert (done.exit_code, done.stdout) == (0, "")
        _, *rest = done.stderr.splitlines()
        held = [f"  photos/{number}.jpg  7 B" for number in (1, 2, 3)]
        assert rest == ["gs://demo contained 3 objects, 21 B:", *held]

    def test_everything_is_copied_despite_faults(self, invoke: Invoke, folder: Path) -> None:
        """With `--faults` some requests fail and are retried, and everything is copied nevertheless."""
        for number in range(30):
            (folder / "photos" / f"more-{number:02}").write_text("more")
        with virtual_time():
            done = invoke("cp", "-r", "--embedded", "--faults", "7", "photos", "gs://demo/")
        assert done.exit_code == 0
        assert " retries\n" in done.stderr.splitlines(keepends=True)[0]
        assert "  and 23 more\n" in done.stderr
        assert done.stderr.splitlines()[-1].endswith(" requests met a fault")

    def test_it_needs_a_bucket(self, invoke: Invoke) -> None:
        """Without an address in the cloud there is nothing to try."""
        done = invoke("cp", "--embedded", "photos/1.jpg", "-")
        assert done.exit_code == 2

    def test_a_copy_from_the_embedded_cloud_says_that_it_is_empty(self, invoke: Invoke) -> None:
        """A copy from an embedded cloud fails with the reason that it is empty."""
        done = invoke("cp", "--embedded", "gs://demo/x", "x")
        assert done.exit_code == 1
        assert "gs://demo contained nothing: an embedded cloud is empty when it starts\n" in done.stderr
