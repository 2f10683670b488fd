"""Times of files and objects that rsync compares and sets."""

from pathlib import Path

import pytest

from forbear_cloud import Cloud, Fault
from forbear_testkit.transfer.files import contents, make, moved, synced
from forbear_transfer.objects import MTIME

PATCH = "storage.objects.patch"
NOTHING = (0, 0, 0, 0)


def test_a_time_that_the_disk_cannot_keep_is_set_once(here: Path, cloud: Cloud) -> None:
    """The file has the nearest time that the disk keeps, and that is enough."""
    cloud.store.put("bkt", "s/a", b"1", {"metadata": {MTIME: "32503680000000"}})
    assert synced(cloud, "gs://bkt/s", "t").done == 1
    assert moved(synced(cloud, "gs://bkt/s", "t")) == NOTHING


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_lost_response_to_a_time_is_looked_up(here: Path, cloud: Cloud, when: str) -> None:
    """The time is set, and what comes after it is done."""
    make(here, "s/a")
    cloud.store.put("bkt", "t/a", b"s/a", {"metadata": {MTIME: "1600000000"}})
    cloud.store.put("bkt", "t/x", b"")
    cloud.fault(Fault.reset(when="before" if when == "before" else "after", operation=PATCH, times=1))
    assert moved(synced(cloud, "s", "gs://bkt/t", delete=True))[1:] == (1, 0, 0)
    assert contents(cloud).keys() == {"t/a"}
    assert moved(synced(cloud, "s", "gs://bkt/t", delete=True)) == NOTHING
