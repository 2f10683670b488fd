"""Where downloads go: odd names, links, folders, places where nothing can be written, and the rename at the end."""

import os
import resource
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from forbear.testing.cloud import Cloud
from forbear.transfer.downloads.target import TargetPath
from forbear.transfer.errors import TransferError
from forbear.transfer.objects import Object
from tests.transfer.downloads import MIB, URL, Count, fetched, names, put, random_bytes

LARGE = 9 * MIB


@contextmanager
def files_up_to(size: int) -> Generator[None]:
    """No file can grow beyond so many bytes, as on a disk that is full."""
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
    """The longest names, too, have a part file beside them, of a name that is short enough."""
    data = random_bytes(size)
    put(cloud, data)
    await fetched(cloud, tmp_path / name)
    assert (tmp_path / name).read_bytes() == data
    assert names(tmp_path) == [name]


def test_a_part_file_is_told_by_its_name(tmp_path: Path) -> None:
    """It is hidden, names the file, and ends in .forbear; another object or another file has another one."""

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
    """A name without a folder is fine."""
    monkeypatch.chdir(tmp_path)
    put(cloud, random_bytes(size))
    await fetched(cloud, "file")
    assert names(tmp_path) == ["file"]


@pytest.mark.parametrize("size", [3, LARGE])
async def test_a_link_is_followed(cloud: Cloud, tmp_path: Path, size: int) -> None:
    """The file that it leads to is replaced, there or not; the link stays."""
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
    """Links in a circle have no end to write to."""
    put(cloud, b"data")
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    with pytest.raises(TransferError, match="cannot write"):
        await fetched(cloud, tmp_path / "a")


@pytest.mark.parametrize("size", [3, LARGE])
async def test_places_where_nothing_can_be_written_are_clear_errors(cloud: Cloud, tmp_path: Path, size: int) -> None:
    """A folder, a folder that is missing, a file in the place of one, a folder of the system's, a name that is none."""
    put(cloud, random_bytes(size))
    (tmp_path / "file").touch()
    targets: list[tuple[str | Path, str]] = [
        (tmp_path, "it is a folder"),
        (tmp_path / "missing" / "file", "No such file"),
        (tmp_path / "file" / "file", "Not a directory"),
        (Path("/proc/file"), "cannot write /proc/file"),
        ("nul\0", "null byte"),
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
    """The older file stays, and the part of the new one goes."""
    put(cloud, random_bytes(MIB))
    (tmp_path / "file").write_bytes(b"older")
    with files_up_to(MIB // 2), pytest.raises(TransferError, match="File too large"):
        await fetched(cloud, tmp_path / "file")
    assert (tmp_path / "file").read_bytes() == b"older"
    assert names(tmp_path) == ["file"]


@pytest.mark.parametrize("slices", [1, 3])
async def test_a_large_file_goes_on_once_there_is_room(cloud: Cloud, tmp_path: Path, slices: int) -> None:
    """What has come so far stays; where its whole size is wanted at once, the lack of room is known at once."""
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
    """Where the disk has no room for all of it, no byte is asked for."""
    huge = Object(URL.bucket, URL.name, 1, 2**62, "AAAAAA==")
    with pytest.raises(TransferError, match=rf"{2**62} bytes, and the disk has room for \d+"):
        await fetched(cloud, tmp_path / "file", huge)
    assert len(cloud.requests) == 0
    assert names(tmp_path) == []


@pytest.mark.parametrize("size", [3, LARGE])
async def test_a_file_system_without_hard_links_clobbers_nothing_either(
    cloud: Cloud, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    """There the name is claimed by an empty file."""

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


async def test_a_folder_that_takes_the_place_meanwhile_is_a_clear_error(cloud: Cloud, tmp_path: Path) -> None:
    """The rename fails, and leaves nothing."""
    put(cloud, b"data")
    with pytest.raises(TransferError, match=r"cannot write .*: Is a directory"):
        await fetched(cloud, tmp_path / "file", count=Count(1, (tmp_path / "file").mkdir))
    assert names(tmp_path) == ["file"]


async def test_no_descriptor_is_left_open(cloud: Cloud, tmp_path: Path) -> None:
    """Neither after what went well nor after what did not."""
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
