"""The sources and targets of uploads: files that change, cannot be read or have odd names."""

import mmap
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from forbear_cloud import Cloud
from forbear_testkit.transfer.uploads import (
    CHUNK,
    MIB,
    TARGET,
    When,
    data_of,
    file_of,
    metered,
    open_files,
    steps,
    stored,
    storing,
    versions,
)
from forbear_transfer.errors import SourceChanged, TransferError, UnsafeName
from forbear_transfer.objects import Url
from forbear_transfer.uploads.content import guess_content_type
from forbear_transfer.uploads.upload import upload

pytestmark = pytest.mark.anyio

SMALL, LARGE = 3 * MIB, 5 * CHUNK + 1000


async def test_a_file_that_changes_while_it_is_sent_is_told(cloud: Cloud, tmp_path: Path) -> None:
    """If the server refuses the checksum because the file was changed, the error says so."""
    path = file_of(tmp_path, SMALL)

    def change() -> None:
        path.write_bytes(data_of(SMALL, seed=2))
        os.utime(path, ns=(1, 1))

    with metered(When(1, change)):
        async with storing(cloud) as storage:
            with pytest.raises(SourceChanged, match="was changed while it was read"):
                await upload(storage, path, TARGET)
    assert versions(cloud) == 0


@pytest.mark.parametrize("gzip", [False, True])
@pytest.mark.parametrize("size", [SMALL, LARGE])
async def test_a_change_whose_time_is_set_back_is_noticed(cloud: Cloud, tmp_path: Path, size: int, gzip: bool) -> None:
    """A file has a time that no program can set: that of its last change of status."""
    path = file_of(tmp_path, size)
    before = path.stat()

    def change() -> None:
        with path.open("r+b") as file:
            file.write(data_of(size, seed=2))
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))

    with metered(When(1, change)):
        async with storing(cloud) as storage:
            with pytest.raises(SourceChanged):
                await upload(storage, path, TARGET, chunk_size=CHUNK, gzip=gzip)
    assert versions(cloud) == 0


@pytest.mark.parametrize("gzip", [False, True])
async def test_a_change_without_a_trace_is_found_by_reading_twice(cloud: Cloud, tmp_path: Path, gzip: bool) -> None:
    """A mapping whose pages were dirty before changes no time; `verify_source` compares checksums."""
    path = file_of(tmp_path, LARGE)
    with path.open("r+b") as file, mmap.mmap(file.fileno(), LARGE) as mapped:
        mapped[:] = data_of(LARGE)
        with metered(When(CHUNK, lambda: mapped.__setitem__(slice(None), data_of(LARGE, seed=2)))):
            async with storing(cloud) as storage:
                with pytest.raises(SourceChanged):
                    await upload(storage, path, TARGET, chunk_size=CHUNK, gzip=gzip, verify_source=True)
        assert versions(cloud) == 0
    async with storing(cloud) as storage:
        for size in (10, SMALL, LARGE):
            await upload(storage, file_of(tmp_path, size), TARGET, chunk_size=CHUNK, gzip=gzip, verify_source=True)
    assert versions(cloud) == 3


@pytest.mark.parametrize("size", [0, 2 * MIB])
async def test_a_file_that_shrinks_while_it_is_sent_is_told(cloud: Cloud, tmp_path: Path, size: int) -> None:
    """If the file becomes shorter, the error says so, and no object is made."""
    path = file_of(tmp_path, SMALL)
    with metered(When(1, lambda: os.truncate(path, size))):
        async with storing(cloud) as storage:
            with pytest.raises(SourceChanged):
                await upload(storage, path, TARGET)
    assert versions(cloud) == 0


async def test_sources_that_cannot_be_read_are_named(cloud: Cloud, tmp_path: Path) -> None:
    """A missing file, a folder, a FIFO, a file without permission and an impossible name are clear errors."""
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    cases = [(tmp_path / "none", "No such file", "path"), (tmp_path, "it is a folder", "-r"), (fifo, "neither", "pipe")]
    cases.append((Path("a\0b"), "null", ""))
    async with storing(cloud) as storage:
        for path, text, hint in cases:
            with pytest.raises(TransferError, match=text) as caught:
                await upload(storage, path, TARGET)
            assert hint in (caught.value.hint or "")
    assert versions(cloud) == 0
    assert open_files(tmp_path) == 0


@pytest.mark.parametrize("verify", [False, True])
async def test_a_file_of_the_system_has_more_than_it_says(cloud: Cloud, tmp_path: Path, verify: bool) -> None:
    """Files in /proc have the size 0; they are uploaded with their content, which can be verified."""
    system = Path("/proc/version")
    path = system if system.exists() else file_of(tmp_path, 10)  # noqa: ASYNC240
    async with storing(cloud) as storage:
        made = await upload(storage, path, TARGET, verify_source=verify)
    assert made.size == len(path.read_bytes()) > 0


async def test_targets_are_checked(cloud: Cloud, tmp_path: Path) -> None:
    """Invalid arguments are refused before any request."""
    path = file_of(tmp_path, 1)
    async with storing(cloud) as storage:
        for target, more, text in [
            (Url("bkt"), {}, "must name an object"),
            (Url("bkt", "a", 5), {}, "must not name a version"),
            (TARGET, {"chunk_size": 1000}, "multiple of 262144"),
            (TARGET, {"generation": -1}, "`generation` must be"),
        ]:
            given: dict[str, Any] = more
            with pytest.raises(ValueError, match=text):
                await upload(storage, path, target, **given)
        with pytest.raises(UnsafeName, match="is not Unicode"):
            await upload(storage, path, Url("bkt", "a\udcff"))
        wrong: Any = 5
        with pytest.raises(TypeError, match="`source` must be a path"):
            await upload(storage, wrong, TARGET)
    assert len(cloud.requests) == 0


@pytest.mark.parametrize("name", ["a b+c%2F", "../x", "ünï/ço∂é", "#?&=", "x" * 1024, "a//b/"])
async def test_odd_names_arrive_as_they_are(cloud: Cloud, tmp_path: Path, name: str) -> None:
    """Any Unicode name is stored unchanged."""
    async with storing(cloud) as storage:
        made = await upload(storage, file_of(tmp_path, 3), Url("bkt", name))
        assert made.name == name
        assert await storage.stat(Url("bkt", name)) == made


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("a.txt", "text/plain"),
        ("/x/y.png", "image/png"),
        ("a.tar.gz", "application/gzip"),
        ("a.csv.bz2", "application/x-bzip2"),
        ("data:a.txt", "text/plain"),
        ("none", "application/octet-stream"),
        ("", "application/octet-stream"),
    ],
)
def test_the_kind_is_guessed_by_the_name(name: str, kind: str) -> None:
    """The content type of a compressed file is that of the compression."""
    assert guess_content_type(name) == kind


CHANGES: dict[str, Callable[[Path], object]] = {
    "other bytes": lambda path: path.write_bytes(data_of(LARGE, seed=2)),
    "shorter": lambda path: os.truncate(path, 3 * CHUNK),
    "longer": lambda path: os.truncate(path, 2 * LARGE),
}


@pytest.mark.parametrize("change", CHANGES)
async def test_a_source_that_changes_is_not_uploaded(cloud: Cloud, tmp_path: Path, change: str) -> None:
    """If the file is changed during the upload, the session is cancelled before its last chunk."""
    path = file_of(tmp_path, LARGE)
    os.utime(path, ns=(1, 1))
    with metered(When(2 * CHUNK, lambda: CHANGES[change](path))):
        async with storing(cloud) as storage:
            with pytest.raises(SourceChanged, match="was changed while it was read"):
                await upload(storage, path, TARGET, chunk_size=CHUNK)
    assert versions(cloud) == 0
    assert steps(cloud)[-1] == "cancel"
    assert not os.listdir(os.environ["FORBEAR_STATE_DIR"])  # noqa: PTH208
    assert open_files(tmp_path) == 0


async def test_a_source_that_is_deleted_is_still_read(cloud: Cloud, tmp_path: Path) -> None:
    """A file that is deleted during the upload is read to its end."""
    path = file_of(tmp_path, LARGE)
    with metered(When(CHUNK, path.unlink)):
        async with storing(cloud) as storage:
            await upload(storage, path, TARGET, chunk_size=CHUNK)
    assert stored(cloud) == data_of(LARGE)
