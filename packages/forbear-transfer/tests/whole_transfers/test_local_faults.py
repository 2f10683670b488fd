"""Hostile surroundings: disks, permissions and sources. Clear errors, nothing lost, and nothing half done.

What others do meanwhile is in `test_shared_state.py`, what names may do in `test_hostile_names.py`.
"""

import gzip
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest

from forbear_cloud import Cloud
from forbear_testkit.transfer.campaign.hostile import full_disk, unprivileged
from forbear_testkit.transfer.campaign.line import Line
from forbear_testkit.transfer.campaign.plain import DATA, OLDER, SIZE, broken_off, down, names, put, up
from forbear_testkit.transfer.campaign.plans import CHUNK, INSERT
from forbear_transfer.errors import SourceChanged, TransferError


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that any user can reach, which those of pytest are not."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
        Path(name).chmod(0o755)
        yield Path(name)


# Disks


@pytest.mark.parametrize("size", [20_000, SIZE], ids=["small", "large"])
def test_a_download_to_a_full_disk(cloud: Cloud, folder: Path, size: int) -> None:
    """It fails with a word of it, the older file stays, and when there is room the next run does the rest."""
    put(cloud, DATA[:size])
    (folder / "out").mkdir()
    target = folder / "out" / "file"
    target.write_bytes(OLDER)
    with full_disk(size // 2), pytest.raises(TransferError, match=r"cannot write .*file"):
        down(cloud.url, target, folder)
    assert target.read_bytes() == OLDER
    sent = cloud.requests.count("storage.objects.get")
    down(cloud.url, target, folder)
    assert target.read_bytes() == DATA[:size]
    assert names(folder / "out") == ["file"]
    assert names(folder / "state") == []
    if size == SIZE:
        asked = [each.headers.get("range") for each in list(cloud.requests)[sent:]]
        assert any(each is not None and each.startswith(f"bytes={size // 2}") for each in asked)


def test_a_download_to_a_full_device(cloud: Cloud, folder: Path) -> None:
    """A device is written to and not replaced; that it is full is said."""
    put(cloud)
    with pytest.raises(TransferError, match=r"cannot write .*/dev/full.*: No space left on device"):
        down(cloud.url, "/dev/full", folder)
    assert Path("/dev/full").is_char_device()


def test_gzip_that_does_not_fit_when_decoded_keeps_its_bytes(cloud: Cloud, folder: Path) -> None:
    """The bytes that have arrived are kept, and do not come again."""
    put(cloud, gzip.compress(bytes(SIZE)) + gzip.compress(DATA), contentEncoding="gzip")
    (folder / "out").mkdir()
    target = folder / "out" / "file"
    with full_disk(SIZE + SIZE // 4), pytest.raises(TransferError, match="cannot write"):
        down(cloud.url, target, folder)
    assert not target.exists()
    down(cloud.url, target, folder)
    assert target.read_bytes() == bytes(SIZE) + DATA
    assert names(folder / "out") == ["file"]
    assert names(folder / "state") == []


def test_no_room_for_the_state(cloud: Cloud, folder: Path) -> None:
    """An upload goes on without, and says so; where a download has no room either, nothing is there in part."""
    put(cloud)
    source = folder / "source"
    source.write_bytes(DATA)
    with full_disk(10), pytest.warns(RuntimeWarning, match="cannot keep the state"):
        up(cloud.url, source, folder)
    with full_disk(10), pytest.warns(RuntimeWarning), pytest.raises(TransferError, match="cannot write"):
        down(cloud.url, folder / "file", folder)
    assert cloud.effects.count() == 1
    assert names(folder / "state") == []
    assert names(folder) == ["source", "state"]


# Permissions


def test_a_source_that_may_not_be_read(cloud: Cloud, folder: Path) -> None:
    """The file is named, and a cure."""
    source = folder / "source"
    source.write_bytes(DATA)
    with unprivileged(folder):
        source.chmod(0)
        with pytest.raises(TransferError, match=r"cannot read .*source.*: Permission denied") as caught:
            up(cloud.url, source, folder)
    assert caught.value.hint is not None
    assert len(cloud.requests) == 0


@pytest.mark.parametrize("size", [20_000, SIZE], ids=["small", "large"])
def test_a_folder_that_may_not_be_written_to(cloud: Cloud, folder: Path, size: int) -> None:
    """It fails before anything is sent for nothing, with a cure, and the file in it stays."""
    put(cloud, DATA[:size])
    out = folder / "out"
    out.mkdir()
    (out / "file").write_bytes(OLDER)
    with unprivileged(folder):
        out.chmod(0o555)
        with pytest.raises(TransferError, match=r"cannot write .*file.*: Permission denied") as caught:
            down(cloud.url, out / "file", folder)
        out.chmod(0o755)
    assert caught.value.hint is not None
    assert (out / "file").read_bytes() == OLDER
    assert names(folder / "state") == []


@pytest.mark.parametrize("direction", ["up", "down"])
def test_a_state_that_may_not_be_kept(cloud: Cloud, folder: Path, direction: str) -> None:
    """It goes on without, says where, and how to name another place; small files need none."""
    put(cloud)
    source = folder / "source"
    source.write_bytes(DATA)
    (folder / "closed").mkdir(mode=0o555)
    with unprivileged(folder):
        begin = partial(up, cloud.url, source) if direction == "up" else partial(down, cloud.url, folder / "file")
        with pytest.warns(RuntimeWarning, match=r"state of the transfer in .*closed.* FORBEAR_STATE_DIR"):
            begin(folder / "closed")
        source.write_bytes(OLDER)
        assert up(cloud.url, source, folder / "closed").size == len(OLDER)
    assert cloud.effects.count() == (2 if direction == "up" else 1)


def unusable(folder: Path) -> dict[str, Path | str]:
    """Places that no file can have."""
    (folder / "plain").write_bytes(b"a file")
    (folder / "in circles").symlink_to("in circles")
    return {
        "a folder": folder,
        "below a file": folder / "plain" / "file",
        "in no folder": folder / "nowhere" / "file",
        "in a system folder": "/proc/self/file",
        "a long name": folder / ("x" * 300),
        "a zero character": str(folder / "a\0b"),
        "a link to itself": folder / "in circles",
    }


@pytest.mark.parametrize("size", [100, SIZE], ids=["small", "large"])
@pytest.mark.parametrize("name", unusable(Path(tempfile.mkdtemp())))
def test_places_that_no_file_can_have(cloud: Cloud, folder: Path, name: str, size: int) -> None:
    """Each is an error that names it, and nothing is left anywhere."""
    put(cloud, DATA[:size])
    place = unusable(folder)[name]
    before = names(folder)
    with pytest.raises(TransferError, match="cannot write"):
        down(cloud.url, place, folder)
    assert [each for each in names(folder) if each != "state"] == before
    assert names(folder / "state") == []


# Sources


@pytest.mark.parametrize("size", [100, SIZE], ids=["small", "large"])
@pytest.mark.parametrize("kind", ["vanished", "a folder", "a pipe", "a link to nothing"])
def test_sources_that_are_no_files(cloud: Cloud, folder: Path, kind: str, size: int) -> None:
    """Each is an error that names it, and asks nothing of the cloud."""
    source = folder / "source"
    match kind:
        case "vanished":
            source.write_bytes(DATA[:size])
            source.unlink()
        case "a folder":
            source.mkdir()
        case "a pipe":
            os.mkfifo(source)
        case _:
            source.symlink_to("nothing")
    with pytest.raises(TransferError, match=r"cannot (read|upload) .*source") as caught:
        up(cloud.url, source, folder)
    assert caught.value.hint is not None
    assert len(cloud.requests) == 0


def grown(source: Path) -> None:
    """Append."""
    with source.open("ab") as file:
        file.write(b"more")


def truncated(source: Path) -> None:
    """Cut off the end."""
    os.truncate(source, SIZE // 2)


def rewritten(source: Path) -> None:
    """Write over it, as long as it was."""
    with source.open("r+b") as file:
        file.write(b"other" * 100)
    status = source.stat()
    os.utime(source, ns=(status.st_atime_ns, status.st_mtime_ns + 1_000_000))


@pytest.mark.parametrize("change", [grown, truncated, rewritten])
def test_a_source_that_changes_while_it_is_read(cloud: Cloud, folder: Path, change: Callable[[Path], None]) -> None:
    """It is an error, nothing is visible, the session is cancelled, and the next run uploads what is there then."""
    source = folder / "source"
    source.write_bytes(DATA)
    older = cloud.store.put("bkt", "target", OLDER).generation
    with Line(cloud.url, held=64 * 1024) as line:
        line.when("up", CHUNK, lambda: change(source))
        with pytest.raises(SourceChanged, match=r"source.* was changed while it was read") as caught:
            up(line.url, source, folder)
        assert caught.value.hint is not None
        assert cloud.store.object("bkt", "target").generation == older
        assert cloud.requests.count(f"{INSERT}.cancel", status=499) == 1
        assert names(folder / "state") == []
        up(line.url, source, folder)
    assert cloud.store.object("bkt", "target").data == source.read_bytes()
    assert cloud.effects.count(INSERT) == 1


@pytest.mark.parametrize("change", [grown, truncated, rewritten])
def test_a_source_that_changes_when_the_end_of_it_is_on_its_way(
    cloud: Cloud, folder: Path, change: Callable[[Path], None]
) -> None:
    """If it is noticed, there is nothing; if it is not, there is all of what it was: never a bit of both."""
    source = folder / "source"
    source.write_bytes(DATA)
    with Line(cloud.url, held=64 * 1024) as line:
        line.when("up", SIZE - CHUNK // 2, lambda: change(source))
        with suppress(SourceChanged):
            up(line.url, source, folder)
    live = cloud.store.bucket("bkt").live("target")
    assert live is None or live.data == DATA
    assert names(folder / "state") == []


def test_a_source_that_vanishes_while_it_is_read(cloud: Cloud, folder: Path) -> None:
    """Who has it open has all of it."""
    source = folder / "source"
    source.write_bytes(DATA)
    with Line(cloud.url) as line:
        line.when("up", SIZE // 2, source.unlink)
        up(line.url, source, folder)
    assert cloud.store.object("bkt", "target").data == DATA
    assert names(folder / "state") == []


@pytest.mark.parametrize("change", [grown, truncated, rewritten, Path.unlink])
def test_a_source_that_changes_between_two_runs(cloud: Cloud, folder: Path, change: Callable[[Path], None]) -> None:
    """The session of the old one is not gone on with."""
    source = folder / "source"
    source.write_bytes(DATA)
    broken_off(cloud, lambda: up(cloud.url, source, folder))
    assert names(folder / "state") != []
    change(source)
    if not source.exists():
        source.write_bytes(DATA[::-1])
    up(cloud.url, source, folder)
    assert cloud.store.object("bkt", "target").data == source.read_bytes()
    assert cloud.effects.count(INSERT) == 1
    assert cloud.requests.count(f"{INSERT}.cancel", status=499) == 1
    assert names(folder / "state") == []
