"""rsync: what it deletes, and what it never does."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from forbear_cloud import Cloud, Fault
from forbear_testkit.transfer.files import DELETE, INSERT, contents, files, make, moved, synced
from forbear_testkit.transfer.recorder import Recorder
from forbear_transfer import Status


def test_extras_are_deleted_after_all_copies(here: Path, cloud: Cloud) -> None:
    """At the target, with the version as a condition; empty folders go as well."""
    make(here, "dir/a", "dir/z", "down/extra", "down/deep/er/extra", "down/kept/x", "down/kept/extra")
    for name in ("x/extra", "x/z.extra"):
        cloud.store.put("bkt", name, b"")
    assert moved(synced(cloud, "dir", "gs://bkt/x", delete=True)) == (4, 2, 0, 0)
    assert [effect.operation for effect in cloud.effects] == [INSERT, INSERT, DELETE, DELETE]
    assert all("ifGenerationMatch=" in one.query for one in cloud.requests if one.operation == DELETE)
    assert contents(cloud).keys() == {"x/a", "x/z"}
    cloud.store.put("bkt", "x/kept/x", b"down/kept/x")
    assert moved(synced(cloud, "gs://bkt/x", "down", delete=True)) == (5, 3, 0, 0)
    assert sorted(str(path.relative_to(here / "down")) for path in (here / "down").rglob("*")) == [
        "a", "kept", "kept/x", "z",
    ]  # fmt: skip


def test_nothing_is_deleted_if_a_copy_fails(here: Path, cloud: Cloud) -> None:
    """A rerun does the rest, and then deletes."""
    make(here, "dir/a", "dir/b")
    cloud.store.put("bkt", "x/extra", b"")
    cloud.fault(Fault.status(403, operation=INSERT, path="upload"))
    recorder = Recorder()
    summary = synced(cloud, "dir", "gs://bkt/x", delete=True, on_event=recorder)
    assert moved(summary) == (1, 0, 1, 1)
    assert recorder.said(Status.SKIPPED) == {
        "gs://bkt/x": "nothing is deleted before all else has gone well; there are 1 to delete"
    }
    assert "x/extra" in contents(cloud)
    assert moved(synced(cloud, "dir", "gs://bkt/x", delete=True)) == (2, 1, 0, 0)


@pytest.mark.parametrize("delete", [False, True])
@pytest.mark.parametrize(
    ("source", "target"),
    [
        ("nothing", "gs://bkt/x"),
        ("gs://bkt/nothing", "down"),
        ("gs://nowhere", "down"),
        ("gs://bkt/nothing", "gs://bkt/x"),
    ],
)
def test_a_source_that_is_not_there_wipes_nothing(
    source: str, target: str, delete: bool, here: Path, cloud: Cloud
) -> None:
    """A typing error must not cost the target."""
    make(here, "down/precious")
    cloud.store.put("bkt", "x/precious", b"")
    summary = synced(cloud, source, target, delete=delete)
    assert (summary.done, summary.failed) == (0, 1)
    assert contents(cloud).keys() == {"x/precious"}
    assert files(here) == {"down/precious": b"down/precious"}


def test_an_empty_source_does_not_wipe_the_target_either(here: Path, cloud: Cloud) -> None:
    """The folder of a disk that is not mounted is empty; and there may be nothing at both ends."""
    (here / "dir").mkdir()
    assert synced(cloud, "dir", "gs://bkt/x", delete=True).ok
    cloud.store.put("bkt", "x/precious", b"")
    summary = synced(cloud, "dir", "gs://bkt/x", delete=True)
    assert summary.failures[0].error == "there is nothing to copy in dir, so everything in gs://bkt/x would be deleted"
    assert contents(cloud).keys() == {"x/precious"}


@pytest.mark.parametrize("links", [None, "skip"])
@pytest.mark.parametrize("source", ["link", "pipe", "away", "part", "all"])
def test_a_source_with_nothing_to_copy_does_not_wipe_the_target(
    here: Path, cloud: Cloud, source: str, links: str | None
) -> None:
    """A folder of links that are left out, pipes and parts of downloads copies nothing, as an empty one does."""
    make(here, "dir/.big.0123456789ab.forbear") if source in {"part", "all"} else (here / "dir").mkdir()
    if source in {"link", "all"}:
        (here / "dir" / "link").symlink_to(here / "file" if links else "nothing")
        make(here, "file")
    if source in {"away", "all"}:
        (here / "dir" / "away").symlink_to(here if links else here / "file" / "no")
    if source in {"pipe", "all"}:
        os.mkfifo(here / "dir" / "pipe")
    cloud.store.put("bkt", "x/precious", b"")
    for asked in ({"dry_run": True}, {}):
        [failure] = synced(cloud, "dir", "gs://bkt/x", delete=True, links=links, **asked).failures
        assert failure.error == "there is nothing to copy in dir, so everything in gs://bkt/x would be deleted"
    assert contents(cloud).keys() == {"x/precious"}


def test_a_target_that_changes_meanwhile_is_left_alone(here: Path, cloud: Cloud) -> None:
    """Each object is copied or deleted only in the version that was compared."""
    make(here, "dir/a")
    cloud.store.put("bkt", "x/a", b"old")
    cloud.store.put("bkt", "x/extra", b"old")
    cloud.fault(Fault.replace_object(b"theirs", operation=DELETE))
    summary = synced(cloud, "dir", "gs://bkt/x", delete=True)
    assert moved(summary) == (1, 0, 0, 1)
    assert "was written meanwhile" in (summary.failures[0].error or "")
    assert contents(cloud) == {"x/a": b"dir/a", "x/extra": b"theirs"}
    assert moved(synced(cloud, "dir", "gs://bkt/x", delete=True)) == (1, 1, 0, 0)


def test_a_lost_response_to_a_deletion_is_no_failure(here: Path, cloud: Cloud) -> None:
    """It is gone, and that is what was wanted."""
    make(here, "dir/a")
    cloud.store.put("bkt", "x/extra", b"old")
    cloud.fault(Fault.reset(when="after", operation=DELETE))
    assert moved(synced(cloud, "dir", "gs://bkt/x", delete=True)) == (2, 1, 0, 0)


def test_links_in_the_target_are_not_followed_to_delete(here: Path, cloud: Cloud) -> None:
    """Files behind a link do not belong to the target, and parts of running downloads are no extras."""
    make(here, "outside/precious", "down/x", "down/.big.0123456789ab.forbear")
    (here / "down" / "link").symlink_to("../outside")
    (here / "down" / "file").symlink_to("../outside/precious")
    cloud.store.put("bkt", "x/x", b"down/x")
    assert moved(synced(cloud, "gs://bkt/x", "down", delete=True)) == (1, 1, 0, 0)
    assert files(here / "outside") == {"precious": b"outside/precious"}
    assert not (here / "down" / "file").is_symlink()
    assert (here / "down" / "link").is_symlink()
    assert (here / "down" / ".big.0123456789ab.forbear").exists()


def test_what_cannot_be_copied_from_the_source_is_not_deleted_at_the_target(here: Path, cloud: Cloud) -> None:
    """A pipe of that name is there after all."""
    make(here, "dir/a")
    os.mkfifo(here / "dir" / "pipe")
    cloud.store.put("bkt", "x/pipe", b"")
    assert moved(synced(cloud, "dir", "gs://bkt/x", delete=True)) == (1, 0, 1, 0)
    assert contents(cloud).keys() == {"x/a", "x/pipe"}


def unmounted(folder: Path) -> None:
    """Make the folder a link that leads nowhere, as one to a disk that is not mounted."""
    folder.symlink_to("/nowhere/at/all")


def piped(folder: Path) -> None:
    """Make the folder a named pipe."""
    os.mkfifo(folder)


def circular(folder: Path) -> None:
    """Make the folder a link to the folder that it lies in."""
    folder.symlink_to(folder.parent)


@pytest.mark.parametrize("exclude", [None, "sub$"])
@pytest.mark.parametrize("replace", [unmounted, piped, circular])
def test_nothing_is_deleted_below_a_place_that_cannot_be_looked_into(
    here: Path, cloud: Cloud, replace: Callable[[Path], None], exclude: str | None
) -> None:
    """The run fails and names the place; once it is a folder again, the same run succeeds."""
    make(here, "dir/a", "dir/sub/b", "dir/sub/deep/c", "dir/subway", "gone")
    cloud.store.put("bkt", "x/gone", b"")
    (here / "dir" / "sub").rename(here / "elsewhere")
    (here / "dir" / "sub").symlink_to(here / "elsewhere")
    assert synced(cloud, "dir", "gs://bkt/x").ok
    (here / "dir" / "sub").unlink()
    replace(here / "dir" / "sub")
    for asked in ({}, {"dry_run": True}):
        [failure] = synced(cloud, "dir", "gs://bkt/x", delete=True, exclude=exclude, **asked).failures
        assert failure.item.source == "dir/sub"
        assert failure.error is not None
        assert "2 at the target, below gs://bkt/x/sub, would be deleted" in failure.error
    assert contents(cloud).keys() == {"x/a", "x/gone", "x/sub/b", "x/sub/deep/c", "x/subway"}
    assert synced(cloud, "dir", "gs://bkt/x", exclude=exclude).ok
    (here / "dir" / "sub").unlink()
    (here / "dir" / "sub").symlink_to(here / "elsewhere")
    assert synced(cloud, "dir", "gs://bkt/x", delete=True).deleted == 1
    assert contents(cloud).keys() == {"x/a", "x/sub/b", "x/sub/deep/c", "x/subway"}
