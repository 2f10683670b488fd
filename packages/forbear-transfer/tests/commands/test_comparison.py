"""check and hashes: what is the same and what is not, by the bytes."""

import asyncio
import base64
import hashlib
import os
from pathlib import Path

import pytest

from forbear.testing import virtual_time
from forbear_cloud import Cloud, Fault, random_faults
from forbear_cloud.storage.model import crc32c_of
from forbear_testkit.transfer.files import make
from forbear_transfer import CheckStatus, FileHashes, Settings, TransferError, ahashes, check, hashes
from forbear_transfer.checksum import Crc32c
from forbear_transfer.errors import SourceChanged


def compared(cloud: Cloud, left: str, right: str, exclude: str | None = None) -> list[tuple[str, CheckStatus, str]]:
    """Return what differs, in virtual time."""
    with virtual_time(seed=2):
        differences = check(left, right, exclude=exclude, settings=Settings(endpoint=cloud.url))
    return [(one.name, one.status, one.note) for one in differences]


@pytest.fixture
def both(here: Path, cloud: Cloud) -> Cloud:
    """A folder and a prefix with the same, other, missing and additional files."""
    make(here, "dir/a", "dir/b", "dir/c", "dir/deep/d", "dir/e", "dir/tmp/x")
    for name, data in {
        "a": b"dir/a",
        "b": b"DIR/B",
        "c": b"longer",
        "deep/d": b"dir/deep/d",
        "f": b"",
        "g/": b"",
    }.items():
        cloud.store.put("bkt", f"x/{name}", data)
    return cloud


def test_a_folder_and_a_prefix(both: Cloud) -> None:
    """In order of name; the content counts, not the time."""
    differences = [
        ("b", CheckStatus.DIFFERENT, "their CRC32Cs differ"),
        ("c", CheckStatus.DIFFERENT, "their sizes differ"),
        ("e", CheckStatus.ONLY_LEFT, ""),
        ("f", CheckStatus.ONLY_RIGHT, ""),
    ]
    assert compared(both, "dir", "gs://bkt/x", exclude="tmp/") == differences
    assert compared(both, "dir", "gs://bkt/x")[-1] == ("tmp/x", CheckStatus.ONLY_LEFT, "")
    swapped = {CheckStatus.ONLY_LEFT: CheckStatus.ONLY_RIGHT, CheckStatus.ONLY_RIGHT: CheckStatus.ONLY_LEFT}
    assert compared(both, "gs://bkt/x/", "dir", exclude="tmp/") == [
        (name, swapped.get(status, status), note) for name, status, note in differences
    ]
    assert compared(both, "gs://bkt/x", "gs://bkt/x") == []


@pytest.mark.parametrize("seed", range(2))
def test_faults_change_nothing(seed: int, both: Cloud, monkeypatch: pytest.MonkeyPatch) -> None:
    """No name is lost when a page is requested again."""
    expected = compared(both, "dir", "gs://bkt/x")
    monkeypatch.setattr("forbear_transfer.storage.listing._PAGE_ITEMS", 2)
    both.fault(random_faults(seed, unavailable=0.3, truncated=0.3))
    assert compared(both, "dir", "gs://bkt/x") == expected


@pytest.mark.parametrize(
    ("left", "right", "text"),
    [
        ("dir", "other", "`left` or `right` must begin with gs://"),
        ("", "gs://bkt", "`left` must name a folder, got nothing"),
        ("dir", "gs://B", "must name a bucket"),
    ],
)
def test_arguments_are_checked(left: str, right: str, text: str) -> None:
    """With the parameter and the rule."""
    with pytest.raises(ValueError, match=text):
        check(left, right)
    with pytest.raises(ValueError, match="`exclude` must be a regular expression"):
        check("dir", "gs://bkt", exclude="(")


@pytest.mark.parametrize(
    ("left", "right", "text"),
    [
        ("nothing", "gs://bkt/x", "cannot read the folder nothing: No such file or directory"),
        ("dir", "gs://bkt/nothing", "there is nothing below gs://bkt/nothing"),
        ("dir", "gs://nowhere", "404"),
    ],
)
def test_a_folder_that_does_not_exist(left: str, right: str, text: str, both: Cloud) -> None:
    """It is an error: a typing error must not look like a difference in every file."""
    with pytest.raises(TransferError, match=text):
        compared(both, left, right)


def test_what_cannot_be_compared(here: Path, cloud: Cloud) -> None:
    """A link to nothing is not the same as anything."""
    make(here, "dir/a")
    (here / "dir" / "link").symlink_to("nowhere")
    cloud.store.put("bkt", "x/a", b"dir/a")
    assert compared(cloud, "dir", "gs://bkt/x") == [("link", CheckStatus.UNREADABLE, "a symbolic link to nothing")]


def test_a_folder_that_cannot_be_listed(both: Cloud, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is named, and the rest is compared."""
    make(here, "dir/deep-er")
    scandir = os.scandir

    def refuse(path: str | int) -> object:
        if str(path).endswith("deep"):
            raise PermissionError(13, "Permission denied", path)
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refuse)
    names = [name for name, *_ in compared(both, "dir", "gs://bkt/x")]
    assert names == ["b", "c", "deep-er", "deep/", "deep/d", "e", "f", "tmp/x"]


def md5_of(data: bytes) -> str:
    """Return the MD5 of some bytes in base64."""
    return base64.b64encode(hashlib.md5(data).digest()).decode()


def test_hashes_of_files_and_objects_agree(here: Path, cloud: Cloud) -> None:
    """Those of files are computed, and those of objects stated; they agree."""
    (here / "a").write_bytes(b"hello" * 100_000)
    there = cloud.store.put("bkt", "a", b"hello" * 100_000)
    cloud.fault(Fault.status(503))
    expected = 500_000, crc32c_of(b"hello" * 100_000), md5_of(b"hello" * 100_000)
    with virtual_time():
        listed = hashes(["a", "?", "gs://bkt/a", "gs://bkt/*"], settings=Settings(endpoint=cloud.url))
    assert listed == [
        *[FileHashes("a", *expected)] * 2,
        *[FileHashes("gs://bkt/a", *expected, there.generation)] * 2,
    ]


def test_files_need_no_service(here: Path) -> None:
    """Neither credentials nor connections are needed for local files."""
    (here / "a").write_bytes(b"")
    assert hashes(here / "a") == [FileHashes(str(here / "a"), 0, "AAAAAA==", md5_of(b""))]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("nothing", "cannot read 'nothing': No such file or directory"),
        (".", ". is a folder"),
        ("x*", "no file matches x*"),
        ("gs://bkt/nothing", "gs://bkt/nothing does not exist"),
        ("gs://bkt/d*", "only folders match gs://bkt/d*"),
    ],
)
def test_what_has_no_hash(name: str, text: str, here: Path, cloud: Cloud) -> None:
    """With the reason."""
    cloud.store.put("bkt", "d/e", b"")
    with pytest.raises(TransferError) as caught:
        hashes(name, settings=Settings(endpoint=cloud.url))
    assert str(caught.value) == text


def test_a_pipe_that_nobody_writes_to_can_be_left(here: Path, cloud: Cloud) -> None:
    """A cancelled hash does not wait for the rest of a file, which may be endless."""
    os.mkfifo("pipe")

    async def cancelled() -> bool:
        async with Settings(endpoint=cloud.url).storage() as storage:
            task = asyncio.ensure_future(anext(ahashes(storage, "pipe")))
            await asyncio.wait({task}, timeout=0.05)
            task.cancel()
            await asyncio.wait({task}, timeout=5)
            os.close(os.open("pipe", os.O_RDWR))  # ends the thread
            return task.cancelled()

    assert asyncio.run(cancelled())


def test_a_file_that_changes_has_no_hash(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The hash of a mixture of two versions would be right for neither."""
    (here / "a").write_bytes(b"old")
    update = Crc32c.update

    def grow(self: Crc32c, data: bytes) -> None:
        update(self, data)
        (here / "a").write_bytes(b"a new text")

    monkeypatch.setattr(Crc32c, "update", grow)
    with pytest.raises(SourceChanged, match="a changed while it was read"):
        hashes("a")


def test_a_file_that_changes_is_not_compared(both: Cloud, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that is written while it is read equals nothing for sure."""
    update = Crc32c.update

    def write(self: Crc32c, data: bytes) -> None:
        update(self, data)
        (here / "dir" / "a").write_bytes(b"DIR/A")

    monkeypatch.setattr(Crc32c, "update", write)
    monkeypatch.setattr("forbear_transfer.uploads.sources._INLINE", 0)
    [first, *_] = compared(both, "dir", "gs://bkt/x")
    assert first == ("a", CheckStatus.UNREADABLE, "dir/a was changed while it was read")


@pytest.mark.parametrize("names", [[], [""], ["gs://B"]])
def test_names_are_checked(names: list[str]) -> None:
    """Before anything is read."""
    with pytest.raises(ValueError, match=r"`names` must name|must name a bucket"):
        hashes(names)
