"""rsync settles: a second run after success does nothing, and what was written meanwhile stays."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from forbear_cloud import Cloud
from forbear_testkit.transfer.files import contents, make, moved, synced
from forbear_transfer import Finished, Started, TransferEvent
from forbear_transfer.objects import MTIME

NOTHING = (0, 0, 0, 0)


def test_a_folder_takes_the_place_of_a_file_and_the_other_way_round(here: Path, cloud: Cloud) -> None:
    """With `delete`, the copies that wait for a deletion come last; without it, they fail and nothing is lost."""
    for name in ("s/x/1", "s/y"):
        cloud.store.put("bkt", name, name.encode())
    make(here, "t/x", "t/y/1", "t/y/2/3")
    assert synced(cloud, "gs://bkt/s", "t").failed == 2
    assert (here / "t/x").read_bytes() == b"t/x"
    assert moved(synced(cloud, "gs://bkt/s", "t", delete=True, max_delete=2))[2:] == (2, 1)
    assert (here / "t/y/1").exists()
    assert moved(synced(cloud, "gs://bkt/s", "t", delete=True))[1:] == (3, 0, 0)
    assert (here / "t/x/1").read_bytes() == b"s/x/1"
    assert (here / "t/y").read_bytes() == b"s/y"
    assert moved(synced(cloud, "gs://bkt/s", "t", delete=True)) == NOTHING


def test_empty_folders_go_unless_the_source_has_them(here: Path, cloud: Cloud) -> None:
    """Such as one that a killed run has left; one with an object that stands for it, or that is excluded, stays."""
    for name in ("s/a", "s/kept/"):
        cloud.store.put("bkt", name, b"1")
    for name in ("t/sub", "t/deep/er", "t/kept", "t/excluded"):
        (here / name).mkdir(parents=True)
    assert synced(cloud, "gs://bkt/s", "t", delete=True, exclude="excluded").deleted == 2
    assert sorted(path.name for path in (here / "t").iterdir()) == ["a", "excluded", "kept"]
    assert moved(synced(cloud, "gs://bkt/s", "t", delete=True, exclude="excluded")) == NOTHING


@pytest.mark.parametrize("downloads", [True, False], ids=["down", "up"])
def test_a_source_of_excluded_files_alone_deletes_nothing(here: Path, cloud: Cloud, downloads: bool) -> None:
    """It counts as empty: what is on a disk that is not mounted."""
    make(here, "s/.DS_Store", "t/1")
    for name in ("s/.DS_Store", "t/1"):
        cloud.store.put("bkt", name, b"1")
    source, target = ("gs://bkt/s", "t") if downloads else ("s", "gs://bkt/t")
    assert synced(cloud, source, target, delete=True, exclude=r".*\.DS_Store").failed == 1
    assert (here / "t/1").exists()
    assert "t/1" in contents(cloud)


def write(path: Path) -> None:
    """Write to a file as another program does."""
    path.write_bytes(b"written meanwhile")


def write_with_its_time_kept(path: Path) -> None:
    """Write as many bytes, and set the time back."""
    status = path.stat()
    path.write_bytes(b"!" * status.st_size)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


@pytest.mark.parametrize("change", [write, write_with_its_time_kept])
@pytest.mark.parametrize("name", ["replaced", "extra", "touched"])
def test_a_file_that_was_written_after_the_listing_stays(
    here: Path, cloud: Cloud, name: str, change: Callable[[Path], None]
) -> None:
    """It is neither replaced nor deleted nor given another time; that is a failure, and the next run decides anew."""
    make(here, "t/replaced", "t/extra", "t/touched")
    for each, data in (("first", b"1"), ("replaced", b"new"), ("touched", b"t/touched")):
        cloud.store.put("bkt", f"s/{each}", data, {"metadata": {MTIME: "1600000000"}})
    path, done = here / "t" / name, list[bytes]()

    def listen(event: TransferEvent) -> None:
        if isinstance(event, Started) and str(event.item.target).endswith(name) and not done:
            change(path)
            done.append(path.read_bytes())

    summary = synced(cloud, "gs://bkt/s", "t", delete=True, parallel=1, on_event=listen)
    assert summary.failed == 1
    assert "was written after it was listed" in (summary.failures[0].error or "")
    assert path.read_bytes() == done[0]
    assert synced(cloud, "gs://bkt/s", "t", delete=True).ok


def test_a_file_that_appears_after_the_listing_stays(here: Path, cloud: Cloud) -> None:
    """A target that did not exist is not replaced by a name either."""
    cloud.store.put("bkt", "s/a", b"cloud")

    def listen(event: TransferEvent) -> None:
        if isinstance(event, Started):
            write(here / "t/a")

    (here / "t").mkdir()
    assert synced(cloud, "gs://bkt/s", "t", on_event=listen).failed == 1
    assert (here / "t/a").read_bytes() == b"written meanwhile"


def test_a_folder_that_is_filled_after_the_listing_stays(here: Path, cloud: Cloud) -> None:
    """An empty folder is deleted only while it is empty."""
    cloud.store.put("bkt", "s/a", b"cloud")
    (here / "t/sub").mkdir(parents=True)

    def listen(event: TransferEvent) -> None:
        if isinstance(event, Finished):
            write(here / "t/sub/new")

    summary = synced(cloud, "gs://bkt/s", "t", delete=True, parallel=1, on_event=listen)
    assert [one.error for one in summary.failures] == ["t/sub/ is not empty any more, and is not deleted"]
    assert (here / "t/sub/new").exists()
