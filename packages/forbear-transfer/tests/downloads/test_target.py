"""The targets of downloads: odd names, links, folders, targets that cannot be written, and the final rename."""

import errno
import gzip
import os
import resource
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from forbear_cloud import Cloud
from forbear_testkit.transfer.downloads import MIB, URL, Count, fetched, names, put, random_bytes
from forbear_transfer.downloads.target import TargetPath
from forbear_transfer.errors import TransferError
from forbear_transfer.objects import Object

LARGE = 9 * MIB


@contextmanager
def files_up_to(size: int) -> Generator[None]:
    """Limit the size of files, as on a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.parametrize(
    "name",
    ["a" * 255, "ä" * 127, "日" * 85, "new\nline", "-", "~", " ", "#?%2F*", "\udcff", ".hidden", "a.forbear"],
    ids=["ascii", "two bytes", "three bytes", "newline", "dash", "tilde", "blank", "signs", "no utf-8", "dot", "ours"],
)
@pytest.mark.parametrize("size", [3, LARGE])
async def test_any_name_that_a_file_can_have_is_fine(cloud: Cloud, tmp_path: Path, name: str, size: int) -> None:
    """The part file of a target with a very long name has a shorter one."""
    data = random_bytes(size)
    put(cloud, data)
    await fetched(cloud, tmp_path / name)
    assert (tmp_path / name).read_bytes() == data
    assert names(tmp_path) == [name]


def test_a_part_file_is_told_by_its_name(tmp_path: Path) -> None:
    """The name of a part file is hidden, contains that of the target, and is unique for each object and target."""

    def part(file: str, *key: str) -> str:
        with TargetPath.of(tmp_path / file) as place:
            return place.resumable_part_name(*key)

    name = part("file", "endpoint", "gs://bkt/name")
    assert name.startswith(".file.")
    assert name.endswith(".forbear")
    others = [
        ("file", "endpoint", "gs://bkt/other"),
        ("file", "elsewhere", "gs://bkt/name"),
        ("file2", "endpoint", "gs://bkt/name"),
    ]
    assert len({name, *(part(*each) for each in others)}) == 4


@pytest.mark.parametrize("size", [3, LARGE])
async def test_a_relative_path_is_one_of_the_working_folder(
    cloud: Cloud, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    """A name without a folder is a file in the working folder."""
    monkeypatch.chdir(tmp_path)
    put(cloud, random_bytes(size))
    await fetched(cloud, "file")
    assert names(tmp_path) == ["file"]


@pytest.mark.parametrize("size", [3, LARGE])
async def test_a_link_is_followed(cloud: Cloud, tmp_path: Path, size: int) -> None:
    """The file that a symbolic link leads to is replaced or made; the link stays."""
    data = random_bytes(size)
    put(cloud, data)
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "link").symlink_to("elsewhere/file")
    for _ in range(2):
        await fetched(cloud, tmp_path / "link")
        assert (tmp_path / "link").is_symlink()
        assert (tmp_path / "elsewhere" / "file").read_bytes() == data
        assert names(tmp_path / "elsewhere") == ["file"]


async def test_a_link_that_leads_nowhere_is_a_clear_error(cloud: Cloud, tmp_path: Path) -> None:
    """Links in a circle are an error."""
    put(cloud, b"data")
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    with pytest.raises(TransferError, match="cannot write"):
        await fetched(cloud, tmp_path / "a")


@pytest.mark.parametrize("size", [3, LARGE])
async def test_places_where_nothing_can_be_written_are_clear_errors(cloud: Cloud, tmp_path: Path, size: int) -> None:
    """A folder, a missing folder, a file used as a folder, a folder of the system and an impossible name are errors."""
    put(cloud, random_bytes(size))
    (tmp_path / "file").touch()
    targets: list[tuple[str | Path, str]] = [
        (tmp_path, "it is a folder"),
        (tmp_path / "missing" / "file", "No such file"),
        (tmp_path / "file" / "file", "Not a directory"),
        (Path("/proc/file"), "cannot write /proc/file"),
        ("nul\0", "null (byte|character)"),  # as this Python words it
        (tmp_path / ("a" * 256), "name too long"),
    ]
    for target, text in targets:
        with pytest.raises(TransferError, match=text):
            await fetched(cloud, target)
    assert names(tmp_path) == ["file"]


async def test_a_missing_folder_comes_with_the_cure(cloud: Cloud, tmp_path: Path) -> None:
    """The hint says what to do."""
    put(cloud, b"data")
    with pytest.raises(TransferError) as caught:
        await fetched(cloud, tmp_path / "missing" / "file")
    assert caught.value.hint == "make the folder first"
    assert isinstance(caught.value.__cause__, FileNotFoundError)


async def test_a_small_file_that_does_not_fit_leaves_nothing(cloud: Cloud, tmp_path: Path) -> None:
    """If a small object does not fit on the disk, the older file stays, and no part file."""
    put(cloud, random_bytes(MIB))
    (tmp_path / "file").write_bytes(b"older")
    with files_up_to(MIB // 2), pytest.raises(TransferError, match="File too large"):
        await fetched(cloud, tmp_path / "file")
    assert (tmp_path / "file").read_bytes() == b"older"
    assert names(tmp_path) == ["file"]


@pytest.mark.parametrize("slices", [1, 3])
async def test_a_large_file_goes_on_once_there_is_room(cloud: Cloud, tmp_path: Path, slices: int) -> None:
    """If a large object does not fit, its bytes stay; with slices, the error comes before any byte."""
    data = random_bytes(LARGE)
    put(cloud, data)
    with files_up_to(5 * MIB), pytest.raises(TransferError, match="File too large"):
        await fetched(cloud, tmp_path / "file", slices=slices)
    count = Count()
    await fetched(cloud, tmp_path / "file", slices=slices, count=count)
    assert (tmp_path / "file").read_bytes() == data
    assert names(tmp_path) == ["file"]
    if slices == 1:
        asked = [each.headers.get("range") for each in cloud.requests if "alt=media" in each.query]
        assert asked[-1] == f"bytes={5 * MIB}-"


async def test_what_cannot_fit_is_not_begun(cloud: Cloud, tmp_path: Path) -> None:
    """If the disk has no room for the object, no byte is requested."""
    huge = Object(URL.bucket, URL.name, 1, 2**62, "AAAAAA==")
    with pytest.raises(TransferError, match=rf"{2**62} bytes, and the disk has room for \d+"):
        await fetched(cloud, tmp_path / "file", huge)
    assert len(cloud.requests) == 0
    assert names(tmp_path) == []


@pytest.mark.parametrize("size", [3, LARGE])
async def test_a_file_system_without_hard_links_clobbers_nothing_either(
    cloud: Cloud, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    """With `no_clobber`, an empty file claims the name where hard links are not supported."""

    def no_link(source: object, target: object, **folders: object) -> None:
        if os.path.lexists(tmp_path / str(target)):
            raise FileExistsError
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", no_link)
    data = random_bytes(size)
    put(cloud, data)
    await fetched(cloud, tmp_path / "file", no_clobber=True)
    assert (tmp_path / "file").read_bytes() == data
    assert names(tmp_path) == ["file"]

    def no_rename(*names: object, **folders: object) -> None:
        raise OSError(errno.EIO, "the disk is broken")

    monkeypatch.setattr(os, "replace", no_rename)
    with pytest.raises(TransferError, match="the disk is broken"):
        await fetched(cloud, tmp_path / "other", no_clobber=True)
    assert not (tmp_path / "other").exists()  # an empty file would be skipped the next time


async def test_a_folder_that_takes_the_place_meanwhile_is_a_clear_error(cloud: Cloud, tmp_path: Path) -> None:
    """If a folder takes the name of the target during the download, the rename fails, and no part file is left."""
    put(cloud, b"data")
    with pytest.raises(TransferError, match=r"cannot write .*: Is a directory"):
        await fetched(cloud, tmp_path / "file", count=Count(1, (tmp_path / "file").mkdir))
    assert names(tmp_path) == ["file"]


@pytest.mark.parametrize("by_link", [False, True], ids=["/dev/fd", "a link to it"])
@pytest.mark.parametrize("encoding", ["", "gzip"])
async def test_the_pipe_behind_a_descriptor_is_written_to(
    cloud: Cloud, tmp_path: Path, by_link: bool, encoding: str
) -> None:
    """A shell names stdout, or a process that reads, as /dev/fd/N; the pipe behind it has no other name."""
    put(cloud, gzip.compress(b"data") if encoding else b"data", {"contentEncoding": encoding} if encoding else None)
    reading, writing = os.pipe()
    target = Path(f"/proc/self/fd/{writing}")
    if by_link:
        (tmp_path / "link").symlink_to(target)
        target = tmp_path / "link"
    await fetched(cloud, target)
    assert os.read(reading, 10) == b"data"
    with pytest.raises(TransferError, match="exists already"):
        await fetched(cloud, target, no_clobber=True)
    os.close(reading)
    with pytest.raises(TransferError, match="cannot write"):
        await fetched(cloud, target)
    os.close(writing)


async def test_no_descriptor_is_left_open(cloud: Cloud, tmp_path: Path) -> None:
    """Neither success nor failure leaves a file open."""
    put(cloud, random_bytes(LARGE))
    await fetched(cloud, tmp_path / "file")
    for _ in range(3):
        await fetched(cloud, tmp_path / "file", slices=3)
        with files_up_to(MIB), pytest.raises(TransferError):
            await fetched(cloud, tmp_path / "other", slices=1)
    descriptors = Path("/proc/self/fd")
    for name in names(descriptors):
        with suppress(FileNotFoundError):  # that of the listing itself
            assert str(tmp_path) not in os.readlink(descriptors / name)  # noqa: PTH115 - in an async test
