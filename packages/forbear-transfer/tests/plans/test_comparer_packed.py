"""Files and objects that are stored as gzip: the same if the object unpacks to the file."""

import gzip
import os
from pathlib import Path

import pytest

from forbear_cloud import Cloud
from forbear_testkit.transfer.files import make, moved, synced
from forbear_transfer.objects import MTIME

TEXT = b"hello " * 1000
PACKED = gzip.compress(TEXT)
NOTHING = (0, 0, 0, 0)


def put_packed(cloud: Cloud, data: bytes = PACKED, mtime: int | None = None) -> None:
    """Store an object as gzip, with or without the time of a file."""
    metadata = {} if mtime is None else {MTIME: str(mtime)}
    cloud.store.put("bkt", "s/z", data, {"contentEncoding": "gzip", "metadata": metadata})


@pytest.mark.parametrize("mtime", [None, 1_700_000_000])
@pytest.mark.parametrize("checksum", [False, True])
@pytest.mark.parametrize(
    "data", [PACKED, gzip.compress(TEXT[:3000]) + gzip.compress(TEXT[3000:]), TEXT], ids=["one", "two members", "none"]
)
def test_a_packed_object_is_downloaded_once(
    here: Path, cloud: Cloud, data: bytes, checksum: bool, mtime: int | None
) -> None:
    """It is the same as the file that it unpacks to, by the size and checksum that its last bytes state."""
    put_packed(cloud, data, mtime)
    assert synced(cloud, "gs://bkt/s", "t").done == 1
    assert (here / "t/z").read_bytes() == TEXT
    assert moved(synced(cloud, "gs://bkt/s", "t", checksum=checksum)) == NOTHING


@pytest.mark.parametrize("mtime", [None, 1_700_000_000])
@pytest.mark.parametrize("wrong", [b"hel", TEXT + b"!", TEXT[:-1] + b"?"], ids=["shorter", "longer", "other"])
def test_a_file_that_a_packed_object_does_not_unpack_to_is_replaced(
    here: Path, cloud: Cloud, wrong: bytes, mtime: int | None
) -> None:
    """Another size counts at any time, other contents where the times differ or are not known."""
    put_packed(cloud, PACKED, mtime)
    synced(cloud, "gs://bkt/s", "t")
    (here / "t/z").write_bytes(wrong)
    if mtime is not None and len(wrong) != len(TEXT):
        os.utime(here / "t/z", (mtime, mtime))
    assert synced(cloud, "gs://bkt/s", "t").done == 1
    assert (here / "t/z").read_bytes() == TEXT


def test_a_file_is_packed_once(here: Path, cloud: Cloud) -> None:
    """A file that was uploaded as gzip is the same, also if only its time has changed."""
    make(here, "s/z")
    assert synced(cloud, "s", "gs://bkt/t", gzip=True).done == 1
    assert moved(synced(cloud, "s", "gs://bkt/t", gzip=True)) == NOTHING
    os.utime(here / "s/z", (1_600_000_000, 1_600_000_000))
    summary = synced(cloud, "s", "gs://bkt/t", gzip=True)
    assert (summary.done, summary.bytes) == (1, 0)
    assert moved(synced(cloud, "s", "gs://bkt/t", gzip=True)) == NOTHING
