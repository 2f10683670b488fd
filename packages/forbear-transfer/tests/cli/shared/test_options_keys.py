"""Encryption keys on the command line: they come from files, and no output shows one."""

import base64
import json
import os
import threading
from pathlib import Path

import pytest

from forbear_cloud import Cloud, Fault
from forbear_testkit.cli.running import Finish, Invoke, Start

KEY, OTHER = (base64.b64encode(letter * 32).decode() for letter in (b"k", b"o"))
KMS = "projects/p/locations/us/keyRings/r/cryptoKeys/k"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to work in, with two files with keys and one file to copy."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "key").write_text(f"{KEY}\n")
    (tmp_path / "other").write_text(OTHER)
    (tmp_path / "dir").mkdir()
    (tmp_path / "dir" / "a").write_bytes(b"secret")
    return tmp_path


def test_commands_take_keys_from_files(invoke: Invoke, cloud: Cloud, folder: Path) -> None:
    """Every command that writes or reads objects uses the keys; without them it fails and says what it needs."""
    write = ("--encryption-key-file", "key")
    read = ("--decryption-key-file", "other", "--decryption-key-file", "key")
    steps: list[tuple[tuple[str, ...], int, str]] = [
        (("cp", "-q", *write, "dir/a", "gs://bkt/x/a"), 0, ""),
        (("rsync", "-c", *write, "dir", "gs://bkt/x"), 0, "nothing to do"),
        (("rsync", "-c", "--dry-run", "dir", "gs://bkt/x"), 0, "copy dir/a -> gs://bkt/x/a"),
        (("cat", *read, "gs://bkt/x/a"), 0, "secret"),
        (("cat", "gs://bkt/x/a"), 1, "hint: name the key that the object was written with: `--decryption-key-file`"),
        (
            ("cp", "gs://bkt/x/*", "down/"),
            1,
            "no key was named\nhint: name the key that the object was written",
        ),
        (("cp", "-q", *read, "gs://bkt/x/*", "down/"), 0, ""),
        (("hash", *read, "gs://bkt/x/a"), 0, "gs://bkt/x/a"),
        (("hash", "gs://bkt/x/a"), 0, "no crc32c  no md5"),
        (("check", *read, "dir", "gs://bkt/x"), 0, "1 same"),
        (("check", "dir", "gs://bkt/x"), 1, "not compared: a: the service states no CRC32C without the object's key"),
        (("stat", *read, "gs://bkt/x/a"), 0, "key sha256"),
        (("mv", "-q", *write, "gs://bkt/x/a", "gs://bkt/x/b"), 0, ""),
        (("cp", "-q", *read, "--kms-key", KMS, "gs://bkt/x/b", "gs://bkt/x/c"), 0, ""),
        (("stat", "--json", "gs://bkt/x/c"), 0, f'"kms_key": "{KMS}/cryptoKeyVersions/1"'),
    ]
    for arguments, code, text in steps:
        done = invoke(*arguments, "--endpoint", cloud.url)
        assert (arguments, done.exit_code) == (arguments, code), done.output
        assert text in done.output
        assert KEY not in done.output
    assert (folder / "down" / "a").read_bytes() == b"secret"
    record = json.loads(invoke("stat", "--json", *read, "gs://bkt/x/b", "--endpoint", cloud.url).stdout)
    assert (record["key_sha256"], record["crc32c"] is None) == (cloud.store.object("bkt", "x/b").keys.sha256, False)


def test_wrong_keys(invoke: Invoke, folder: Path) -> None:
    """Files without a key, and keys that do not fit, are refused before anything is connected to."""
    (folder / "short").write_text(KEY[:20])
    up, down = ("dir/a", "gs://bkt/a"), ("gs://bkt/a", "a")
    cases: list[tuple[tuple[str, ...], str]] = [
        (("cp", "--encryption-key-file", "short", *up), "`--encryption-key-file`: short must be base64 of 32 bytes"),
        (("cat", "--decryption-key-file", "short", down[0]), "`--decryption-key-file`: short must be base64"),
        (("cp", "--encryption-key-file", "none", *up), "`--encryption-key-file` cannot read 'none': No such file"),
        (
            ("cp", "--encryption-key-file", KEY, *up),
            "the file: its name looks like a key itself\nhint: write the key to",
        ),
        (("cp", "--encryption-key-file", "key", *down), "is for targets in the cloud, got a\nhint: use `--decryption"),
        (("cp", "--kms-key", "k", *up), "`--kms-key` must be projects/PROJECT/locations/LOCATION/keyRings"),
        (("cp", "--kms-key", KMS, "--encryption-key-file", "key", *up), "does not go with `--kms-key`"),
        (("rsync", "--kms-key", KMS, "gs://bkt/a", "dir"), "`--kms-key` is for targets in the cloud, got dir"),
    ]
    for arguments, text in cases:
        done = invoke(*arguments, "--endpoint", "http://localhost:1")
        assert (arguments, done.exit_code) == (arguments, 2)
        assert text in done.stderr
        assert KEY[:20] not in done.output


@pytest.mark.soak
def test_a_killed_upload_continues_with_its_key(cloud: Cloud, folder: Path, start: Start, finish: Finish) -> None:
    """After `kill -9`, the same command continues the session; with another key it fails, and names the state."""
    (folder / "big").write_bytes(os.urandom(12 * 1024 * 1024))
    cloud.fault(Fault.delay(20, operation="storage.objects.insert.send", nth=2))
    command = ("cp", "--endpoint", cloud.url, "big", "gs://bkt/", "--encryption-key-file")
    process, pause = start(*command, "key"), threading.Event()
    for _ in range(2_000):
        if not cloud.pending_faults:
            break
        pause.wait(0.01)
    process.kill()
    process.communicate(timeout=20)
    (state,) = (path for path in Path(os.environ["FORBEAR_STATE_DIR"]).iterdir() if path.suffix == ".json")
    assert KEY not in state.read_text()
    refused = finish(*command, "other")
    assert (refused.returncode, refused.stderr.count("with another encryption key")) == (1, 1)
    assert f"hint: use that key again; or delete {state} to start over" in refused.stderr
    assert finish(*command, "key").returncode == 0
    assert cloud.requests.count("storage.objects.insert.start") == 1
    assert cloud.store.object("bkt", "big").data == (folder / "big").read_bytes()
    assert finish(*command[:3], "gs://bkt/big", "back", "--decryption-key-file", "key").returncode == 0
    assert (folder / "back").read_bytes() == (folder / "big").read_bytes()
