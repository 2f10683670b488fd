"""`forbear cat` and `forbear stat`: bytes and metadata on stdout, errors on stderr, and the exit codes of `cp`."""

import json

import pytest

from forbear_cloud import Cloud
from forbear_testkit.cli.running import Invoke, Start


@pytest.fixture(autouse=True)
def filled(cloud: Cloud, monkeypatch: pytest.MonkeyPatch) -> Cloud:
    """A cloud that the environment names, with some objects."""
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", cloud.url)
    cloud.store.put("bkt", "a", b"0123456789", {"contentType": "text/plain", "metadata": {"k\x1b": "v"}})
    cloud.store.put("bkt", "x/b", b"bytes \xff")
    return cloud


def test_cat_writes_objects_patterns_and_ranges(invoke: Invoke) -> None:
    """Whole objects, patterns and ranges."""
    assert invoke("cat", "gs://bkt/x/*", "gs://bkt/a").stdout_bytes == b"bytes \xff0123456789"
    assert invoke("cat", "--range", "2-4", "gs://bkt/a").stdout == "234"
    assert invoke("cat", "--range", "-2", "gs://bkt/a").stdout == "89"


@pytest.mark.parametrize(
    ("arguments", "code", "error"),
    [
        (["cat", "gs://bkt/none"], 1, "error: gs://bkt/none does not exist\nhint: check the name\n"),
        (["cat", "a"], 2, "error: `ADDRESS` must begin with gs://, got 'a'\n"),
        (["cat", "--range", "5", "gs://bkt/a"], 2, "error: `--range` must be FIRST-LAST"),
        (["stat", "gs://bkt/x"], 1, "error: gs://bkt/x does not exist\nhint: there are objects below it: list it"),
        (["stat", "gs://B"], 2, "error: "),
    ],
)
def test_errors_of_cat_go_to_stderr(arguments: list[str], code: int, error: str, invoke: Invoke) -> None:
    """With the reason and the cure, and nothing on stdout."""
    done = invoke(*arguments)
    assert (done.exit_code, done.stdout) == (code, "")
    assert done.stderr.startswith(error)


def test_the_first_failure_ends_it(invoke: Invoke) -> None:
    """Nothing follows a gap."""
    done = invoke("cat", "gs://bkt/none", "gs://bkt/a")
    assert (done.exit_code, done.stdout) == (1, "")


@pytest.fixture
def large(filled: Cloud) -> str:
    """An object that does not fit into a pipe."""
    filled.store.put("bkt", "large", b"x" * 2_000_000)
    return "gs://bkt/large"


def test_a_reader_that_leaves(large: str, start: Start) -> None:
    """A closed pipe ends the command with 1, without a message."""
    process = start("cat", large)
    assert process.stdout is not None
    assert process.stdout.read(10) == "x" * 10
    process.stdout.close()
    assert process.stderr is not None
    assert (process.stderr.read(), process.wait(30)) == ("", 1)


def test_stat_prints_metadata_as_text_and_json(invoke: Invoke, filled: Cloud) -> None:
    """As text without control characters, and as JSON with all keys."""
    there = filled.store.object("bkt", "a")
    lines = invoke("stat", "gs://bkt/a").stdout.splitlines()
    assert lines[0] == "gs://bkt/a"
    assert [line.split(None, 1)[0] for line in lines[1:]] == [
        "size", "updated", "generation", "metageneration", "crc32c", "md5", "content", "storage", "created", "metadata",
    ]  # fmt: skip
    assert lines[-1] == "  metadata          k\\x1b: v"
    record = json.loads(invoke("stat", "--json", "gs://bkt/a").stdout)
    assert (record["generation"], record["md5"], record["metadata"]) == (there.generation, there.md5, {"k\x1b": "v"})
    assert list(record) == [
        "url", "type", "size", "updated", "generation", "metageneration", "crc32c", "md5", "content_type",
        "content_encoding", "cache_control", "content_disposition", "content_language", "storage_class", "custom_time",
        "key_sha256", "kms_key", "metadata", "created", "noncurrent_since", "components", "temporary_hold",
        "event_based_hold", "retention_expires",
    ]  # fmt: skip
