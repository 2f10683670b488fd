"""`forbear rsync`: it copies what differs and deletes what is asked for, and a dry run says what it would do."""

import json
import os
from pathlib import Path

import pytest

from forbear_cloud import Cloud, Fault
from forbear_testkit.cli.running import Invoke

OLD = 1_600_000_000


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, cloud: Cloud, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with a few files, and a cloud that the environment names."""
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", cloud.url)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "here" / "deep").mkdir(parents=True)
    for name in ("a", "b", "deep/c"):
        (tmp_path / "here" / name).write_text(f"text {name}")
    return tmp_path


def stored(cloud: Cloud) -> dict[str, bytes]:
    """Return the objects in the cloud."""
    return {item.name: item.data for item in cloud.store.bucket("bkt").versions()}


def test_only_differences_are_copied_either_way(invoke: Invoke, cloud: Cloud, folder: Path) -> None:
    """Differing files are copied and equal ones left alone, to the cloud and back."""
    first = invoke("rsync", "-r", "here", "gs://bkt/there")
    assert (first.exit_code, first.stdout) == (0, "")
    assert first.stderr.startswith("3 files, 23 B in ")
    assert invoke("rsync", "-r", "here", "gs://bkt/there").stderr == "nothing to do\n"
    (folder / "here" / "a").write_text("something else")
    assert invoke("rsync", "-r", "here", "gs://bkt/there").stderr.startswith("1 file, 14 B in ")
    back = invoke("rsync", "-r", "gs://bkt/there", "back")
    assert back.exit_code == 0
    assert (folder / "back" / "deep" / "c").read_text() == "text deep/c"
    assert stored(cloud).keys() == {"there/a", "there/b", "there/deep/c"}


def test_a_dry_run(invoke: Invoke, cloud: Cloud, folder: Path) -> None:
    """A dry run prints on stdout what would be done, also as JSON, and writes nothing."""
    cloud.store.put("bkt", "there/extra", b"")
    before = cloud.effects.total
    done = invoke("rsync", "-r", "-d", "-n", "here", "gs://bkt/there")
    assert done.exit_code == 0
    assert done.stdout.splitlines() == [
        f"copy {Path('here', 'a')} -> gs://bkt/there/a",
        f"copy {Path('here', 'b')} -> gs://bkt/there/b",
        f"copy {Path('here', 'deep', 'c')} -> gs://bkt/there/deep/c",
        "delete gs://bkt/there/extra",
    ]
    assert done.stderr == "dry run: nothing was changed\n"
    as_json = invoke("rsync", "-r", "-d", "-n", "--json", "here", "gs://bkt/there")
    *items, summary = map(json.loads, as_json.stdout.splitlines())
    assert [(item["action"], item["status"]) for item in items] == [("copy", "skipped")] * 3 + [("delete", "skipped")]
    assert summary["summary"]["done"] == 0
    assert cloud.effects.total == before


def test_d_deletes_extras_but_not_excluded_ones(invoke: Invoke, cloud: Cloud) -> None:
    """With `-d` what only the target has is deleted, but not what is excluded."""
    for name in ("there/extra", "there/kept.tmp"):
        cloud.store.put("bkt", name, b"")
    done = invoke("rsync", "-r", "-d", "-x", r".*\.tmp$", "here", "gs://bkt/there")
    assert done.exit_code == 0
    assert done.stderr.startswith("3 files, 23 B in ")
    assert done.stderr.endswith("; 1 deleted\n")
    assert stored(cloud).keys() == {"there/a", "there/b", "there/deep/c", "there/kept.tmp"}


def test_nothing_is_deleted_after_a_failure(invoke: Invoke, cloud: Cloud) -> None:
    """If a copy failed, nothing is deleted, and a line gives the reason; the next run does both."""
    cloud.store.put("bkt", "there/extra", b"")
    cloud.fault(Fault.status(403, operation="storage.objects.insert", times=1))
    first = invoke("rsync", "-r", "-d", "here", "gs://bkt/there")
    assert first.exit_code == 1
    assert "nothing is deleted before all else has gone well; there are 1 to delete\n" in first.stderr
    assert "there/extra" in stored(cloud)
    second = invoke("rsync", "-r", "-d", "here", "gs://bkt/there")
    assert second.exit_code == 0
    assert second.stderr.startswith("1 file, ")
    assert "there/extra" not in stored(cloud)


def test_c_compares_checksums(invoke: Invoke, cloud: Cloud, folder: Path) -> None:
    """With `-c` a file of the same size and time is found to differ."""
    path = folder / "here" / "a"
    os.utime(path, (OLD, OLD))
    invoke("rsync", "-r", "here", "gs://bkt/there")
    path.write_text("TEXT a")
    os.utime(path, (OLD, OLD))
    assert invoke("rsync", "-r", "here", "gs://bkt/there").stderr == "nothing to do\n"
    assert invoke("rsync", "-r", "-c", "here", "gs://bkt/there").stderr.startswith("1 file, 6 B in ")
    assert stored(cloud)["there/a"] == b"TEXT a"


def test_a_source_that_is_not_there(invoke: Invoke, cloud: Cloud) -> None:
    """A folder that does not exist empties no target."""
    cloud.store.put("bkt", "there/extra", b"")
    done = invoke("rsync", "-r", "-d", "nowhere", "gs://bkt/there")
    assert done.exit_code == 2
    assert done.stderr == "error: the folder nowhere does not exist\nhint: check the name\n"
    assert stored(cloud).keys() == {"there/extra"}


def test_rsync_runs_on_an_embedded_cloud(invoke: Invoke) -> None:
    """It can be tried without an account, too."""
    done = invoke("rsync", "-r", "--embedded", "here", "gs://demo/there")
    assert done.exit_code == 0
    assert "gs://demo contained 3 objects, 23 B:\n" in done.stderr
