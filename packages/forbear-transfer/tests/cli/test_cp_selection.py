"""`forbear cp` and `rsync`: which files they take, what a dry run prints, and a line for each file with `-v`."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from forbear.cli.app import app
from forbear.testing import virtual_time
from forbear_cloud import Cloud, Fault
from forbear_testkit.cli.running import Invoke
from forbear_transfer.cli import cp


@pytest.fixture(autouse=True)
def _files(tmp_path: Path, cloud: Cloud, monkeypatch: pytest.MonkeyPatch) -> None:
    """The current folder has three files, and the emulator is the cloud of this test."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", cloud.url)
    for name in ("d/a.txt", "d/b.log", "d/e/c.txt"):
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_text(name)


def stored(cloud: Cloud) -> set[str]:
    """Return the names of all objects."""
    return {item.name for item in cloud.store.bucket("bkt").versions()}


def test_several_patterns(invoke: Invoke, cloud: Cloud) -> None:
    """`-x` and `--include` can be used several times."""
    done = invoke("cp", "-r", "d/", "gs://bkt/x/", "-x", ".*b", "-x", "e/", "--include", ".*txt", "--include", ".*log")
    assert (done.exit_code, stored(cloud)) == (0, {"x/d/a.txt"})


@pytest.mark.parametrize("command", [("cp", "-r", "--dry-run"), ("rsync", "-r", "-n")], ids=" ".join)
def test_exit_codes_of_a_dry_run(command: tuple[str, ...], invoke: Invoke, cloud: Cloud) -> None:
    """With `--exit-code` it is 3 if there is something to do; without it 0; 1 if the plan fails."""
    target = "gs://bkt/x" if command[0] == "rsync" else "gs://bkt/"
    for options, code in (((), 0), (("--exit-code",), 3), (("--exit-code", "--json"), 3), (("--exit-code", "-q"), 3)):
        done = invoke(*command, *options, "d", target)
        assert done.exit_code == code
        assert "d/a.txt" in done.stdout
    assert stored(cloud) == set()
    assert invoke(*command, "--exit-code", "--include", "none", "d", target).exit_code == 0
    (Path("d") / "line\nend").write_text("no object can have this name")
    assert invoke(*command, "--exit-code", "d", target).exit_code == 1


def test_rsync_has_nothing_to_do(invoke: Invoke) -> None:
    """After the copies, a dry run with `--exit-code` has exit code 0."""
    assert invoke("rsync", "-r", "d", "gs://bkt/x").exit_code == 0
    done = invoke("rsync", "-r", "-n", "--exit-code", "d", "gs://bkt/x")
    assert (done.exit_code, done.stdout, done.stderr) == (0, "", "dry run: nothing was changed\n")


def test_a_line_for_each_file(invoke: Invoke, cloud: Cloud) -> None:
    """`-v` says on stderr what was copied, skipped and deleted; stdout stays for data, and failures are as ever."""
    cloud.store.put("bkt", "x/d/a.txt", b"old")
    done = invoke("cp", "-r", "-n", "-v", "d", "gs://bkt/x/")
    assert done.stdout == ""
    assert sorted(done.stderr.splitlines()[:3]) == [
        "copied d/b.log -> gs://bkt/x/d/b.log",
        "copied d/e/c.txt -> gs://bkt/x/d/e/c.txt",
        "skipped d/a.txt -> gs://bkt/x/d/a.txt: gs://bkt/x/d/a.txt exists already",
    ]
    Path("d/b.log").unlink()
    cloud.fault(Fault.status(403, operation="storage.objects.insert", nth=1))
    failed = invoke("rsync", "-r", "-d", "--verbose", "d", "gs://bkt/x/d")
    assert failed.exit_code == 1
    assert "error: upload d/a.txt: 403 Forbidden" in failed.stderr
    done = invoke("rsync", "-r", "-d", "--verbose", "d", "gs://bkt/x/d")
    assert done.exit_code == 0
    assert done.stderr.splitlines()[:2] == [
        "copied d/a.txt -> gs://bkt/x/d/a.txt",
        "deleted gs://bkt/x/d/b.log",
    ]


@pytest.mark.parametrize("from_stdin", [False, True], ids=["file", "stdin"])
def test_files_from(from_stdin: bool, cloud: Cloud) -> None:
    """The sources are the lines of a file or of stdin, beside those of the command line; empty lines do not count."""
    text = "d/a.txt\r\n\nd/e/c.txt\n"
    Path("list").write_text(text)
    args = ["cp", "--files-from", "-" if from_stdin else "list", "d/b.log", "gs://bkt/x/"]
    done = CliRunner().invoke(app, args, input=text if from_stdin else None, catch_exceptions=False)
    assert (done.exit_code, stored(cloud)) == (0, {"x/a.txt", "x/b.log", "x/c.txt"})


def test_a_missing_line_stops_everything(invoke: Invoke, cloud: Cloud) -> None:
    """A source in the list that does not exist is a mistake in the input, found before anything is copied."""
    Path("list").write_text("d/a.txt\nd/none.txt\n")
    done = invoke("cp", "--files-from", "list", "gs://bkt/x/")
    assert (done.exit_code, stored(cloud)) == (2, set())
    assert done.stderr == "error: d/none.txt does not exist\nhint: check the name\n"


def test_several_lists(invoke: Invoke, cloud: Cloud) -> None:
    """The sources of all of them are copied."""
    Path("one").write_text("d/a.txt")
    Path("other").write_text("d/b.log")
    done = invoke("cp", "--files-from", "one", "--files-from", "other", "gs://bkt/x/")
    assert (done.exit_code, stored(cloud)) == (0, {"x/a.txt", "x/b.log"})


def test_a_dry_run_fails_where_the_copy_would(invoke: Invoke, cloud: Cloud) -> None:
    """For an object that does not exist, and for a version that is not at the target; with 1, also if work is left."""
    generation = cloud.store.put("bkt", "x/a", b"").generation
    rows: tuple[tuple[tuple[str, ...], int, str], ...] = (
        (("gs://bkt/none", "."), 1, "error: gs://bkt/none does not exist\nhint: check the name\n"),
        (
            ("gs://bkt/x", "."),
            1,
            "error: gs://bkt/x does not exist\nhint: there are objects below it: use `--recursive`",
        ),
        (("gs://bkt/x/a", "."), 3, "dry run"),
        (
            ("d/a.txt", "gs://bkt/x/a", "--if-generation-match", "5"),
            1,
            "error: d/a.txt: gs://bkt/x/a is not generation 5",
        ),
        (
            ("d/a.txt", "gs://bkt/x/a", "--if-generation-match", "0"),
            1,
            "error: d/a.txt: gs://bkt/x/a is not generation 0",
        ),
        (("d/a.txt", "gs://bkt/x/a", "--if-generation-match", str(generation)), 3, "dry run"),
        (("d/a.txt", "gs://bkt/x/b", "--if-generation-match", "0"), 3, "dry run"),
    )
    for arguments, code, text in rows:
        done = invoke("cp", "--dry-run", "--exit-code", *arguments)
        assert (done.exit_code, done.stderr[: len(text)]) == (code, text)
    assert stored(cloud) == {"x/a"}


def test_rsync_options(invoke: Invoke, cloud: Cloud) -> None:
    """`--size-only`, `--update` and `--max-delete` reach the plan, and a hint names the options."""
    cloud.store.put("bkt", "x/a.txt", b"D/A.TXT")
    cloud.store.put("bkt", "x/more", b"")
    done = invoke("rsync", "-n", "--size-only", "d", "gs://bkt/x")
    assert done.stdout == "copy d/b.log -> gs://bkt/x/b.log\n"
    done = invoke("rsync", "-d", "--max-delete", "0", "d", "gs://bkt/x")
    assert done.exit_code == 1
    assert "error: gs://bkt/x: 1 would be deleted, more than 0, so nothing is deleted\n" in done.stderr
    assert "hint: look at what would be deleted (`--dry-run`), then raise `--max-delete`\n" in done.stderr
    done = invoke("rsync", "--json", "-n", "-u", "d", "gs://bkt/x")
    assert {json.loads(line).get("source") for line in done.stdout.splitlines()} == {"d", None}  # for its subfolder


def test_options_reach_the_storage(invoke: Invoke, cloud: Cloud) -> None:
    """`--header` is in every request, `--limit-rate` sets the time of the transfer, and a version can be required."""
    Path("big").write_bytes(bytes(600 * 1024))
    with virtual_time() as time:
        done = invoke("cp", "--limit-rate", "100K", "--header", "X-Test: a b", "--gzip", "big", "gs://bkt/x")
    assert (done.exit_code, time.elapsed < 0.1) == (0, True)
    assert {request.headers["x-test"] for request in cloud.requests} == {"a b"}
    with virtual_time() as time:
        done = invoke("cp", "--limit-rate", "100K", "--if-generation-match", "0", "big", "gs://bkt/y")
    assert (done.exit_code, time.elapsed > 5) == (0, True)
    done = invoke("cp", "--if-generation-match", "0", "d/a.txt", "gs://bkt/y")
    assert done.exit_code == 1
    assert done.stderr.startswith("error: d/a.txt: gs://bkt/y exists already\nhint: remove it, or allow it to be ")
    assert invoke("cp", "--packed", "gs://bkt/x", "packed").exit_code == 0
    assert Path("packed").stat().st_size < 1000


def test_a_list_of_sources_has_a_limit(invoke: Invoke, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A device, or a wrong file, is not read into memory."""
    monkeypatch.setattr(cp, "_MOST_LISTED", 1 << 20)
    listed = tmp_path / "list"
    listed.write_bytes(b"a" * (1 << 20) + b"\n")
    done = invoke("cp", "--files-from", str(listed), "gs://bkt/x/")
    assert done.exit_code == 2
    assert done.stderr.startswith(f"error: {listed} is larger than 1 MiB\nhint: copy the files in several runs")
